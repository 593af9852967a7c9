// The laws of PowerSGD: what it keeps, what it finds, and when it is the dense mean.
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/runtime/exchange/global_job.hpp"

namespace hearsay::powersgd_test {
namespace {

using namespace test;

std::string powersgd(const std::string& keys) { return "exchange: {name: powersgd, " + keys + "}\n"; }
constexpr const char* all_matrices = "dense_iterations: 0, least_saving: 0";

void normal_gradient(int rank, Iteration k, std::span<float> g) {
  Random random(stream_seed(5, "gradient", static_cast<std::uint64_t>(rank * 1000 + k)));
  for (float& value : g) value = static_cast<float>(random.normal());
}

double largest_difference(const Vector& a, const Vector& b) {
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

/// One matrix.
Layout matrix(std::int64_t rows, std::int64_t columns) {
  Layout layout;
  layout.append("weight", {rows, columns});
  return layout;
}

TEST_CASE("with all directions of every matrix it is the dense mean, and owes nothing") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    CAPTURE(ranks);
    const GlobalOptions options{.ranks = ranks, .iterations = 5, .gradient = normal_gradient};
    const GlobalOutcome low = run_global(powersgd(std::string(all_matrices) + ", rank: 8"), options);
    const GlobalOutcome dense = run_global("exchange: {name: allreduce}\n", options);
    for (std::size_t k = 0; k < 5; ++k) CHECK(largest_difference(low.came_out[0][k], dense.came_out[0][k]) < 1e-4);
    double owed_at_most = 0.0;
    for (const double owes : owed(low)) owed_at_most = std::max(owed_at_most, std::abs(owes));
    CHECK(owed_at_most < 1e-4 * ranks);
    CHECK(all_ranks_agree(low));
  }
}

TEST_CASE("what is applied and what is owed are together all gradients, to rounding, whatever the rank") {
  for (const int ranks : {1, 2, 3, 6}) {
    for (const std::string keys : {"rank: 1", "rank: 2", "rank: 3, warm_start: false", "rank: 1, seed: 5"}) {
      CAPTURE(ranks);
      CAPTURE(keys);
      constexpr Iteration iterations = 12;
      const GlobalOutcome outcome = run_global(powersgd(std::string(all_matrices) + ", " + keys),
                                               {.ranks = ranks, .iterations = iterations, .gradient = normal_gradient});
      const auto gone = owed(outcome), put_in = added(outcome.put_in);
      double most_owed = 0.0;
      for (std::size_t i = 0; i < gone.size(); ++i) {
        double kept = gone[i];
        for (const Vector& g : outcome.came_out[0]) kept += ranks * static_cast<double>(g[i]);
        CHECK(std::abs(kept - put_in[i]) < 1e-4 * ranks);
        most_owed = std::max(most_owed, std::abs(gone[i]));
      }
      CHECK(most_owed > 1.0);
      CHECK(all_ranks_agree(outcome));
    }
  }
}

// M = u vᵀ on every rank, another multiple of it on each.
TEST_CASE("a mean of rank 1 arrives at once and whole") {
  const Layout layout = matrix(6, 10);
  const auto one_direction = [](int rank, Iteration k, std::span<float> g) {
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t j = 0; j < 10; ++j)
        g[10 * i + j] = static_cast<float>((rank + 1) * (k + 1)) * std::sin(1.0F + static_cast<float>(i)) *
                        std::cos(2.0F * static_cast<float>(j));
  };
  const GlobalOptions options{.ranks = 3, .iterations = 4, .gradient = one_direction};
  const GlobalOutcome low =
      run_global(powersgd(std::string(all_matrices) + ", error_feedback: false"), options, layout);
  const GlobalOutcome dense = run_global("exchange: {name: allreduce}\n", options, layout);
  for (std::size_t k = 0; k < 4; ++k) CHECK(largest_difference(low.came_out[0][k], dense.came_out[0][k]) < 1e-4);
}

// diag(4, 2, 1, 0, …): the best matrix of rank 2 is diag(4, 2), and power iteration goes there by a factor of 2 a step.
TEST_CASE("warm start: of a gradient that stays the same, the best directions are found") {
  const Layout layout = matrix(5, 8);
  const auto diagonal = [](int rank, Iteration, std::span<float> g) {
    std::ranges::fill(g, 0.0F);
    const float share = rank == 0 ? 2.0F : 0.0F;  // one rank has all of it
    g[0] = share * 4.0F, g[9] = share * 2.0F, g[18] = share * 1.0F;
  };
  const auto last = [&](const std::string& more) {
    return run_global(powersgd(std::string(all_matrices) + ", rank: 2, error_feedback: false" + more),
                      {.ranks = 2, .iterations = 30, .gradient = diagonal}, layout)
        .came_out[0]
        .back();
  };
  Vector best(layout.size());
  best[0] = 4.0F, best[9] = 2.0F;
  CHECK(largest_difference(last(""), best) < 1e-4);
  CHECK(largest_difference(last(", warm_start: false"), best) > 1e-3);
}

TEST_CASE("with error feedback all of a gradient that stays the same gets through in the mean of the iterations") {
  const auto constant = [](int rank, Iteration, std::span<float> g) { normal_gradient(rank, 0, g); };
  constexpr Iteration iterations = 400;
  const GlobalOutcome outcome =
      run_global(powersgd(all_matrices), {.ranks = 2, .iterations = iterations, .gradient = constant});
  for (std::size_t i = 0; i < outcome.put_in[0][0].size(); ++i) {
    double mean = 0.0;
    for (const Vector& g : outcome.came_out[0]) mean += static_cast<double>(g[i]) / static_cast<double>(iterations);
    CHECK(std::abs(mean - 0.5 * (outcome.put_in[0][0][i] + outcome.put_in[1][0][i])) < 0.15);
  }
}

TEST_CASE("nothing to send is no division by zero, and what comes afterwards is sent") {
  const auto late = [](int rank, Iteration k, std::span<float> g) {
    normal_gradient(rank, k, g);
    if (k < 2) std::ranges::fill(g, 0.0F);
  };
  const GlobalOutcome outcome =
      run_global(powersgd(std::string(all_matrices) + ", rank: 3"), {.ranks = 2, .iterations = 4, .gradient = late});
  for (const Vector& g : outcome.came_out[0])
    for (const float value : g) CHECK(std::isfinite(value));
  double sent = 0.0;
  for (const float value : outcome.came_out[0][3]) sent += std::abs(static_cast<double>(value));
  CHECK(sent > 10.0);
  for (const float value : outcome.came_out[0][1]) CHECK(value == 0.0F);
}

TEST_CASE(
    "dense iterations are those of allreduce, bit for bit, and then a rank sends r (m + n) and what is no matrix") {
  const Layout layout = reference::small_layout();
  const GlobalOptions options{.ranks = 4, .iterations = 3, .gradient = normal_gradient};
  const GlobalOutcome all = run_global(powersgd("dense_iterations: 3"), options),
                      some = run_global(powersgd("dense_iterations: 2"), options),
                      dense = run_global("exchange: {name: allreduce, bucket_bytes: 1000000}\n", options);
  CHECK(all.came_out == dense.came_out);
  CHECK(some.came_out[0][1] == dense.came_out[0][1]);
  CHECK(some.came_out[0][2] != dense.came_out[0][2]);
  std::uint64_t before = 0, after = 0;
  for (const Traffic& traffic : all.traffic) before += traffic.bytes;
  for (const Traffic& traffic : some.traffic) after += traffic.bytes;
  // 8 by 8 is large enough (2 · 16 < 64), 3 by 100 too (2 · 103 < 300).
  const std::uint64_t compressed = 1 + 7 + (8 + 8) + (3 + 100);
  CHECK(before - after == 2 * 3 * 4 * (layout.size() - compressed));
}

TEST_CASE("what cannot be is refused") {
  for (const std::string keys : {"rank: 0", "dense_iterations: -1", "least_saving: -1", "schedule: asynchronous"})
    CHECK_THROWS_AS(GlobalPlan(powersgd(keys)), ConfigError);
}

}  // namespace
}  // namespace hearsay::powersgd_test
