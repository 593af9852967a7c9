// Values as they are: 32-bit floats, little endian.
//   q(v) = v, every bit of it
// No paper.
// Deviates from the paper in: nothing.
// Error: none. Cost: 4 bytes a value; one pass; no state.
#include "sparsify/magnitude.hpp"
#include "sparsify/quantisers/groups.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

class None final : public Quantiser {
 public:
  bool exact() const override { return true; }
  double error_bound(std::span<const float>, float) const override { return 0.0; }
  std::size_t bound(std::size_t count, std::size_t) const override { return sizeof(float) * count; }

  std::size_t encode(std::span<const float> values, std::span<const std::size_t> group_ends, float,
                     std::span<std::byte> out) const override {
    require_room("quantiser none", bound(values.size(), group_ends.size()), out.size());
    store_all(values, out);
    return bound(values.size(), group_ends.size());
  }
  void decode(std::span<const std::byte> in, std::span<const std::size_t> group_ends,
              std::span<float> values) const override {
    require_bytes("none", values.size(), bound(values.size(), group_ends.size()), in.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = load<float>(in, sizeof(float) * i);
      if (magnitude_bits(values[i]) >= infinity_bits)
        refuse_values("none", values.size(), "value " + std::to_string(i) + " is " + std::to_string(values[i]));
    }
  }
};

std::unique_ptr<Quantiser> make_none(Config&) { return std::make_unique<None>(); }

}  // namespace

QuantiserEntry none_quantiser() {
  return {.name = "none",
          .summary = "values as they are, 32-bit floats",
          .equation = "q(v) = v",
          .cost = "4 bytes a value; exact; one pass; no state",
          .citation = "none",
          .make = make_none};
}

}  // namespace hearsay
