// What the drift correction keeps, what it equals, and where it leads.
#include <algorithm>
#include <cmath>
#include <optional>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/exchange/neighbour/correction/gain.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::correction_test {
namespace {

using namespace test;

constexpr const char* complete = "topology: {graph: {name: complete}, weights: {name: uniform}}\n";
constexpr const char* torus = "topology: {graph: {name: torus, rows: 4}, weights: {name: uniform}}\n";
constexpr const char* star = "topology: {graph: {name: star}, weights: {name: metropolis}}\n";

std::string drift(double strength) { return "correction: {name: drift, strength: " + std::to_string(strength) + "}"; }
std::string corrected_dpsgd(double strength, const std::string& more = "") {
  return "exchange: {name: dpsgd, " + drift(strength) + more + "}\n";
}
std::string corrected(const std::string& mixing, double strength, const std::string& more = "") {
  return "exchange: {name: eventgrad, mixing: " + mixing + ", " + drift(strength) + more + "}\n";
}

/// Worker i minimises ½ h_i ‖x − b_i‖²; no noise. The sum has its minimum at Σ h_i b_i / Σ h_i.
class Bowls final : public reference::GradientSource {
 public:
  Bowls(std::size_t values, int workers) : values_(values) {
    Random random(7);
    for (int i = 0; i < workers; ++i) {
      curvature_.push_back(random.uniform(0.5, 1.5));
      for (std::size_t e = 0; e < values; ++e) minimum_.push_back(random.uniform(-1.0, 1.0));
    }
  }
  void gradient(int worker, std::int64_t, std::span<const float> x, std::span<float> g) const override {
    const auto i = static_cast<std::size_t>(worker);
    for (std::size_t e = 0; e < g.size(); ++e)
      g[e] = static_cast<float>(curvature_[i] * (static_cast<double>(x[e]) - minimum_[i * values_ + e]));
  }
  /// The largest distance of a rank's value from the minimum of the sum.
  double distance(const JobOutcome& job) const {
    double most = 0.0;
    for (std::size_t e = 0; e < values_; ++e) {
      double sum = 0.0, weights = 0.0;
      for (std::size_t i = 0; i < curvature_.size(); ++i)
        sum += curvature_[i] * minimum_[i * values_ + e], weights += curvature_[i];
      for (const RankOutcome& rank : job.ranks) {
        const double error = std::abs(rank.x[e] - sum / weights);
        if (!(error <= most)) most = error;  // also if it is not a number
      }
    }
    return most;
  }

 private:
  std::size_t values_;
  std::vector<double> curvature_, minimum_;
};

/// All on one thread, which changes no bit and takes a tenth of the time, unless a rank waits for another one in the
/// middle of a phase: for room, with a delay; for the others' steps, with diffusion.
Ranks fewest_threads(const std::string& yaml) {
  const bool waits = yaml.find("delay") != std::string::npos || yaml.find("diffusion") != std::string::npos;
  return waits ? Ranks::threads : Ranks::one_thread;
}

JobOutcome descend(const std::string& yaml, int ranks, Iteration iterations, const Descent& descent = {},
                   std::optional<Ranks> run = std::nullopt) {
  const Layout layout = reference::small_layout();
  const Bowls problem(layout.size(), ranks);
  const std::vector<float> initial(layout.size(), 1.0F);
  return train_locally(
      yaml, layout, initial, problem,
      {.ranks = ranks, .descent = descent, .iterations = iterations, .run = run.value_or(fewest_threads(yaml))});
}
double distance(const JobOutcome& job) {
  return Bowls(reference::small_layout().size(), int(job.ranks.size())).distance(job);
}

TEST_CASE("on data that differ every rank reaches the minimum of the sum, and stops away from it without correction" *
          doctest::test_suite("arithmetic")) {
  const std::string adaptive = "trigger: {name: adaptive, horizon: 2, maximum_silence: 8, warmup_iterations: 0}\n";
  const std::string periodic = "trigger: {name: periodic, period: 4, warmup_iterations: 0}\n";
  const std::string always = "trigger: {name: always}\n";
  const std::string int8 = "sparsify: {quantiser: {name: int8}}\n";
  const std::string third = "sparsify: {selector: {name: topk, density: 0.3}}\n";
  const auto both = [](const std::string& mixing, double strength, const std::string& rest) {
    return std::pair(corrected(mixing, strength) + rest, eventgrad(mixing) + rest);
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {corrected_dpsgd(0.5), dpsgd},
      {corrected_dpsgd(0.3, ", delay: 1"), "exchange: {name: dpsgd, delay: 1}\n"},
      both("{name: arrival}", 0.5, always),
      both("{name: difference, gamma: 0.5}", 0.5, always),
      both("{name: arrival}", 0.3, adaptive),
      both("{name: difference, gamma: 0.2}", 0.3, adaptive),
      both("{name: arrival}", 0.5, periodic),
      both("{name: arrival}", 0.3, always + int8),
      both("{name: arrival}", 0.3, always + "sparsify: {quantiser: {name: two_bit}}\n"),
      both("{name: difference, gamma: 0.2}", 0.3, always + third),
      both("{name: arrival}", 0.3, always + third),
      both("{name: arrival}", 0.3, periodic + int8)};
  for (const auto& [with, without] : cases) {
    CAPTURE(with);
    CHECK(distance(descend(ring + with, 8, 3000)) < 1e-3);
    CHECK(distance(descend(ring + without, 8, 3000)) > 1e-2);
  }
}

TEST_CASE("the same with momentum, which answers a correction late" * doctest::test_suite("arithmetic")) {
  const std::string periodic = "trigger: {name: periodic, period: 4, warmup_iterations: 0}\n";
  for (const std::string& exchange : {corrected_dpsgd(0.5), corrected("{name: arrival}", 0.5) + periodic}) {
    CAPTURE(exchange);
    CHECK(distance(descend(ring + exchange, 8, 3000, {.learning_rate = 0.01, .momentum = 0.9})) < 1e-3);
  }
  CHECK(distance(descend(ring + std::string(dpsgd), 8, 3000, {.learning_rate = 0.01, .momentum = 0.9})) > 1e-2);
}

// Adam divides every rank's gradient by a root of its own, so that without correction not even the mean of the ranks
// goes where the sum of the losses falls.
TEST_CASE("the same with Adam, whose ranks tell each other how far a gradient moves them" *
          doctest::test_suite("arithmetic")) {
  const std::string periodic = "trigger: {name: periodic, period: 4, warmup_iterations: 0}\n";
  const std::string adaptive = "trigger: {name: adaptive, horizon: 2, maximum_silence: 8, warmup_iterations: 0}\n";
  const std::string int8 = "sparsify: {quantiser: {name: int8}}\n";
  const std::string always = "trigger: {name: always}\n";
  const Descent adam{.learning_rate = 0.02, .adam = true, .falls_to_0_over = 3000};
  for (const std::string& exchange :
       {corrected_dpsgd(0.5), corrected_dpsgd(0.5, ", delay: 1"), corrected("{name: arrival}", 0.5) + periodic,
        corrected("{name: arrival}", 0.5) + adaptive, corrected("{name: arrival}", 0.5) + periodic + int8,
        corrected("{name: difference, gamma: 0.5}", 0.5, ", delay: 1") + always}) {
    CAPTURE(exchange);
    CHECK(distance(descend(ring + exchange, 8, 3000, adam)) < 2e-2);
  }
  CHECK(distance(descend(ring + std::string(dpsgd), 8, 3000, adam)) > 0.1);
}

TEST_CASE("a communication thread changes no bit") {
  const std::string adaptive = "trigger: {name: adaptive, horizon: 2, maximum_silence: 8, warmup_iterations: 0}\n";
  const std::string int8 = "sparsify: {quantiser: {name: int8}}\n";
  for (const std::string& exchange :
       {corrected_dpsgd(0.3, ", delay: 1"), corrected("{name: arrival}", 0.3) + adaptive + int8,
        corrected("{name: difference, gamma: 0.5}", 0.5, ", delay: 1") + adaptive}) {
    for (const Descent& descent : {Descent{}, Descent{.learning_rate = 0.02, .adam = true}}) {
      CAPTURE(exchange);
      const JobOutcome threads = descend(ring + exchange, 8, 60, descent, Ranks::threads_with_communication_threads);
      CHECK(threads.hashes() == descend(ring + exchange, 8, 60, descent).hashes());
    }
  }
}

/// Small whole numbers, every rank its own.
void draw_integers(LocalRank& rank) {
  Random random(stream_seed(5, "start", static_cast<std::uint64_t>(rank.rank())));
  for (float& v : rank.replica.values.span()) v = static_cast<float>(static_cast<int>(random.below(15)) - 7);
}

std::vector<double> sum_over_ranks(const JobOutcome& job) {
  std::vector<double> sum(job.ranks.front().x.size());
  for (const RankOutcome& rank : job.ranks)
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += rank.x[e];
  return sum;
}

// With a gradient of 0 and a rate of 1 the optimizer adds v_i to x_i, here in the last iteration only: the sum of x
// stays only if that of v is 0. Weights are powers of two and what is learnt of a move has 8 significant bits: nothing
// is rounded.
TEST_CASE("what the ranks learn adds up to 0, for any pattern of events") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const ZeroGradient none;
  const auto mixed = [&](const std::string& yaml, int ranks, Iteration iterations) {
    return train_locally(yaml, layout, initial, none,
                         {.ranks = ranks,
                          .descent = {.learning_rate = 1.0, .first_step = iterations - 1},
                          .iterations = iterations,
                          .run = Ranks::threads,  // with diffusion a rank waits before it goes on
                          .prepare = draw_integers});
  };
  const std::string some = "trigger: {name: constant, threshold: 2.0, warmup_iterations: 0, maximum_silence: 2}\n";
  const std::string all = "trigger: {name: always}\n";
  for (const char* graph : {complete, star}) {
    for (const int ranks : {1, 2, 4, 8}) {
      for (const std::string& exchange :
           {corrected_dpsgd(0.5), corrected_dpsgd(0.5, ", delay: 1"), corrected("{name: arrival}", 0.5) + all,
            corrected("{name: arrival}", 0.5) + some, corrected("{name: difference, gamma: 0.5}", 0.5) + some,
            corrected("{name: difference, gamma: 0.5}", 0.5, ", delay: 1") + some,
            corrected_dpsgd(0.5, ", strategy: diffusion"),
            corrected("{name: arrival}", 0.5, ", strategy: diffusion") + some,
            std::string("exchange: {name: dpsgd, correction: {name: drift}}\n"),
            "exchange: {name: eventgrad, mixing: {name: arrival}, correction: {name: drift}}\n" + some}) {
        CAPTURE(exchange);
        CAPTURE(ranks);
        const std::string yaml = graph + exchange;
        CHECK(sum_over_ranks(mixed(yaml, ranks, 3)) == sum_over_ranks(mixed(yaml, ranks, 0)));
      }
    }
  }
}

TEST_CASE("the gain of an optimizer that normalises is the learning rate over the root of the squares that it keeps") {
  Layout layout;
  layout.append("a", {4});
  layout.append("b", {2});
  const auto device = processor();
  const std::vector<float> first{4, 4, -4, 4, 0, 0}, second{8, 8, 8, 8, 2, 2};
  const std::vector<StepResponse> of_mean(
      2, {.learning_rate = 2.0, .normalised = StepResponse::Normalised{.memory = 0.5}});
  const std::vector<StepResponse> of_sum(
      2, {.learning_rate = 2.0, .normalised = StepResponse::Normalised{.epsilon = 1.0}});
  RunningGain mean(of_mean, layout, *device), sum(of_sum, layout, *device);
  CHECK(mean.gains()[0] == 0.0F);
  mean.gradient(first), sum.gradient(first);
  CHECK(mean.gains()[0] == 2.0F / 4);  // 1 - 0.5 is divided out
  CHECK(mean.gains()[1] == 0.0F);
  CHECK(sum.gains()[0] == of_8_bits(2.0 / (4 + 1)));
  mean.gradient(second), sum.gradient(second);
  CHECK(mean.gains()[0] == of_8_bits(2.0 / std::sqrt((16 + 2 * 64) / 3.0)));
  CHECK(mean.gains()[1] == of_8_bits(2.0 / std::sqrt((0 + 2 * 4) / 3.0)));
  CHECK(sum.gains()[0] == of_8_bits(2.0 / (std::sqrt(16 + 64) + 1)));
}

/// Gradients of another size on every rank, and in the last iteration 0.
class Shrinking final : public reference::GradientSource {
 public:
  explicit Shrinking(Iteration iterations) : iterations_(iterations) {}
  void gradient(int worker, std::int64_t k, std::span<const float>, std::span<float> g) const override {
    std::ranges::fill(g, k == iterations_ - 1 ? 0.0F : static_cast<float>(1 + worker));
  }

 private:
  Iteration iterations_;
};

// What is told to the participants is Adam, but nobody steps before the last iteration, and then by v alone.
TEST_CASE("with an optimizer that normalises, too: both ends of an edge learn by the same gain") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const Descent adam{.learning_rate = 1.0, .adam = true};
  const auto mixed = [&](const std::string& yaml, int ranks, Iteration iterations) {
    return train_locally(yaml, layout, initial, Shrinking(iterations),
                         {.ranks = ranks,
                          .descent = {.learning_rate = 1.0, .first_step = iterations - 1},
                          .response = adam.response(),
                          .iterations = iterations,
                          .prepare = draw_integers});
  };
  const std::string some = "trigger: {name: constant, threshold: 2.0, warmup_iterations: 0, maximum_silence: 2}\n";
  const auto exchanges = [&](double strength) {
    return std::vector{corrected_dpsgd(strength), corrected_dpsgd(strength, ", delay: 1"),
                       corrected("{name: arrival}", strength) + some,
                       corrected("{name: difference, gamma: 0.5}", strength, ", delay: 1") + some};
  };
  for (const int ranks : {4, 8}) {
    for (std::size_t e = 0; e < 4; ++e) {
      const std::string with = star + exchanges(5.0)[e], without = star + exchanges(0.0)[e];
      CAPTURE(with);
      CAPTURE(ranks);
      const JobOutcome after = mixed(with, ranks, 4);
      CHECK(sum_over_ranks(after) == sum_over_ranks(mixed(with, ranks, 0)));
      CHECK(after.ranks[1].x != mixed(without, ranks, 4).ranks[1].x);
    }
  }
}

// Two ranks, 0 and 8 everywhere: the first mixing moves rank 0 by 4. With a gradient of 0 and a rate of 1 the optimizer
// then adds v, which is c / (τ η) times as much.
TEST_CASE("what is learnt of a move falls with the optimizer's lag and with the coarseness of what travels") {
  Layout layout;
  layout.append("values", {64});
  const std::vector<float> initial(layout.size(), 0.0F);
  const auto prepare = [](LocalRank& rank) {
    for (float& v : rank.replica.values.span()) v = rank.rank() == 0 ? 0.0F : 8.0F;
  };
  const auto first_step = [&](const std::string& yaml, double momentum) {
    const JobOutcome job = train_locally(
        complete + yaml, layout, initial, ZeroGradient(),
        {.ranks = 2, .descent = {.learning_rate = 1.0, .momentum = momentum}, .iterations = 1, .prepare = prepare});
    CHECK(job.ranks[0].x[0] + job.ranks[1].x[0] == 8.0F);
    return job.ranks[0].x[0];
  };
  const std::string whole = corrected("{name: arrival}", 5.0) + "trigger: {name: always}\n";
  CHECK(first_step(corrected_dpsgd(1.0), 0.0) == 4.0F + 4.0F);
  CHECK(first_step(corrected_dpsgd(1.0), 0.5) == 4.0F + 1.0F);  // η / (1 − μ) = 2, and a lag of 2
  CHECK(first_step(whole, 0.0) == 4.0F + 20.0F);
  CHECK(first_step(whole + "sparsify: {quantiser: {name: int8}}\n", 0.0) == doctest::Approx(24.0).epsilon(1e-2));
  CHECK(first_step(whole + "sparsify: {quantiser: {name: fp4}}\n", 0.0) == 4.0F + 10.0F);
  CHECK(first_step(whole + "sparsify: {quantiser: {name: two_bit}}\n", 0.0) == 4.0F + 2.0F);
  CHECK(first_step(whole + "sparsify: {quantiser: {name: one_bit, centre: mean}}\n", 0.0) == 4.0F + 1.0F);
}

TEST_CASE("a strength of 0 is the run without correction, to the last bit") {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, 4, 3);
  const auto train = [&](const std::string& yaml) {
    return train_locally(ring + yaml, layout, problem.initial(), problem, {.ranks = 4}).hashes();
  };
  const std::string trigger = "trigger: {name: adaptive, horizon: 2}\n";
  CHECK(train(corrected_dpsgd(0.0)) == train(dpsgd));
  CHECK(train(corrected("{name: arrival}", 0.0) + trigger) == train(eventgrad("{name: arrival}") + trigger));
  CHECK(train(corrected_dpsgd(0.5)) != train(dpsgd));
}

TEST_CASE("one rank with correction is plain SGD") {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, 1, 3);
  const auto x_of = [&](const std::string& yaml) {
    return train_locally(ring + yaml, layout, problem.initial(), problem, {.ranks = 1}).ranks[0].x;
  };
  CHECK(x_of(corrected_dpsgd(0.5)) == x_of(dpsgd));
  CHECK(x_of(corrected("{name: arrival}", 0.5)) == x_of(dpsgd));
}

constexpr int papers_ranks = 5;
constexpr Iteration papers_iterations = 40;
constexpr double papers_rate = 0.1;

/// c = 1, γ = 1/2 and every segment, as the papers have it: x of every rank of a ring, which begin with 1.
JobOutcome as_the_papers(const std::string& more) {
  return descend(ring + corrected("{name: difference, gamma: 0.5}", 1.0, more) + "trigger: {name: always}\n",
                 papers_ranks, papers_iterations, {.learning_rate = papers_rate}, Ranks::threads);
}

// Shi, Ling, Wu and Yin 2015, eq. (2.13), W̃ = (I + W)/2: x_{k+2} = (I + W) x_{k+1} − W̃ x_k − η (g_{k+1} − g_k).
TEST_CASE("with every segment, c = 1 and gamma = 1/2 it is EXTRA") {
  constexpr int ranks = papers_ranks;
  const Layout layout = reference::small_layout();
  const Bowls problem(layout.size(), ranks);
  const std::vector<float> initial(layout.size(), 1.0F);
  const JobOutcome job = as_the_papers("");

  using Block = std::vector<std::vector<float>>;
  const auto w = reference::ring_weights(ranks);
  const auto n = layout.size();
  const auto times = [&](double own, double mixed, const Block& x, std::size_t i, std::size_t e) {
    double sum = own * x[i][e];
    for (std::size_t j = 0; j < x.size(); ++j) sum += mixed * w[i][j] * x[j][e];
    return sum;
  };
  const auto gradients = [&](const Block& x) {
    Block g(ranks, std::vector<float>(n));
    for (std::size_t i = 0; i < g.size(); ++i) problem.gradient(static_cast<int>(i), 0, x[i], g[i]);
    return g;
  };
  Block before(ranks, initial), now = before, g_before = gradients(before);
  for (std::size_t i = 0; i < now.size(); ++i)
    for (std::size_t e = 0; e < n; ++e) now[i][e] -= static_cast<float>(papers_rate) * g_before[i][e];
  for (Iteration k = 1; k < papers_iterations; ++k) {
    const Block g = gradients(now);
    Block next = now;
    for (std::size_t i = 0; i < next.size(); ++i)
      for (std::size_t e = 0; e < n; ++e)
        next[i][e] = static_cast<float>(times(1.0, 1.0, now, i, e) - times(0.5, 0.5, before, i, e) -
                                        papers_rate * (double{g[i][e]} - g_before[i][e]));
    before = now, now = next, g_before = g;
  }
  for (std::size_t i = 0; i < now.size(); ++i)
    for (std::size_t e = 0; e < n; ++e) CHECK(job.ranks[i].x[e] == doctest::Approx(now[i][e]).epsilon(1e-4));
}

// Yuan, Ying, Zhao and Sayed 2018, Algorithm 1, W̃ = (I + W)/2:
//   ψ_k = z_k − η g(z_k);  z_{k+1} = W̃ (ψ_k + z_k − ψ_{k−1}),  the first z being what all ranks begin with.
TEST_CASE("the same with strategy diffusion is exact diffusion") {
  constexpr int ranks = papers_ranks;
  const Layout layout = reference::small_layout();
  const Bowls problem(layout.size(), ranks);
  const std::vector<float> initial(layout.size(), 1.0F);
  const JobOutcome job = as_the_papers(", strategy: diffusion");

  const auto w = reference::ring_weights(ranks);
  std::vector<std::vector<double>> z(ranks, {initial.begin(), initial.end()}), psi_before = z, phi = z;
  for (Iteration k = 0; k < papers_iterations; ++k) {
    for (std::size_t i = 0; i < z.size(); ++i) {
      const std::vector<float> at(z[i].begin(), z[i].end());
      std::vector<float> g(at.size());
      problem.gradient(static_cast<int>(i), k, at, g);
      for (std::size_t e = 0; e < g.size(); ++e) {
        const double psi = z[i][e] - papers_rate * g[e];
        phi[i][e] = psi + z[i][e] - psi_before[i][e];
        psi_before[i][e] = psi;
      }
    }
    for (std::size_t i = 0; i < z.size(); ++i)
      for (std::size_t e = 0; e < initial.size(); ++e) {
        z[i][e] = 0.5 * phi[i][e];
        for (std::size_t j = 0; j < z.size(); ++j) z[i][e] += 0.5 * w[i][j] * phi[j][e];
      }
  }
  for (std::size_t i = 0; i < phi.size(); ++i)
    for (std::size_t e = 0; e < initial.size(); ++e)
      CHECK(job.ranks[i].x[e] == doctest::Approx(phi[i][e]).epsilon(1e-4));
}

TEST_CASE("a correction is refused with a rule that does not keep the mean") {
  Config root = Config::from_text("exchange: {name: eventgrad, mixing: {name: stale}, correction: {name: drift}}");
  static_cast<void>(plan_exchange(root));
  CHECK_THROWS_WITH_AS(root.document().throw_if_invalid(), doctest::Contains("keeps the mean"), ConfigError);
}

// With such curvatures D-PSGD stands learning rates up to some 0.6 on the exponential graph, with c = 1/2 up to 0.35.
// On the torus c = 1/2 is the bound itself.
TEST_CASE("a strength that nobody has set is stable where a half is not" * doctest::test_suite("arithmetic")) {
  const std::string exponential = "topology: {graph: {name: exponential}, weights: {name: uniform}}\n";
  const std::string usual = "exchange: {name: dpsgd, correction: {name: drift}}\n";
  const auto reached = [&](const std::string& yaml, double learning_rate) {
    return distance(descend(yaml, 16, 3000, {.learning_rate = learning_rate})) < 1e-3;
  };
  CHECK(reached(exponential + usual, 0.42));
  CHECK_FALSE(reached(exponential + corrected_dpsgd(0.5), 0.42));
  CHECK(reached(torus + usual, 0.1));
  CHECK_FALSE(reached(torus + corrected_dpsgd(0.5), 0.1));
}

// Curvatures are up to 1.5: a rank alone stands rates up to 1.33.
TEST_CASE("with strategy diffusion a half is stable with steps that consensus does not stand" *
          doctest::test_suite("arithmetic")) {
  const auto reached = [](const std::string& topology, int ranks, const std::string& strategy, double learning_rate) {
    const std::string yaml = topology + corrected_dpsgd(0.5, ", strategy: " + strategy);
    return distance(descend(yaml, ranks, 3000, {.learning_rate = learning_rate})) < 1e-3;
  };
  const std::string exponential = "topology: {graph: {name: exponential}, weights: {name: uniform}}\n";
  CHECK(reached(exponential, 16, "diffusion", 1.0));
  CHECK_FALSE(reached(exponential, 16, "consensus", 0.42));
  CHECK(reached(ring, 8, "diffusion", 1.0));
  CHECK_FALSE(reached(ring, 8, "consensus", 0.42));
}

TEST_CASE("a strength that nobody has set is a half, and no more than weights and silences allow") {
  const auto same = [](const std::string& topology, int ranks, double strength, const std::string& trigger) {
    const std::string usual = "exchange: {name: eventgrad, mixing: {name: arrival}, correction: {name: drift}}\n";
    const std::string given = corrected("{name: arrival}", strength);
    return descend(topology + usual + trigger, ranks, 20).hashes() ==
           descend(topology + given + trigger, ranks, 20).hashes();
  };
  const std::string always = "trigger: {name: always}\n";
  const std::string bounded = "trigger: {name: adaptive, warmup_iterations: 2, maximum_silence: 4}\n";
  const std::string growing = "trigger: {name: adaptive, warmup_iterations: 2, silence_growth: 2}\n";
  CHECK(same(ring, 8, 0.5, bounded));
  CHECK_FALSE(same(ring, 8, 0.25, bounded));
  CHECK(same(ring, 8, 0.25, growing));
  CHECK(same(torus, 16, 0.25, always));
  CHECK(same(complete, 5, 0.25, always));
  CHECK_FALSE(same(complete, 5, 0.25, bounded));  // an event of one end alone: 1/4 by default, 1/8 with c = 1/4
  const std::string halves = "exchange: {name: eventgrad, mixing: {name: difference, gamma: 0.5}, correction: ";
  CHECK(descend(complete + halves + "{name: drift}}\n" + always, 5, 20).hashes() ==
        descend(complete + halves + "{name: drift, strength: 0.5}}\n" + always, 5, 20).hashes());
}

// Over-relaxed weights (best_constant on a star), silences, delays and asynchronous ranks included.
TEST_CASE("with a strength that nobody has set every combination reaches the minimum, or is refused at the start" *
          doctest::test_suite("arithmetic")) {
  const std::string drift = "correction: {name: drift}", trigger = "trigger: {name: adaptive, maximum_silence: 10}\n";
  const auto events = [&](const std::string& mixing, const std::string& more = "") {
    return "exchange: {name: eventgrad, mixing: {name: " + mixing + "}, " + drift + more + "}\n" + trigger;
  };
  const std::vector<std::string> exchanges{
      "exchange: {name: dpsgd, " + drift + "}\n",
      "exchange: {name: dpsgd, delay: 1, " + drift + "}\n",
      "exchange: {name: dpsgd, schedule: asynchronous, " + drift + "}\n",
      events("arrival"),
      events("arrival", ", schedule: asynchronous"),
      events("difference"),
      events("difference", ", delay: 1"),
      events("difference", ", schedule: asynchronous"),
      "exchange: {name: eventgrad, delay: 1, mixing: {name: difference}, " + drift + "}\ntrigger: {name: always}\n"};
  Layout layout;
  layout.append("a", {3});
  layout.append("b", {1});
  const std::vector<float> initial(layout.size(), 1.0F);
  int reached = 0, refused = 0;
  constexpr int ranks = 4;
  for (const char* graph : {"ring", "star", "path", "complete"})
    for (const char* weights : {"metropolis", "best_constant"})
      for (const std::string& exchange : exchanges) {
        CAPTURE(graph);
        CAPTURE(weights);
        CAPTURE(exchange);
        const std::string topology =
            std::string("topology: {graph: {name: ") + graph + "}, weights: {name: " + weights + "}}\n";
        const Bowls problem(layout.size(), ranks);
        const JobOptions options{
            .ranks = ranks, .descent = {.learning_rate = 0.05}, .iterations = 1500, .run = fewest_threads(exchange)};
        try {
          const JobOutcome outcome = train_locally(topology + exchange, layout, initial, problem, options);
          CHECK(problem.distance(outcome) < 1e-2);
          ++reached;
        } catch (const ConfigError&) {
          ++refused;
        }
      }
  CHECK(reached > 60);
  CHECK(refused > 0);
}

TEST_CASE("what theory calls unstable is warned about") {
  const auto warnings = [](const std::string& yaml) {
    const Plan plan(ring + yaml);
    return plan.exchange().warnings(plan.topology(8)).size();
  };
  const std::string adaptive = "trigger: {name: adaptive}\n";
  CHECK(warnings(dpsgd) == 0);
  CHECK(warnings(corrected_dpsgd(0.5)) == 0);
  CHECK(warnings(corrected_dpsgd(1.0)) == 1);
  CHECK(warnings(eventgrad("{name: arrival}") + adaptive) == 0);
  CHECK(warnings(corrected("{name: arrival}", 0.5) + adaptive) == 1);
  CHECK(warnings("exchange: {name: eventgrad, mixing: {name: arrival}, correction: {name: drift}}\n" + adaptive) == 1);
  CHECK(warnings(corrected("{name: arrival}", 2.0) + adaptive) == 2);
  CHECK(warnings(corrected("{name: arrival}", 0.5) + "trigger: {name: adaptive, maximum_silence: 10}\n") == 0);
  CHECK(warnings(corrected("{name: arrival}", 0.5) + "trigger: {name: periodic, period: 10}\n") == 0);
  const auto values = [&](const std::string& copies, double strength) {
    return warnings("exchange: {name: eventgrad, copies: " + copies +
                    ", correction: {name: drift, strength: " + std::to_string(strength) +
                    "}}\ntrigger: {name: value_events}\nsparsify: {quantiser: {dead_zone: 0.7}}\n");
  };
  CHECK(values("edge", 1.0) == 0);
  CHECK(values("edge", 1.4) == 1);
  CHECK(values("shared", 1.0) == 1);
}

}  // namespace
}  // namespace hearsay::correction_test
