// Every value of at least a fixed magnitude.
//   indices = {i : |x_i| ≥ threshold}, whatever k
// Strom, Scalable distributed DNN training using commodity GPU cloud computing, Interspeech 2015 (strom2015scalable).
// Deviates from the paper in: the values keep their size here (the paper sends ±threshold: that is the quantiser
// `one_bit` with `centre: threshold`); a value of just the threshold is sent.
// Cost: 2 reads of the values; how many travel is up to them: from none to n, and a mailbox has room for n. No state.
#include "sparsify/magnitude.hpp"
#include "sparsify/search/positions.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

class Threshold final : public Selector {
 public:
  explicit Threshold(Config& config)
      : threshold_(static_cast<float>(config.real("threshold", 0.001, Range::at_least(0.0),
                                                  "magnitude from which on a value is kept; 0: all values are"))) {}

  std::unique_ptr<Selector> fresh() const override { return std::make_unique<Threshold>(*this); }
  void select(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices) override {
    require_selectable(k, values.size());
    require_finite(values);
    indices.clear();
    collect_from(magnitude_bits(threshold_), values, indices);
  }
  std::size_t most(std::size_t, std::size_t n) const override { return n; }
  double reads(std::size_t) const override { return 2.0; }  // finite? the collection

 private:
  float threshold_;
};

std::unique_ptr<Selector> make_threshold(Config& config) { return std::make_unique<Threshold>(config); }

}  // namespace

SelectorEntry threshold_selector() {
  return {.name = "threshold",
          .summary = "every value of at least a fixed magnitude, however many there are",
          .equation = "indices = {i : |x_i| ≥ threshold}",
          .cost = "2 reads of the values; none to n values and positions travel; no state",
          .citation = "strom2015scalable",
          .make = make_threshold};
}

}  // namespace hearsay
