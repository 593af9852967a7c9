// 8-bit integers and one scale a group.
//   scale = max |v| / 127, rounded up to 12 significant bits;  q(v) = scale · round(v / scale)
// No paper; symmetric uniform quantisation.
// Deviates from the paper in: nothing.
// Error: |v − q(v)| ≤ scale / 2 ≤ max |v| · 0.00394.
// Cost: 1 byte a value and 4 a group; 2 passes; no state.
#include "sparsify/quantisers/groups.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr float largest = 127.0F;

float scale_of(std::span<const float> values) {
  float most = 0.0F;
  for (const float value : values) most = std::max(most, std::abs(value));
  return level_above(static_cast<double>(most) / largest);
}

/// scale · number; beyond fp32's largest, which only the group's own maximum can be by rounding, that one.
float scaled(float scale, std::int8_t number) {
  const double product = static_cast<double>(scale) * number;
  constexpr double limit = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(product, -limit, limit));
}

class Int8 final : public Quantiser {
 public:
  bool exact() const override { return false; }
  std::size_t bytes(std::size_t count, std::size_t groups) const override { return sizeof(float) * groups + count; }

  void encode(std::span<const float> values, std::span<const std::size_t> group_ends,
              std::span<std::byte> out) const override {
    require_room("quantiser int8", bytes(values.size(), group_ends.size()), out.size());
    const std::size_t numbers = sizeof(float) * group_ends.size();
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const float scale = scale_of(values.subspan(first, end - first));
      store(scale, out, sizeof(float) * group);
      for (std::size_t i = first; i < end; ++i) {
        const float number = scale > 0.0F ? std::nearbyint(values[i] / scale) : 0.0F;
        store(static_cast<std::int8_t>(std::clamp(number, -largest, largest)), out, numbers + i);
      }
    });
  }

  void decode(std::span<const std::byte> in, std::span<const std::size_t> group_ends,
              std::span<float> values) const override {
    require_bytes("int8", values.size(), bytes(values.size(), group_ends.size()), in.size());
    const std::size_t numbers = sizeof(float) * group_ends.size();
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const float scale = load_level(in, sizeof(float) * group, "int8", values.size());
      for (std::size_t i = first; i < end; ++i) values[i] = scaled(scale, load<std::int8_t>(in, numbers + i));
    });
  }
};

std::unique_ptr<Quantiser> make(Config&) { return std::make_unique<Int8>(); }

}  // namespace

QuantiserEntry int8_quantiser() {
  return {.name = "int8",
          .summary = "8-bit integers times one scale a group",
          .equation = "q(v) = scale · round(v / scale), scale = max |v| / 127",
          .cost = "1 byte a value, 4 a group; error ≤ scale / 2; 2 passes; no state",
          .citation = "none",
          .make = make};
}

}  // namespace hearsay
