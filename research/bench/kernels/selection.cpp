// Exact selection of the k largest magnitudes, with a gradient to add (error feedback) and without a history.
#include <memory>
#include <stdexcept>

#include "research/bench/kernels/data.hpp"
#include "research/bench/kernels/suite.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

std::unique_ptr<Selector> topk() {
  Config config = Config::from_text("{name: topk}");
  return chosen_entry(selectors(), config, "topk", "what is selected").make(config);
}

/// A residual in the state that training has: it has found its size, and the selector its level.
class Feedback {
 public:
  Feedback(std::size_t n, double density) : gradients_(n), residual_(n), k_(kept_count(density, n)) {
    constexpr int warmup = 20;
    for (int i = 0; i < warmup; ++i) step();
  }

  /// r ← r + g, the k largest of it taken out.
  void step() {
    selector_->add_and_select(residual_.span(), gradients_.next(), 1.0F, k_, positions_);
    values_.resize(positions_.size());
    for (std::size_t i = 0; i < positions_.size(); ++i)
      values_[i] = std::exchange(residual_.span()[positions_[i]], 0.0F);
    if (positions_.size() != k_) throw std::logic_error("selected " + std::to_string(positions_.size()));
  }

 private:
  GradientSource gradients_;
  FloatBlock residual_;
  std::vector<float> values_;
  std::vector<std::uint32_t> positions_;
  std::unique_ptr<Selector> selector_ = topk();
  std::size_t k_;
};

Kernel with_history(std::size_t n, double density, double at_most) {
  auto feedback = std::make_shared<std::unique_ptr<Feedback>>();
  const std::string size = short_number(static_cast<double>(n));
  return {.name = "select/" + size + "/" + short_number(density),
          .work =
              [=](benchmark::State& state) {
                if (!*feedback) *feedback = std::make_unique<Feedback>(n, density);
                for (auto _ : state) (*feedback)->step();
              },
          .floor = "add/" + size,
          .target = {Target::Kind::ratio_at_most, at_most},
          .bytes = sizeof(float) * static_cast<double>(n)};
}

Kernel without_history(std::size_t n, double density, double at_most) {
  const std::string size = short_number(static_cast<double>(n));
  return {.name = "topk/" + size + "/" + short_number(density),
          .work =
              [=](benchmark::State& state) {
                const FloatBlock values = gradient_like(2, n);
                const auto selector = topk();
                std::vector<std::uint32_t> positions;
                for (auto _ : state) {
                  selector->select(values.span(), kept_count(density, n), positions);
                  benchmark::DoNotOptimize(positions.data());
                }
              },
          .floor = "read/" + size,
          .target = {at_most > 0.0 ? Target::Kind::ratio_at_most : Target::Kind::none, at_most},
          .bytes = sizeof(float) * static_cast<double>(n)};
}

}  // namespace

void add_selection(std::vector<Kernel>& kernels, std::size_t most_values) {
  for (const std::size_t n : block_lengths(most_values)) {
    kernels.push_back(with_history(n, 0.001, 1.5));
    kernels.push_back(with_history(n, 0.01, 3.0));
    kernels.push_back(with_history(n, 0.1, 4.5));
    kernels.push_back(without_history(n, 0.001, 2.0));
    kernels.push_back(without_history(n, 0.01, 0.0));
    kernels.push_back(without_history(n, 0.1, 0.0));
  }
}

}  // namespace hearsay
