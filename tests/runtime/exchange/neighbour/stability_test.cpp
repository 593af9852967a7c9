// What is called stable converges, what is called unstable diverges, and both as fast as the matrix says.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/exchange/neighbour/correction/strength.hpp"
#include "runtime/exchange/neighbour/linear_iteration.hpp"
#include "runtime/exchange/neighbour/mixing/mixing.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"
#include "trigger/trigger.hpp"

namespace hearsay::stability_test {
namespace {

using namespace test;

/// Rank i minimises Σ_e ½ h_ie (x_e − b_ie)².
class Bowls final : public reference::GradientSource {
 public:
  struct Bowl {
    double curvature, optimum;
  };
  explicit Bowls(std::vector<std::vector<Bowl>> bowls) : bowls_(std::move(bowls)) {}
  void gradient(int rank, std::int64_t, std::span<const float> x, std::span<float> g) const override {
    const auto& bowls = bowls_[static_cast<std::size_t>(rank)];
    for (std::size_t e = 0; e < g.size(); ++e)
      g[e] = static_cast<float>(bowls[e].curvature * (double{x[e]} - bowls[e].optimum));
  }

 private:
  std::vector<std::vector<Bowl>> bowls_;  // (ranks, values)
};

/// All ranks have the largest curvature, 1, in the first value, unlike ones in others, and hardly any in the last.
Bowls unlike(int ranks, std::size_t values, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<Bowls::Bowl>> all(static_cast<std::size_t>(ranks));
  for (auto& bowls : all)
    for (std::size_t e = 0; e < values; ++e) {
      const double largest = e + 1 == values ? 1.0 / 4096 : std::ldexp(1.0, -static_cast<int>(e));
      bowls.push_back({e == 0 ? 1.0 : largest * random.uniform(0.7, 1.0), random.uniform(-1.0, 3.0)});
    }
  return Bowls(std::move(all));
}

/// Curvature 1 and optimum 0, whatever the value and the rank.
Bowls alike(int ranks, std::size_t values) {
  return Bowls({static_cast<std::size_t>(ranks), std::vector<Bowls::Bowl>(values, {1.0, 0.0})});
}

/// A configuration, checked as a run checks it. Throws ConfigError.
struct Checked {
  Checked(const std::string& yaml, int ranks) : Checked(Config::from_text(yaml), ranks) {}
  std::unique_ptr<ExchangePlan> exchange;
  Topology topology;

 private:
  Checked(Config root, int ranks) : exchange(plan_exchange(root)), topology(built(root, *exchange, ranks)) {
    exchange->require_ranks(ranks);
  }
  static Topology built(Config& root, const ExchangePlan& exchange, int ranks) {
    const auto plan = plan_topology(root, exchange);
    root.document().throw_if_invalid();
    return plan->build(ranks);
  }
};

Layout four_values() {
  Layout layout;
  layout.append("a", {3});
  layout.append("b", {1});
  return layout;
}

/// How far the value that moves furthest moves, an iteration each. Ranks begin at 0 or, `apart`, anywhere.
std::vector<double> moves_of(const Checked& run, const Descent& descent, const Bowls& problem, Iteration iterations,
                             bool apart = false) {
  const Layout layout = four_values();
  const std::vector<float> initial(layout.size(), 0.0F);
  const LocalJob job{.topology = run.topology,
                     .layout = layout,
                     .initial = initial,
                     .plan = *run.exchange,
                     .step = descent.response()};
  std::vector<std::vector<double>> of_ranks(static_cast<std::size_t>(run.topology.ranks()));
  struct Rank {
    Rank(LocalRank& its, const Bowls& bowls, const Descent& steps, bool anywhere)
        : here(its), trainer((anywhere ? scatter(its) : void(), its.member), bowls, steps) {
      before.assign(its.replica.values.span().begin(), its.replica.values.span().end());
    }
    static void scatter(LocalRank& its) {
      Random random(stream_seed(5, "scatter", static_cast<std::uint64_t>(its.rank())));
      for (float& value : its.replica.values.span()) value = static_cast<float>(random.uniform(-1.0, 1.0));
    }
    double finish(Iteration k) {
      trainer.finish(k);
      double furthest = 0.0;
      for (std::size_t e = 0; e < before.size(); ++e) {
        const double move = std::abs(double{here.replica.values.span()[e]} - double{before[e]});
        furthest = std::max(furthest, std::isfinite(move) ? move : HUGE_VAL);
        before[e] = here.replica.values.span()[e];
      }
      return furthest;
    }
    LocalRank& here;
    RankTrainer trainer;
    std::vector<float> before{};
  };
  if (run.exchange->moves_at_start()) {
    run_local_ranks(job, [&](LocalRank& its) {
      Rank rank(its, problem, descent, apart);
      for (Iteration k = 0; k < iterations; ++k) {
        rank.trainer.start(k);
        of_ranks[static_cast<std::size_t>(its.rank())].push_back(rank.finish(k));
      }
    });
  } else {
    LocalWorld world(job);
    std::vector<std::unique_ptr<LocalRank>> made;
    std::vector<std::unique_ptr<Rank>> ranks;
    for (int r = 0; r < run.topology.ranks(); ++r) {
      made.push_back(world.make_rank(r));
      ranks.push_back(std::make_unique<Rank>(*made.back(), problem, descent, apart));
    }
    for (Iteration k = 0; k < iterations; ++k) {
      for (auto& rank : ranks) rank->here.engine().poll();  // with a delay rings are full until all have read
      for (auto& rank : ranks) rank->trainer.start(k);
      for (std::size_t r = 0; r < ranks.size(); ++r) of_ranks[r].push_back(ranks[r]->finish(k));
    }
  }
  std::vector<double> furthest(of_ranks[0]);
  for (const auto& moves : of_ranks)
    for (std::size_t k = 0; k < moves.size(); ++k) furthest[k] = std::max(furthest[k], moves[k]);
  return furthest;
}

double most_of(const std::vector<double>& moves, std::size_t first, std::size_t end) {
  return *std::max_element(moves.begin() + static_cast<std::ptrdiff_t>(first),
                           moves.begin() + static_cast<std::ptrdiff_t>(end));
}

/// Whether moves grow without end, or would if there were numbers for it.
bool diverges(const Checked& run, const Descent& descent, std::uint64_t seed) {
  constexpr std::size_t quarter = 300;
  constexpr double little = 1e-3, much = 1e3;
  try {
    const Bowls problem = unlike(run.topology.ranks(), four_values().size(), seed);
    const std::vector<double> moves = moves_of(run, descent, problem, 4 * quarter);
    const double second = most_of(moves, quarter, 2 * quarter), third = most_of(moves, 2 * quarter, 3 * quarter),
                 last = most_of(moves, 3 * quarter, 4 * quarter);
    return !std::isfinite(last) || (last > little && last > third && last > 2.0 * second) ||
           (last > much && last > 0.9 * second);
  } catch (const DivergenceError&) {
    return true;
  }
}

// Every table along a graph, whatever stands in it. What does not go together, or is not known, is drawn again.
class Draws {
 public:
  struct Drawn {
    std::string yaml;
    int ranks;
    Descent descent;
  };
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  Drawn next() {
    return {.yaml = topology() + exchange() + trigger() + quantiser(),
            .ranks = 2 + static_cast<int>(random_.below(7)),
            .descent = {.learning_rate = 1.0, .momentum = one_in(3) ? random_.uniform(0.0, 0.95) : 0.0}};
  }
  double uniform(double low, double high) { return random_.uniform(low, high); }
  std::uint64_t seed() { return random_.below(1U << 30U); }

 private:
  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }
  template <class Table>
  std::string name_of(const Table& table) {
    return std::string(table[random_.below(table.size())].name);
  }
  std::string number(double low, double high) { return std::to_string(random_.uniform(low, high)); }
  std::string silence() { return std::to_string(1 + random_.below(12)); }
  std::string topology() {
    return "topology: {graph: {name: " + name_of(graphs()) + "}, weights: {name: " + name_of(weight_rules()) + "}}\n";
  }
  std::string exchange() {
    std::string text = "exchange: {name: " + name_of(exchanges());
    if (one_in(3)) text += ", delay: 1";
    if (one_in(3)) text += ", strategy: diffusion";
    if (one_in(3)) text += ", gamma: " + number(0.1, 1.0);
    if (one_in(3)) text += ", momentum: " + number(0.0, 0.95);
    if (one_in(3)) text += ", mixing: {name: " + name_of(mixing_rules()) + "}";
    if (one_in(6)) text += ", mixing: {name: difference, gamma: " + number(0.1, 1.0) + "}";
    if (one_in(3)) text += ", correction: {name: drift, strength: " + number(0.05, 2.0) + "}";
    if (one_in(6)) text += ", correction: {name: drift}";
    return text + "}\n";
  }
  std::string trigger() {
    if (one_in(2)) return "";
    if (one_in(2)) return "trigger: {name: periodic, period: " + silence() + "}\n";
    return "trigger: {name: " + name_of(triggers()) + ", maximum_silence: " + silence() + "}\n";
  }
  std::string quantiser() { return one_in(3) ? "sparsify: {quantiser: {name: " + name_of(quantisers()) + "}}\n" : ""; }

  Random random_;
};

/// What was said of a configuration, and what came of it; nothing where there is nothing to compare.
struct Verdict {
  bool called_stable, diverged;
};
std::optional<Verdict> judge(Draws& draws, Draws::Drawn drawn) try {
  const Checked run(drawn.yaml, drawn.ranks);
  const auto known = run.exchange->stability(run.topology, drawn.descent.response());
  if (!known || known->claim == Stability::Claim::if_equal) return std::nullopt;
  double& eta = drawn.descent.learning_rate;
  eta = (known->most_step > 0.0 ? known->most_step : 0.5) * std::exp2(draws.uniform(-1.7, 1.3));
  const bool stable = eta < known->most_step;
  if (stable ? known->silence.has_value() : known->claim != Stability::Claim::sharp) return std::nullopt;
  const Verdict verdict{stable, diverges(run, drawn.descent, draws.seed())};
  INFO(drawn.yaml << drawn.ranks << " ranks, momentum " << drawn.descent.momentum << ", rate " << eta);
  INFO("said: ", stability_text(known));
  CHECK_FALSE((verdict.called_stable && verdict.diverged));
  return verdict;
} catch (const ConfigError&) {
  return std::nullopt;
}

/// Always the same unless another one is asked for. Known to fail: 205, whose correction is within the rounding of c, 8
/// significant bits, of the strength that no step stands.
std::uint64_t seed_of_draws() {
  const char* const asked = std::getenv("HEARSAY_TEST_SEED");
  const std::uint64_t seed = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 1;
  MESSAGE("HEARSAY_TEST_SEED=" << seed << " repeats these draws");
  return seed;
}

TEST_CASE(
    "of 500 drawn configurations none that is called stable diverges, and of the others a tenth at most "
    "converges" *
    doctest::test_suite("arithmetic")) {
  Draws draws(seed_of_draws());
  int stable = 0, unstable = 0, converged = 0;
  while (stable + unstable < 500) {
    const std::optional<Verdict> verdict = judge(draws, draws.next());
    if (!verdict) continue;
    ++(verdict->called_stable ? stable : unstable);
    if (!verdict->called_stable && !verdict->diverged) ++converged;
  }
  MESSAGE(stable << " called stable; " << unstable << " called unstable, of which " << converged << " converge");
  CHECK(stable > 100);
  CHECK(unstable > 100);
  CHECK(10 * converged <= unstable);
}

struct Model {
  std::string exchange;
  LinearIteration iteration;
  double momentum = 0.0;
};
std::vector<Model> models() {
  const auto c = [](double strength) { return [strength](int, int) { return strength; }; };
  const std::string drift = "correction: {name: drift, strength: 0.4}";
  return {{"{name: dpsgd}", {.own_values = true}},
          {"{name: dpsgd}", {.own_values = true}, 0.6},
          {"{name: dpsgd, strategy: diffusion}", {.strategy = Strategy::diffusion, .own_values = true}},
          {"{name: dpsgd, delay: 1}", {.own_values = true, .delay = 1}},
          {"{name: dpsgd, " + drift + "}", {.own_values = true, .strength = c(0.4)}, 0.5},
          {"{name: dpsgd, delay: 1, " + drift + "}", {.step = 0.5, .delay = 1, .strength = c(0.4)}},
          {"{name: eventgrad, mixing: {name: difference, gamma: 0.3}}\ntrigger: {name: constant, threshold: 1e30, "
           "maximum_silence: 3, warmup_iterations: 0}",
           {.step = 0.3, .pace = {3, 3}}},
          {"{name: eventgrad, mixing: {name: arrival}, " + drift +
               "}\ntrigger: {name: periodic, period: 4, warmup_iterations: 0}",
           {.by_events = true, .pace = {4, 4}, .strength = c(0.4)}},
          {"{name: quasi_global_momentum, momentum: 0.7}", {.own_values = true, .way = 0.7}},
          {"{name: quasi_global_momentum, momentum: 0.7, delay: 1}", {.own_values = true, .delay = 1, .way = 0.7}},
          {"{name: momentum_tracking, momentum: 0.6}", {.tracking = LinearIteration::Tracking{.momentum = 0.6}}},
          {"{name: motef, momentum: 0.6, gamma: 0.7}",
           {.step = 0.7, .tracking = LinearIteration::Tracking{.momentum = 0.6, .gain = 0.4}}},
          {"{name: cedas, gamma: 0.8}",
           {.strategy = Strategy::diffusion, .step = 0.4, .strength = c(1.0), .in_step = false}}};
}

TEST_CASE("models move apart, and together, as fast as the matrix of an iteration says") {
  constexpr int ranks = 6;
  for (const Model& model : models())
    for (const std::string graph : {"ring", "star", "complete"})
      for (const double a : {0.05, 0.6, 1.6}) {
        const Checked run("topology: {graph: {name: " + graph + "}}\nexchange: " + model.exchange + "\n", ranks);
        const Descent descent{.learning_rate = a, .momentum = model.momentum};
        const double said = radius(model.iteration, run.topology, descent.response(), a, model.iteration.pace.fewest);
        if (said > 1.3 || said < 0.9) continue;  // numbers end, or are rounded, before the slowest mode is alone
        const std::vector<double> moves = moves_of(run, descent, alike(ranks, four_values().size()), 240, true);
        const double measured = std::pow(most_of(moves, 216, 240) / most_of(moves, 96, 120), 1.0 / 120);
        CAPTURE(model.exchange);
        CAPTURE(graph);
        CAPTURE(a);
        CHECK(measured == doctest::Approx(said).epsilon(0.015));
      }
}

// On a ring of even size the weights of an edge's ends allow what the graph does.
TEST_CASE("by default drift correction has half of the strength that the matrix of an iteration stands") {
  for (const int ranks : {4, 6, 8}) {
    const Topology topology = Plan(std::string(ring) + dpsgd).topology(ranks);
    for (const LinearIteration& iteration :
         {LinearIteration{}, LinearIteration{.step = 0.5}, LinearIteration{.step = 0.3, .delay = 1}}) {
      const double most = EdgeStrength(topology, 0, 1).most(10.0, iteration.step, iteration.delay > 0, 1.0);
      CHECK(most == doctest::Approx(0.5 * most_strength(iteration, topology)).epsilon(1.0 / 256));
    }
  }
}

TEST_CASE("the stability of an exchange is a sentence") {
  using Claim = Stability::Claim;
  CHECK(stability_text(std::nullopt) == "not known for this exchange, schedule, code or optimizer");
  CHECK(stability_text(Stability{.most_step = 2.0 / 3, .halves = 2.5}) ==
        "steps up to ηL = 0.667, L being the largest curvature (one rank alone: 2); a distance between ranks halves "
        "every 3 iterations");
  CHECK(stability_text(Stability{.most_step = 0.5, .claim = Claim::if_equal, .silence = 8}) ==
        "where silences are equal, steps up to ηL = 0.5, L being the largest curvature (one rank alone: 2), while no "
        "silence is longer than 8; a distance between ranks halves in an iteration");
  CHECK(stability_text(Stability{}) == "unstable, however short steps are");
  CHECK(stability_text(Stability{.claim = Claim::at_least}) == "not known: no length of a step is sure to be stable");
}

TEST_CASE("the margins of textbooks") {
  const auto most = [](const std::string& exchange, const std::string& graph, int ranks,
                       const StepResponse& step = {}) {
    const Checked run("topology: {graph: {name: " + graph + "}}\nexchange: " + exchange + "\n", ranks);
    return doctest::Approx(run.exchange->stability(run.topology, step)->most_step).epsilon(1e-3);
  };
  CHECK(2.0 - 4.0 / 3 == most("{name: dpsgd}", "ring", 4));
  CHECK(2.0 == most("{name: dpsgd, strategy: diffusion}", "ring", 4));
  CHECK(2.0 / 8 == most("{name: dpsgd, delay: 1}", "complete", 8));
  CHECK(0.5 * std::pow(1.0 - 1.0 / 3, 2) == most("{name: gradient_tracking}", "ring", 4));
  CHECK(2.0 - 4.0 / 3 * (1.0 + 0.3 / 2) == most("{name: dpsgd, correction: {name: drift, strength: 0.3}}", "ring", 4));
  CHECK(2.0 * 1.9 == most("{name: dpsgd, strategy: diffusion}", "complete", 4, {.momentum = 0.9}));
  CHECK(2.0 * 1.9 / 2.8 ==
        most("{name: dpsgd, strategy: diffusion}", "complete", 4, {.momentum = 0.9, .nesterov = true}));
}

}  // namespace
}  // namespace hearsay::stability_test
