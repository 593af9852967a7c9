// 8-bit integers and one scale a group.
//   scale = max |v| / 127, rounded up to 12 significant bits;  q(v) = scale · round(v / scale)
// No paper; symmetric uniform quantisation.
// Deviates from the paper in: nothing.
// Error: |v − q(v)| ≤ scale / 2 ≤ max |v| · 0.00394.
// Cost: 1 byte a value and 4 a group; 2 passes; no state.
#include "base/loops/vector_code.hpp"
#include "sparsify/quantisers/groups.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

class Int8 final : public Quantiser {
 public:
  bool exact() const override { return false; }
  double error_bound(std::span<const float> group, float) const override {
    return 0.00394 * static_cast<double>(largest_magnitude(group));
  }
  GroupCode group_code() const override { return GroupCode::int8; }
  std::size_t bound(std::size_t count, std::size_t groups) const override { return sizeof(float) * groups + count; }

  std::size_t encode(std::span<const float> values, std::span<const std::size_t> group_ends, float,
                     std::span<std::byte> out) const override {
    require_room("quantiser int8", bound(values.size(), group_ends.size()), out.size());
    const std::size_t numbers = sizeof(float) * group_ends.size();
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const float scale = int8_scale(largest_magnitude(values.subspan(first, end - first)));
      store(scale, out, sizeof(float) * group);
      std::byte* const to = out.data() + numbers;
      in_vector_code([=]() __attribute__((always_inline)) {
        for (std::size_t i = first; i < end; ++i) to[i] = static_cast<std::byte>(to_int8(values[i], scale));
      });
    });
    return bound(values.size(), group_ends.size());
  }

  void decode(std::span<const std::byte> in, std::span<const std::size_t> group_ends,
              std::span<float> values) const override {
    require_bytes("int8", values.size(), bound(values.size(), group_ends.size()), in.size());
    const std::size_t numbers = sizeof(float) * group_ends.size();
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const float scale = load_level(in, sizeof(float) * group, "int8", values.size());
      const std::byte* const from = in.data() + numbers;
      in_vector_code([=]() __attribute__((always_inline)) {
        for (std::size_t i = first; i < end; ++i) values[i] = from_int8(scale, static_cast<std::int8_t>(from[i]));
      });
    });
  }
};

std::unique_ptr<Quantiser> make_int8(Config&) { return std::make_unique<Int8>(); }

}  // namespace

QuantiserEntry int8_quantiser() {
  return {.name = "int8",
          .summary = "8-bit integers times one scale a group",
          .equation = "q(v) = scale · round(v / scale), scale = max |v| / 127",
          .cost = "1 byte a value, 4 a group; error ≤ scale / 2; 2 passes; no state",
          .citation = "none",
          .make = make_int8};
}

}  // namespace hearsay
