// Triggers on the change itself, through a whole exchange: x against what the neighbours really hold.
#include <doctest/doctest.h>

#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::measure_test {
namespace {

using namespace test;

/// Turns every pair of values of every segment by a small angle: norms stay.
class Rotation final : public reference::GradientSource {
 public:
  void gradient(int, std::int64_t, std::span<const float> x, std::span<float> g) const override {
    for (std::size_t e = 0; e < g.size(); ++e) g[e] = e + 1 < g.size() && e % 2 == 1 ? x[e + 1] : 0.0F;
    for (std::size_t e = 2; e < g.size(); e += 2) g[e] = -x[e - 1];
  }
};

std::uint64_t events_under(const std::string& measure) {
  Layout layout;
  layout.append("fixed", {1});
  layout.append("turning", {64});
  const std::vector<float> initial(layout.size(), 1.0F);
  const std::string trigger =
      "trigger: {name: constant, threshold: 0.5, warmup_iterations: 0, measure: " + measure + "}\n";
  return train_locally(ring + eventgrad("{name: arrival}") + trigger, layout, initial, Rotation(),
                       {.ranks = 3, .descent = {.learning_rate = 0.01}, .iterations = 60})
      .totals()
      .events;
}

TEST_CASE("a segment that only turns is silent under the norm and travels under the change") {
  CHECK(events_under("norm") == 0);
  CHECK(events_under("change") > 3);
}

// What a sparse message leaves out stays part of the change: a segment goes on sending until its neighbours have it.
TEST_CASE("under the change a sparse segment sends until its neighbours hold it") {
  Layout layout;
  layout.append("values", {64});
  const std::vector<float> initial(layout.size(), 0.0F);
  const std::string yaml = ring + eventgrad("{name: arrival}") +
                           "trigger: {name: constant, threshold: 1e-3, warmup_iterations: 0, measure: change}\n"
                           "sparsify: {selector: {name: topk, density: 0.25}}\n";
  const auto prepare = [](LocalRank& rank) {
    for (float& v : rank.replica.values.span()) v = 1.0F;  // the same on all: mixing moves nothing
  };
  const JobOutcome job =
      train_locally(yaml, layout, initial, ZeroGradient(),
                    {.ranks = 3, .descent = {.learning_rate = 0.1}, .iterations = 20, .prepare = prepare});
  CHECK(job.totals().events == 3 * 4);  // four quarters, on each of three ranks
}

}  // namespace
}  // namespace hearsay::measure_test
