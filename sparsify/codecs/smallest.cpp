// Whichever of the other codecs is shortest for this message.
//   first byte: the codec's place in the table (sparsify/table.cpp); then its bytes
// No paper.
// Deviates from the paper in: nothing.
// Cost: 1 byte more than the shortest of `plain`, `delta`, `bitmap` and `golomb`; the passes of the one chosen, and one
// more to measure; no state.
#include <algorithm>
#include <limits>
#include <ranges>

#include "sparsify/bytes.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr std::string_view own_name = "smallest";

class Smallest final : public PositionCoder {
 public:
  Smallest() {
    for (const PositionCoderEntry& entry : position_coders()) {
      if (entry.name == own_name) continue;
      Config defaults;
      coders_.push_back(entry.make(defaults));
    }
  }

  std::size_t bound(std::size_t k, std::size_t n) const override {
    const auto bounds = [&](const auto& coder) { return coder->bound(k, n); };
    return 1 + std::ranges::min(coders_ | std::views::transform(bounds));
  }
  std::size_t bytes(std::span<const std::uint32_t> indices, std::size_t n) const override {
    return 1 + coders_[shortest(indices, n)]->bytes(indices, n);
  }

  std::size_t encode(std::span<const std::uint32_t> indices, std::size_t n, std::span<std::byte> out) const override {
    const std::size_t place = shortest(indices, n);
    require_room("smallest codec", 1, out.size());
    store(static_cast<std::uint8_t>(place), out, 0);
    return 1 + coders_[place]->encode(indices, n, out.subspan(1));
  }

  std::size_t decode(std::span<const std::byte> in, std::size_t count, std::size_t n,
                     std::vector<std::uint32_t>& indices) const override {
    if (in.empty()) refuse_positions(std::string(own_name), count, n, "no bytes");
    const auto place = static_cast<std::size_t>(in[0]);
    if (place >= coders_.size()) refuse_positions(std::string(own_name), count, n, "form " + std::to_string(place));
    return 1 + coders_[place]->decode(in.subspan(1), count, n, indices);
  }

 private:
  /// The first of the shortest ones.
  std::size_t shortest(std::span<const std::uint32_t> indices, std::size_t n) const {
    std::size_t best = 0, least = std::numeric_limits<std::size_t>::max();
    for (std::size_t place = 0; place < coders_.size(); ++place) {
      const std::size_t length = coders_[place]->bytes(indices, n);
      if (length >= least) continue;
      best = place;
      least = length;
    }
    return best;
  }

  std::vector<std::unique_ptr<PositionCoder>> coders_;
};

std::unique_ptr<PositionCoder> make_smallest(Config&) { return std::make_unique<Smallest>(); }

}  // namespace

PositionCoderEntry smallest_coder() {
  return {.name = "smallest",
          .summary = "whichever of the other codecs is shortest for the message",
          .equation = "min(plain, delta, bitmap, golomb), and one byte that says which",
          .cost = "1 byte more than the shortest of the others; one more pass to measure; no state",
          .citation = "none",
          .make = make_smallest};
}

}  // namespace hearsay
