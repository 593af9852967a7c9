// Steps are per segment and per iteration: every segment may have a rate of its own, which may change in every step.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/exchange/neighbour/correction/gain.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::rates_test {
namespace {

using namespace test;

/// (segments) the steps of iteration k.
using Steps = std::function<std::vector<StepResponse>(Iteration k)>;

Layout four_segments() {
  Layout layout;
  for (const char* name : {"scalar", "bias", "weight", "scale"})
    layout.append(name, {static_cast<int>(layout.count()) + 1});
  return layout;
}

/// Worker i pulls every value to a point of its own, all with the same curvature.
class Pulls final : public reference::GradientSource {
 public:
  static float target(int worker, std::size_t e) {
    return static_cast<float>((worker * 7 + int(e) * 5) % 11) / 8 - 0.5F;
  }
  void gradient(int worker, std::int64_t, std::span<const float> x, std::span<float> g) const override {
    for (std::size_t e = 0; e < g.size(); ++e) g[e] = x[e] - target(worker, e);
  }
};

/// x of all ranks after so many iterations of SGD with these steps, from 0 on. `finish_tells`: the loop tells a step
/// before `finish` only, and else before `start`.
std::vector<std::vector<float>> descend(const std::string& yaml, int ranks, Iteration iterations, const Steps& steps,
                                        bool finish_tells = false) {
  const Layout layout = four_segments();
  const std::vector<float> initial(layout.size());
  const Plan plan(yaml);
  const Topology topology = plan.topology(ranks);
  const Pulls problem;
  std::vector<std::vector<float>> all(static_cast<std::size_t>(ranks));
  run_local_ranks({.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange(), .step = {}},
                  [&](LocalRank& rank) {
                    for (Iteration k = 0; k < iterations; ++k) {
                      const std::vector<StepResponse> now = steps(k);
                      if (!finish_tells) rank.member.steps(now);
                      rank.member.start(k);
                      const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
                      problem.gradient(rank.rank(), k, x, g);
                      for (SegmentId s = 0; s < layout.count(); ++s)
                        for (float& v : rank.replica.gradients.segment(layout[s]))
                          v *= static_cast<float>(now[s].sign());
                      if (finish_tells) rank.member.steps(now);
                      rank.member.finish(k);
                      for (SegmentId s = 0; s < layout.count(); ++s)
                        for (std::size_t e = layout[s].offset; e < layout[s].offset + layout[s].length; ++e)
                          x[e] -= static_cast<float>(now[s].sign() * *now[s].learning_rate) * g[e];
                      rank.member.stepped(k);
                    }
                    const auto x = rank.replica.values.span();
                    all[static_cast<std::size_t>(rank.rank())] = {x.begin(), x.end()};
                  });
  return all;
}

/// 1 in the end, and before that from 1/25 up to 1, down to nearly 0, and again: what schedules with a warm-up and warm
/// restarts do.
double schedule(Iteration k) {
  constexpr Iteration period = 100;
  const double progress = static_cast<double>(k % period) / period;
  return progress < 0.3 ? 0.04 + 0.96 * progress / 0.3
                        : std::max(1e-6, (1.0 + std::cos((progress - 0.3) / 0.7 * 3.14159265)) / 2);
}
constexpr double rates[] = {0.2, 0.002, 0.05, 0.1};
std::vector<StepResponse> own_rates(Iteration k) {
  std::vector<StepResponse> steps;
  for (const double rate : rates) steps.push_back({.learning_rate = rate * schedule(k)});
  return steps;
}

const std::string adaptive = "trigger: {name: adaptive, horizon: 2, maximum_silence: 8, warmup_iterations: 0}\n";
std::vector<std::string> exchanges_that_measure() {
  const std::string drift = "correction: {name: drift}";
  return {"exchange: {name: dpsgd, " + drift + "}\n",
          "exchange: {name: dpsgd, delay: 1, " + drift + "}\n",
          "exchange: {name: dpsgd, strategy: diffusion, " + drift + "}\n",
          "exchange: {name: eventgrad, mixing: {name: arrival}, " + drift + "}\n" + adaptive,
          "exchange: {name: eventgrad, mixing: {name: difference, gamma: 0.3}, " + drift + "}\n" + adaptive,
          "exchange: {name: eventgrad, mixing: {name: arrival}, " + drift + "}\ntrigger: {name: sparq}\n",
          "exchange: {name: quasi_global_momentum}\n"};
}

TEST_CASE("with rates that differ and change, every segment moves as in a run in which all have its rate") {
  for (const std::string& exchange : exchanges_that_measure()) {
    if (!Plan(ring + exchange).exchange().laws().measures_steps) FAIL(exchange);
    for (const int ranks : {1, 2, 3, 5}) {
      CAPTURE(exchange);
      CAPTURE(ranks);
      const Layout layout = four_segments();
      const auto together = descend(ring + exchange, ranks, 130, own_rates);
      for (SegmentId s = 0; s < layout.count(); ++s) {
        const auto alone = descend(ring + exchange, ranks, 130, [&](Iteration k) {
          return std::vector<StepResponse>(layout.count(), {.learning_rate = rates[s] * schedule(k)});
        });
        const std::size_t first = layout[s].offset, end = first + layout[s].length;
        for (std::size_t r = 0; r < together.size(); ++r)
          CHECK(std::equal(together[r].begin() + static_cast<std::ptrdiff_t>(first),
                           together[r].begin() + static_cast<std::ptrdiff_t>(end),
                           alone[r].begin() + static_cast<std::ptrdiff_t>(first)));
      }
    }
  }
}

// With one curvature the mean of the ranks goes exactly where SGD with all their gradients does.
TEST_CASE("with rates that differ and change, drift correction ends where SGD of the same rates ends" *
          doctest::test_suite("arithmetic")) {
  constexpr Iteration iterations = 1200;
  const Layout layout = four_segments();
  for (const std::string& exchange : exchanges_that_measure()) {
    if (exchange.find("drift") == std::string::npos) continue;
    for (const int ranks : {2, 5, 8}) {
      for (const bool finish_tells : {false, true}) {
        if (finish_tells && exchange.find("sparq") != std::string::npos) continue;
        CAPTURE(exchange);
        CAPTURE(ranks);
        const auto x = descend(ring + exchange, ranks, iterations, own_rates, finish_tells);
        double worst = 0.0;
        for (SegmentId s = 0; s < layout.count(); ++s) {
          double left = 1.0;
          for (Iteration k = 0; k < iterations; ++k) left *= 1.0 - rates[s] * schedule(k);
          for (std::size_t e = layout[s].offset; e < layout[s].offset + layout[s].length; ++e) {
            double mean = 0.0;
            for (int r = 0; r < ranks; ++r) mean += double{Pulls::target(r, e)} / ranks;
            for (const auto& of_rank : x)
              if (const double error = std::abs(of_rank[e] - (1.0 - left) * mean); !(error <= worst)) worst = error;
          }
        }
        CHECK(worst < 1e-3);
      }
    }
  }
}

TEST_CASE("uphill is downhill on the other side") {
  for (const std::string& exchange : exchanges_that_measure()) {
    CAPTURE(exchange);
    const auto uphill = descend(ring + exchange, 3, 130, [](Iteration k) {
      std::vector<StepResponse> steps = own_rates(k);
      for (StepResponse& step : steps) step.maximize = true;
      return steps;
    });
    CHECK(uphill == descend(ring + exchange, 3, 130, own_rates));
  }
}

TEST_CASE("a rate that nobody has told is refused, whatever measures by it, and one of 0 moves nothing") {
  const auto steps_of = [](std::optional<double> rate, double momentum = 0.0) {
    return [=](Iteration) {
      std::vector<StepResponse> steps(4, {.learning_rate = 0.1});
      steps[1] = {.learning_rate = rate, .momentum = momentum};
      return steps;
    };
  };
  for (const std::string& exchange : exchanges_that_measure()) {
    CAPTURE(exchange);
    const bool sparq = exchange.find("sparq") != std::string::npos;
    CHECK_THROWS_WITH_AS(descend(ring + exchange, 1, 1, steps_of(std::nullopt)),
                         doctest::Contains(sparq ? "parameter 1" : "'bias'"), ConfigError);
    CHECK_THROWS_WITH_AS(descend(ring + exchange, 1, 1, steps_of(-0.1)), doctest::Contains("-0.1"), ConfigError);
    CHECK_THROWS_WITH_AS(descend(ring + exchange, 1, 1, steps_of(0.1, 1.0)), doctest::Contains("below 1"), ConfigError);
    for (const auto& x : descend(ring + exchange, 3, 20, steps_of(0.0)))
      for (std::size_t e = 1; e < 3; ++e) CHECK(x[e] == 0.0F);
  }
  CHECK_NOTHROW(descend(ring + std::string(dpsgd), 1, 1, [](Iteration) {
    return std::vector<StepResponse>(4, {.learning_rate = 0.1, .momentum = 0.5});
  }));
}

TEST_CASE("of all rates so far the highest is the gain, over the root of what the optimizer keeps") {
  Layout layout;
  layout.append("a", {4});
  layout.append("b", {2});
  const auto device = processor();
  std::vector<StepResponse> steps(2);
  RunningGain gain(steps, layout, *device);
  CHECK(gain.gains()[0] == 0.0F);
  steps[0] = {.learning_rate = 0.5, .momentum = 0.5};
  steps[1] = {.learning_rate = 2.0, .normalised = StepResponse::Normalised{.memory = 0.5, .from_zero = true}};
  CHECK(gain.gains()[0] == 1.0F);
  CHECK(gain.gains()[1] == 0.0F);
  gain.gradient(std::vector<float>{0, 0, 0, 0, 4, 4});
  steps[0].learning_rate = 0.25;
  CHECK(gain.gains()[0] == 1.0F);
  CHECK(gain.gains()[1] == of_8_bits(2.0 / std::sqrt(0.5 * 16)));
}

}  // namespace
}  // namespace hearsay::rates_test
