// A sign; the magnitude is the group's.
//   centre: threshold   q(v) = ±min |v|, the smallest magnitude that is not 0: what selection by size let pass
//   centre: mean        q(v) = the mean of the values ≥ 0, or that of the values < 0, over all that is sent
//   centre: row_mean    the same over each row of a tensor
// Aji and Heafield, EMNLP 2017, section 5.4 (aji2017sparse); threshold: strom2015scalable; means of both signs, by
// column: dryden2016communication, after seide2014onebit.
// Deviates from the paper in: rows (a tensor's first dimension) where the paper has the columns of its matrices; levels
// are rounded to 12 significant bits; a 0 counts as positive.
// Error: with `threshold` |v − q(v)| = |v| − min |v|, else at most the largest minus the smallest value of that sign in
// the group (and 2^−12 of the level for the rounding).
// `threshold` suits small densities: one tiny value among those kept makes all tiny, and the large ones stay owed.
// Cost: 1 bit a value and 4 bytes (threshold) or 8 (means) a group; 2 passes; no state.
#include <array>
#include <limits>

#include "sparsify/quantisers/groups.hpp"
#include "sparsify/quantisers/sides.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

enum class Centre { threshold, mean, row_mean };

Centre read_centre(Config& config) {
  const std::string name =
      config.choice("centre", "mean", {"threshold", "mean", "row_mean"},
                    "magnitude of a sign: the smallest one sent, or the mean of its values over all or over each row");
  if (name == "threshold") return Centre::threshold;
  return name == "mean" ? Centre::mean : Centre::row_mean;
}

/// Magnitudes of values ≥ 0 and of values < 0.
using TwoLevels = std::array<float, 2>;

TwoLevels smallest_magnitude(std::span<const float> values) {
  float smallest = std::numeric_limits<float>::max();
  bool all_zero = true;
  for (const float value : values) {
    if (value == 0.0F) continue;
    smallest = std::min(smallest, std::abs(value));
    all_zero = false;
  }
  const float magnitude = all_zero ? 0.0F : level(smallest);
  return {magnitude, magnitude};
}

TwoLevels means(std::span<const float> values) {
  const Sides sides = sum_sides(values, 0.0, std::numeric_limits<double>::infinity());
  return {mean_level(sides, 0), mean_level(sides, 1)};
}

class OneBit final : public Quantiser {
 public:
  explicit OneBit(Config& config) : centre_(read_centre(config)) {}

  bool exact() const override { return false; }
  double error_bound(std::span<const float> group, float value) const override {
    const double rounding = 0x1p-12 * largest_magnitude(group), range = range_of_magnitudes(group);
    if (centre_ != Centre::threshold) return range + rounding;
    return range - (largest_magnitude(group) - std::abs(static_cast<double>(value))) + rounding;
  }
  // Not measured: a guess, twice that of two_bit.
  double sends_to_settle() const override { return 20.0; }
  GroupCode group_code() const override {
    if (centre_ == Centre::row_mean) return GroupCode::none;
    return centre_ == Centre::mean ? GroupCode::one_bit_mean : GroupCode::one_bit_threshold;
  }
  bool by_rows() const override { return centre_ == Centre::row_mean; }
  std::size_t bound(std::size_t count, std::size_t groups) const override {
    return header() * groups + bytes_of_bits(count);
  }

  std::size_t encode(std::span<const float> values, std::span<const std::size_t> group_ends, float,
                     std::span<std::byte> out) const override {
    require_room("quantiser one_bit", bound(values.size(), group_ends.size()), out.size());
    const auto bits = out.subspan(header() * group_ends.size(), bytes_of_bits(values.size()));
    std::ranges::fill(bits, std::byte{0});
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const auto members = values.subspan(first, end - first);
      const TwoLevels levels = centre_ == Centre::threshold ? smallest_magnitude(members) : means(members);
      for (std::size_t side = 0; side < levels_sent(); ++side)
        store(levels[side], out, header() * group + sizeof(float) * side);
      pack<1>(bits, first, end, [&](std::size_t i) { return values[i] < 0.0F ? 1 : 0; });
    });
    return bound(values.size(), group_ends.size());
  }

  void decode(std::span<const std::byte> in, std::span<const std::size_t> group_ends,
              std::span<float> values) const override {
    require_bytes("one_bit", values.size(), bound(values.size(), group_ends.size()), in.size());
    const auto bits = in.subspan(header() * group_ends.size());
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const float positive = load_level(in, header() * group, "one_bit", values.size());
      const float negative =
          levels_sent() == 1 ? positive : load_level(in, header() * group + sizeof(float), "one_bit", values.size());
      unpack<1>(bits, first, end, {positive, -negative}, values);
    });
  }

 private:
  std::size_t levels_sent() const { return centre_ == Centre::threshold ? 1 : 2; }
  std::size_t header() const { return sizeof(float) * levels_sent(); }  // bytes of a group

  Centre centre_;
};

std::unique_ptr<Quantiser> make_one_bit(Config& config) { return std::make_unique<OneBit>(config); }

}  // namespace

QuantiserEntry one_bit_quantiser() {
  return {.name = "one_bit",
          .summary = "a sign; the magnitude is the smallest one sent, or the mean over all or over each row",
          .equation = "q(v) = ±min |v|, or the mean of the values of v's sign",
          .cost = "1 bit a value, 4 or 8 bytes a group; 2 passes; no state",
          .citation = "aji2017sparse, section 5.4; strom2015scalable; dryden2016communication; seide2014onebit",
          .make = make_one_bit};
}

}  // namespace hearsay
