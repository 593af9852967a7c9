// k positions at random, whatever the values.
//   k = kept_count(density, n);  indices = a uniformly drawn k-subset of {0, …, n − 1}
// Stich, Cordonnier and Jaggi, Sparsified SGD with memory, NeurIPS 2018 (stich2018sparsified): rand_k.
// Deviates from the paper in: drawn from the stream (seed, number of the call), so ranks that select equally often from
// equally many values keep the same positions; the paper draws on every worker for itself.
// Cost: one read of the values (the check for NaN and infinities), at most 1.4·min(k, n − k) draws on average and their
// sorting; n bits and 4·min(k, n − k) bytes, kept from call to call.
#include "base/random.hpp"
#include "sparsify/search/positions.hpp"
#include "sparsify/selectors/density.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

class RandomK final : public Selector {
 public:
  explicit RandomK(Config& config) : density_(read_density(config)), seed_(read_selector_seed(config)) {}

  std::unique_ptr<Selector> fresh() const override {
    auto same = std::make_unique<RandomK>(*this);
    same->calls_ = 0;
    return same;
  }
  void select(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices) override {
    const std::size_t n = values.size();
    require_selectable(k, n);
    require_finite(values);
    Random random(stream_seed(seed_, "random selector", calls_++));
    positions_.draw(random, k, n, indices);
  }
  std::size_t most(std::size_t k, std::size_t) const override { return k; }
  double density() const override { return density_; }
  void state(Archive& archive) override { archive.value("selections so far", calls_); }

 private:
  double density_;
  std::uint64_t seed_;
  std::uint64_t calls_ = 0;
  PositionDraw positions_;
};

std::unique_ptr<Selector> make_random(Config& config) { return std::make_unique<RandomK>(config); }

}  // namespace

SelectorEntry random_selector() {
  return {.name = "random",
          .summary = "k positions at random, the same on ranks that select equally often",
          .equation = "indices = a uniformly drawn k-subset of {0, …, n − 1}",
          .cost = "one read of the values, about min(k, n − k) draws and their sorting; n bits of scratch",
          .citation = "stich2018sparsified",
          .make = make_random};
}

}  // namespace hearsay
