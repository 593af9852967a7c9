#include "apps/bench/alpha_beta.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

#include "apps/bench/timing.hpp"

namespace hearsay {
namespace {

constexpr double bytes_per_word = 4.0;
constexpr double words_per_entry = 2.0;

/// ⌈log2 P⌉.
double rounds(int ranks) { return static_cast<double>(std::bit_width(static_cast<unsigned>(ranks) - 1U)); }

/// Large messages are repeated less often: 32 MB a size are enough.
int repeats_of(std::size_t bytes, int repeats) {
  constexpr std::size_t enough_bytes = 32'000'000;
  constexpr int least = 5;
  const auto affordable = static_cast<int>(std::min<std::size_t>(enough_bytes / bytes, 1'000'000));
  return std::max(least, std::min(repeats, affordable));
}

/// Both sides know the length, as in the dense ring.
void bounce(Peers& peers, std::span<std::byte> bytes) {
  const int other = 1 - peers.rank();
  for (const bool sends : {peers.rank() == 0, peers.rank() != 0}) {
    if (sends) {
      peers.send(other, {.bytes = bytes, .payload_bytes = bytes.size()});
    } else {
      peers.exchange(Peers::nobody, {}, other, bytes);
    }
  }
}

}  // namespace

CommunicationCost ring_cost(int ranks, std::size_t values) {
  const double p = ranks;
  return {.messages = 2.0 * (p - 1.0), .words = 2.0 * (p - 1.0) / p * static_cast<double>(values)};
}

CommunicationCost gather_cost(int ranks, std::size_t k) {
  return {.messages = rounds(ranks), .words = words_per_entry * (ranks - 1) * static_cast<double>(k)};
}

CommunicationCost tree_cost(int ranks, std::size_t k) {
  const double messages = 2.0 * rounds(ranks);
  return {.messages = messages, .words = words_per_entry * messages * static_cast<double>(k)};
}

CommunicationCost butterfly_cost(int ranks, std::size_t k) {
  const auto p = static_cast<unsigned>(ranks);
  const double core = static_cast<double>(std::bit_width(p) - 1);
  const double messages = std::has_single_bit(p) ? core : core + 2.0;
  return {.messages = messages, .words = words_per_entry * messages * static_cast<double>(k)};
}

std::vector<PingPong> ping_pong(Peers& peers, int repeats) {
  constexpr std::array<std::size_t, 6> sizes{4, 64'000, 256'000, 1'000'000, 4'000'000, 16'000'000};
  std::vector<PingPong> times;
  for (const std::size_t size : sizes) {
    std::vector<std::byte> bytes(size);
    bounce(peers, bytes);  // the first one sets up the connection
    std::vector<double> one_way;
    for (int i = 0; i < repeats_of(size, repeats); ++i)
      one_way.push_back(0.5 * seconds_taken([&] { bounce(peers, bytes); }));
    times.push_back({.bytes = size, .one_way_s = median(std::move(one_way))});
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
