// A sign and one of two magnitudes: small changes apart from large movers.
//   low, high = the means of the group's magnitudes up to and above a boundary, which starts at their mean and is then
//               moved four times to the middle between the two (Lloyd's algorithm)
//   q(v) = sign(v) · the nearer of low and high
// Aji and Heafield, EMNLP 2017, sections 5.4 and 6 (aji2017sparse): that two bits are enough where one is not, and for
// what; the levels are Lloyd's (lloyd1982least).
// Deviates from the paper in: the paper does not say how its two bits are spent; levels are rounded to 12 significant
// bits.
// Error: |v − q(v)| ≤ max |v| − min |v| of the group (and 2^−12 of it for the rounding); its mean square is no larger
// than that of one magnitude for all.
// Cost: 2 bits a value and 8 bytes a group; 6 passes; no state.
#include <limits>

#include "sparsify/quantisers/groups.hpp"
#include "sparsify/quantisers/sides.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr double everything = std::numeric_limits<double>::infinity();
constexpr std::size_t header = 2 * sizeof(float);  // of a group

/// `values` is not empty.
Centres levels_of(std::span<const float> values) {
  Centres centres = centres_of(sum_sides(values, -everything, everything));
  for (int move = 0; move < boundary_moves; ++move)
    centres = centres_of(sum_sides(values, -centres.boundary(), centres.boundary()));
  return as_sent(centres);
}

class TwoBit final : public Quantiser {
 public:
  bool exact() const override { return false; }
  double error_bound(std::span<const float> group, float) const override {
    return range_of_magnitudes(group) + 0x1p-12 * largest_magnitude(group);
  }
  // Drift correction on label-sorted MNIST, strength c: a packet an iteration trains with c = 0.1 and diverges with
  // 0.2; an adaptive trigger trains with 0.05 and diverges with 0.1. So c / 10, c being 1 at most.
  double sends_to_settle() const override { return 10.0; }
  GroupCode group_code() const override { return GroupCode::two_bit; }
  std::size_t bound(std::size_t count, std::size_t groups) const override {
    return header * groups + bytes_of_bits(2 * count);
  }

  std::size_t encode(std::span<const float> values, std::span<const std::size_t> group_ends, float,
                     std::span<std::byte> out) const override {
    require_room("quantiser two_bit", bound(values.size(), group_ends.size()), out.size());
    const auto bits = out.subspan(header * group_ends.size(), bytes_of_bits(2 * values.size()));
    std::ranges::fill(bits, std::byte{0});
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const Centres levels = levels_of(values.subspan(first, end - first));
      store(static_cast<float>(levels.low), out, header * group);
      store(static_cast<float>(levels.high), out, header * group + sizeof(float));
      pack<2>(bits, first, end, [&](std::size_t i) {
        return (values[i] < 0.0F ? 1 : 0) | (nearer_high(std::abs(values[i]), levels.low, levels.high) ? 2 : 0);
      });
    });
    return bound(values.size(), group_ends.size());
  }

  void decode(std::span<const std::byte> in, std::span<const std::size_t> group_ends,
              std::span<float> values) const override {
    require_bytes("two_bit", values.size(), bound(values.size(), group_ends.size()), in.size());
    const auto bits = in.subspan(header * group_ends.size());
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const float low = load_level(in, header * group, "two_bit", values.size());
      const float high = load_level(in, header * group + sizeof(float), "two_bit", values.size());
      unpack<2>(bits, first, end, {low, -low, high, -high}, values);
    });
  }
};

std::unique_ptr<Quantiser> make_two_bit(Config&) { return std::make_unique<TwoBit>(); }

}  // namespace

QuantiserEntry two_bit_quantiser() {
  return {.name = "two_bit",
          .summary = "a sign and one of two magnitudes a group: small changes apart from large movers",
          .equation = "q(v) = sign(v) · the nearer of low and high, the centres of the group's magnitudes",
          .cost = "2 bits a value, 8 bytes a group; error ≤ max |v| − min |v|; 6 passes; no state",
          .citation = "aji2017sparse, sections 5.4 and 6; centres: lloyd1982least",
          .make = make_two_bit};
}

}  // namespace hearsay
