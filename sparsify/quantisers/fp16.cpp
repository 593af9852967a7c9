// Half-precision floats (IEEE 754 binary16), little endian.
//   q(v) = the nearest binary16 number, ties to even; ±65504, the largest one, from there on
// No paper.
// Deviates from the paper in: nothing.
// Error: |v − q(v)| ≤ 2^−11 |v| for 2^−14 ≤ |v| ≤ 65504; ≤ 2^−25 below; |v| − 65504 above. q(q(v)) = q(v).
// Cost: 2 bytes a value; one pass; no state.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/loops/vector_code.hpp"
#include "sparsify/quantisers/groups.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr double largest_half = 65504.0;

[[gnu::always_inline]] inline void write_halves(std::span<const float> values, std::byte* to) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = to_half(values[i]);
    std::memcpy(to + 2 * i, &half, sizeof half);
  }
}

class Fp16 final : public Quantiser {
 public:
  bool exact() const override { return false; }
  double error_bound(std::span<const float>, float value) const override {
    const double magnitude = std::abs(static_cast<double>(value));
    return magnitude < 0x1p-14 ? 0x1p-25 : std::max(0x1p-11 * magnitude, magnitude - largest_half);
  }
  std::size_t bound(std::size_t count, std::size_t) const override { return sizeof(std::uint16_t) * count; }

  std::size_t encode(std::span<const float> values, std::span<const std::size_t> group_ends, float,
                     std::span<std::byte> out) const override {
    require_room("quantiser fp16", bound(values.size(), group_ends.size()), out.size());
    in_vector_code([=]() __attribute__((always_inline)) { write_halves(values, out.data()); });
    return bound(values.size(), group_ends.size());
  }
  void decode(std::span<const std::byte> in, std::span<const std::size_t> group_ends,
              std::span<float> values) const override {
    require_bytes("fp16", values.size(), bound(values.size(), group_ends.size()), in.size());
    if (values.empty()) return;
    // In two loops without a way out, of which compilers make vector code.
    std::uint16_t largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      largest = std::max<std::uint16_t>(largest, half_at(in.data(), i) & 0x7fff);
    if (largest >= half_infinity) refuse_infinity(in, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = to_float(half_at(in.data(), i));
  }

 private:
  static std::uint16_t half_at(const std::byte* bytes, std::size_t i) {
    std::uint16_t half;
    std::memcpy(&half, bytes + 2 * i, sizeof half);
    return half;
  }
  [[noreturn]] static void refuse_infinity(std::span<const std::byte> in, std::size_t count) {
    std::size_t i = 0;
    while ((half_at(in.data(), i) & half_infinity) != half_infinity) ++i;
    refuse_values("fp16", count, "value " + std::to_string(i) + " is not finite");
  }
};

std::unique_ptr<Quantiser> make_fp16(Config&) { return std::make_unique<Fp16>(); }

}  // namespace

QuantiserEntry fp16_quantiser() {
  return {.name = "fp16",
          .summary = "half-precision floats, clamped to ±65504",
          .equation = "q(v) = the nearest binary16 number, ties to even",
          .cost = "2 bytes a value; relative error ≤ 2^−11 from 6.1e-5 to 65504; one pass; no state",
          .citation = "none: IEEE 754 binary16",
          .make = make_fp16};
}

}  // namespace hearsay
