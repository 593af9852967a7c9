#pragma once
// What the tests of outer steps share: gradients that do not depend on x, and outer steps in double on their own.
#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/stepwise.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::test {

/// Whole numbers by rank and iteration, multiples of `unit`, whatever x is: the mean of the models then goes where the
/// mean of the gradients says, and how ranks mix shows in nothing else.
class Given final : public reference::GradientSource {
 public:
  explicit Given(int unit = 1) : unit_(unit) {}
  void gradient(int worker, std::int64_t k, std::span<const float>, std::span<float> g) const override {
    whole_numbers(worker, k, unit_, g);
  }

 private:
  int unit_;
};

inline std::vector<double> mean_of(const JobOutcome& job) {
  std::vector<double> mean(job.ranks.front().x.size());
  for (const RankOutcome& rank : job.ranks)
    for (std::size_t e = 0; e < mean.size(); ++e) mean[e] += rank.x[e] / static_cast<double>(job.ranks.size());
  return mean;
}

inline void check_close(const std::vector<double>& a, const std::vector<double>& b, double allowed) {
  REQUIRE(a.size() == b.size());
  double worst = 0.0;
  for (std::size_t e = 0; e < a.size(); ++e) worst = std::max(worst, std::abs(a[e] - b[e]));
  CHECK(worst <= allowed);
}

/// Where the mean over ranks is after so many iterations with the gradients of `Given`, by steps of 1/8 from 0:
/// φ goes by heavy ball or by Nesterov's momentum in its usual form, with a point that looks ahead.
inline std::vector<double> mean_way(int ranks, std::size_t n, Iteration iterations, Iteration local_steps, double eta,
                                    double mu, bool nesterov) {
  const Given given;
  std::vector<double> phi(n), x(n), velocity(n);
  std::vector<float> g(n);
  for (Iteration k = 0; k < iterations; ++k) {
    for (int r = 0; r < ranks; ++r) {
      given.gradient(r, k, {}, g);
      for (std::size_t e = 0; e < n; ++e) x[e] -= 0.125 * g[e] / ranks;
    }
    if ((k + 1) % local_steps != 0) continue;
    for (std::size_t e = 0; e < n; ++e) {
      const double step = eta * (x[e] - phi[e]), before = velocity[e];
      velocity[e] = mu * before + step;
      // Nesterov: y = φ + step;  φ = y + μ (y − y before), and y − y before is the velocity.
      phi[e] += nesterov ? step + mu * velocity[e] : velocity[e];
      x[e] = phi[e];
    }
  }
  return x;
}

/// A job with these gradients, in steps of 1/8 from 0.
inline JobOutcome train_given(const std::string& yaml, int ranks, Iteration iterations) {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  return train_locally(
      yaml, layout, initial, Given(),
      {.ranks = ranks, .descent = {.learning_rate = 0.125}, .iterations = iterations, .run = Ranks::threads});
}

/// x of rank 0 after some steps of 1 along multiples of `unit`, and Σ over ranks of x and of what they owe.
struct Account {
  std::vector<double> x, x_of_all, owed;
  std::uint64_t payload_bytes = 0;
};
inline Account account(const std::string& yaml, int ranks, Iteration iterations, int unit = 1) {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const Plan plan(yaml);
  const Topology topology = plan.topology(ranks);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange()};
  Account result{.x = std::vector<double>(layout.size()),
                 .x_of_all = std::vector<double>(layout.size()),
                 .owed = std::vector<double>(layout.size())};
  std::mutex one_at_a_time;
  run_local_ranks(job, [&](LocalRank& rank) {
    const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
    for (Iteration k = 0; k < iterations; ++k) {
      rank.member.start(k);
      whole_numbers(rank.rank(), k, unit, g);
      rank.member.finish(k);
      for (std::size_t e = 0; e < x.size(); ++e) x[e] -= g[e];
      rank.member.stepped(k);
    }
    std::vector<float> residual(x.size());
    add_residual(rank.member.exchange(), residual);
    const std::lock_guard lock(one_at_a_time);
    for (std::size_t e = 0; e < x.size(); ++e) {
      if (rank.rank() == 0) result.x[e] = static_cast<double>(x[e]);
      result.x_of_all[e] += static_cast<double>(x[e]);
      result.owed[e] += static_cast<double>(residual[e]);
    }
    result.payload_bytes += rank.ledger.totals().payload_bytes;
  });
  return result;
}

/// Σ over ranks and iterations of their gradients, multiples of `unit`.
inline std::vector<double> made_by_all(int ranks, Iteration iterations, int unit, std::size_t n) {
  std::vector<double> made(n);
  std::vector<float> g(n);
  for (int r = 0; r < ranks; ++r)
    for (Iteration k = 0; k < iterations; ++k) {
      whole_numbers(r, k, unit, g);
      for (std::size_t e = 0; e < n; ++e) made[e] += static_cast<double>(g[e]);
    }
  return made;
}

/// The graph of exchanges that go along none: where tests read `topology:` apart from the exchange.
inline const std::string everybody = "topology: {graph: {name: complete}, weights: {name: uniform}}\n";

/// What is said of a configuration that is refused; empty where it is not.
/// This of `everybody` and an exchange, as users write it: without the graph.
inline std::string alone(const std::string& yaml) { return yaml.substr(everybody.size()); }
inline std::string said_of(const std::string& yaml) {
  try {
    const ParticipantPlan plan(Config::from_text(yaml));
    return {};
  } catch (const ConfigError& error) {
    return error.what();
  }
}

}  // namespace hearsay::test
