#include "apps/bench/between_ranks/ping_pong.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "base/timing.hpp"

namespace hearsay {
namespace {

constexpr double long_s = 0.2;  // a message that takes so long says all about β

/// Large messages are repeated less often: 32 MB a size are enough.
int repeats_of(std::size_t bytes, int repeats) {
  constexpr std::size_t enough_bytes = 32'000'000;
  constexpr int least = 5;
  const auto affordable = static_cast<int>(std::min<std::size_t>(enough_bytes / bytes, 1'000'000));
  return std::max(least, std::min(repeats, affordable));
}

/// There and back; both sides know the length, as in the dense ring.
void bounce(Peers& peers, int other, bool leads, std::span<std::byte> bytes) {
  for (const bool sends : {leads, !leads}) {
    if (sends) {
      peers.send(other, {.bytes = bytes, .payload_bytes = bytes.size()});
    } else {
      peers.exchange(Peers::nobody, {}, other, bytes);
    }
  }
}

/// The leader says whether there is more to come.
bool agreed(Peers& peers, int other, bool leads, bool more) {
  std::byte word{more ? std::uint8_t{1} : std::uint8_t{0}};
  if (leads) {
    peers.send(other, {.bytes = {&word, 1}});
  } else {
    peers.exchange(Peers::nobody, {}, other, std::span(&word, 1));
  }
  return word != std::byte{0};
}

}  // namespace

std::vector<PingPong> ping_pong(Peers& peers, int other, bool leads, int repeats) {
  constexpr std::array<std::size_t, 6> sizes{4, 64'000, 256'000, 1'000'000, 4'000'000, 16'000'000};
  std::vector<PingPong> times;
  for (const std::size_t size : sizes) {
    std::vector<std::byte> bytes(size);
    bounce(peers, other, leads, bytes);  // the first one sets up the connection
    std::vector<double> one_way;
    for (int i = 0; i < repeats_of(size, repeats); ++i)
      one_way.push_back(0.5 * seconds_taken([&] { bounce(peers, other, leads, bytes); }));
    times.push_back({.bytes = size, .one_way_s = median(std::move(one_way))});
    if (!agreed(peers, other, leads, times.back().one_way_s < long_s)) break;
  }
  return times;
}

AlphaBeta fitted(std::span<const PingPong> times) {
  if (times.size() < 2) throw std::logic_error("α and β need a small message and a large one");
  const double alpha = times.front().one_way_s;
  // d/dβ Σ ((α + w β)/t − 1)² = 0
  double numerator = 0.0, denominator = 0.0;
  for (const PingPong& large : times.subspan(1)) {
    const double words_per_second = static_cast<double>(large.bytes) / bytes_per_word / large.one_way_s;
    numerator += words_per_second * (1.0 - alpha / large.one_way_s);
    denominator += words_per_second * words_per_second;
  }
  return {.alpha_s = alpha, .beta_s = std::max(0.0, numerator / denominator)};
}

}  // namespace hearsay
