#pragma once
// The training problem of the exchange tests: worker i minimises Σ_e ½ h_ie (x_e − b_ie)², with noise on its gradient.
// Every worker has its own optimum b_i, so replicas drift apart between exchanges; the noise is a function of (worker,
// iteration), so a run can be repeated and simulated. Values are of very different size from segment to segment.
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "runtime/replica/parameters.hpp"
#include "tests/reference/simulation.hpp"

namespace hearsay::reference {

/// Segments of 1, 7, 64 and 300 floats.
inline Layout small_layout() {
  Layout layout;
  layout.append("scalar", {1});
  layout.append("bias", {7});
  layout.append("weight", {8, 8});
  layout.append("embedding", {3, 100});
  return layout;
}

class Quadratic final : public GradientSource {
 public:
  Quadratic(const Layout& layout, int workers, std::uint64_t seed) : seed_(seed) {
    constexpr double sizes[] = {1.0, 0.1, 3.0, 0.02};
    for (std::size_t s = 0; s < layout.count(); ++s) scale_.resize(scale_.size() + layout[s].length, sizes[s % 4]);
    Random start(stream_seed(seed, "start"));
    for (const double scale : scale_) initial_.push_back(static_cast<float>(scale * start.uniform(-1.0, 1.0)));
    for (int worker = 0; worker < workers; ++worker) {
      Random random(stream_seed(seed, "problem", static_cast<std::uint64_t>(worker)));
      for (const double scale : scale_) {
        curvature_.push_back(static_cast<float>(random.uniform(0.5, 1.5)));
        optimum_.push_back(static_cast<float>(scale * random.uniform(-1.0, 3.0)));
      }
    }
  }

  const std::vector<float>& initial() const { return initial_; }

  /// g ← h_i (x − b_i) + noise; g and x have the layout's size.
  void gradient(int worker, std::int64_t k, std::span<const float> x, std::span<float> g) const override {
    const auto w = static_cast<std::uint64_t>(worker);
    Random noise(stream_seed(seed_, "noise", (w << 32) + static_cast<std::uint64_t>(k)));
    const std::size_t first = w * scale_.size();
    for (std::size_t e = 0; e < g.size(); ++e) {
      const double exact = curvature_[first + e] * (static_cast<double>(x[e]) - optimum_[first + e]);
      g[e] = static_cast<float>(exact + scale_[e] * noise.uniform(-0.5, 0.5));
    }
  }

 private:
  std::uint64_t seed_;
  std::vector<double> scale_;
  std::vector<float> initial_, curvature_, optimum_;  // the latter two (workers, floats)
};

}  // namespace hearsay::reference
