// A rank that fails in simulated time: the others find out by its heartbeats, give its weight back to themselves, keep
// the sum over them, and do its part of the work. The same code as in a job of processes.
#include <doctest/doctest.h>

#include <cstdlib>
#include <numeric>
#include <vector>

#include "runtime/exchange/participant.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/mpi/simulated/cluster.hpp"
#include "runtime/mpi/simulated/failure.hpp"

namespace hearsay::deaths_test {
namespace {

using namespace std::chrono_literals;

constexpr int ranks = 4, victim = 0;
constexpr std::size_t length = 6;
constexpr double all = 100.0, step_s = 0.1, fails_after_s = 2.05, timeout_s = 1.0;

/// What a rank has seen.
struct Seen {
  double sum_before = 0.0, sum_after = 0.0;
  std::vector<int> living{};
  double known_at_s = 0.0, row = 0.0, weight_of_dead = 1.0;
  Iteration done = 0;
  std::uint64_t done_by_dead = 0;
  double furthest = 0.0;  // from the mean over the living, at the end
};

/// One rank, in a complete graph with weights 1/4, gradients zero.
void run_rank(const ParticipantPlan& plan, std::vector<Seen>& all_seen) {
  auto* const mpi = new mpi::Environment;  // never ended: a rank has failed
  Seen& seen = all_seen[static_cast<std::size_t>(mpi->rank())];
  Layout layout;
  layout.append("x", {static_cast<std::int64_t>(length)});
  Parameters replica(layout, processor());
  Participant* member = nullptr;
  mpi::Communicator living([&] { member->communication().serve(); });
  Participant participant(mpi->transport(), plan.topology(ranks), plan.exchange(), replica,
                          {.start_from_rank_0 = false, .failure_timeout = 1s});
  member = &participant;
  const std::span<float> x = replica.values.span();
  std::ranges::fill(x, static_cast<float>(1024 * mpi->rank()));
  living.barrier();
  const auto now = [&] { return std::chrono::duration<double>(member->ledger().now()).count(); };
  const double start = now();
  if (mpi->rank() == victim) mpi::fail_after(fails_after_s);
  Iteration k = 0;
  const auto iterate = [&] {
    member->start(k);
    member->communication().pass_time(step_s);
    member->finish(k);
    member->stepped(k++);
  };
  const auto settled_sum = [&] {
    member->settle([&] { living.barrier(); });
    std::vector<double> sum{std::accumulate(x.begin(), x.end(), 0.0)};
    living.sum(sum);
    return sum[0];
  };
  while (member->members().failures()->dead() == 0) iterate();
  seen.known_at_s = now() - start;
  living.keep({1, 2, 3}, 0);
  seen.sum_before = settled_sum();
  while (member->members().job_iterations(k) < all) iterate();
  seen.sum_after = settled_sum();
  const double mean = seen.sum_after / (length * (ranks - 1));
  for (const float value : x) seen.furthest = std::max(seen.furthest, std::abs(value - mean));
  seen.living = member->members().failures()->living();
  const Neighbourhood& row = member->edges().neighbourhood();
  seen.row = row.self_weight + std::accumulate(row.weights.begin(), row.weights.end(), 0.0);
  seen.weight_of_dead = row.weights[row.slot(victim)];
  seen.done = k;
  seen.done_by_dead = member->members().batches_of(victim);
  mpi::stand_still();
}

TEST_CASE("where a simulated rank fails, weights, sum and budget hold over the others") {
  const ParticipantPlan plan(
      Config::from_text("exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}\n"
                        "trigger: {name: always}\n"
                        "topology: {graph: {name: complete}, weights: {name: uniform}}\n"));
  std::vector<Seen> seen(ranks);
  const char* const platform = std::getenv("HEARSAY_PLATFORM");
  REQUIRE(platform != nullptr);
  mpi::run_cluster({.platform = platform, .ranks = ranks, .threads = false}, [&] { run_rank(plan, seen); });
  CHECK(seen[victim].done == 0);  // it has not come to the end of its loop
  double done = 0.0;
  for (const int rank : {1, 2, 3}) {
    const Seen& of = seen[static_cast<std::size_t>(rank)];
    CAPTURE(rank);
    CHECK(of.living == std::vector<int>{1, 2, 3});
    CHECK(of.row == 1.0);
    CHECK(of.weight_of_dead == 0.0);
    CHECK(of.known_at_s > fails_after_s + 0.9 * timeout_s);
    CHECK(of.known_at_s < fails_after_s + 1.3 * timeout_s);
    CHECK(of.sum_after == doctest::Approx(of.sum_before).epsilon(1e-6));
    CHECK(of.furthest < 1e-3 * of.sum_after);
    CHECK(of.done_by_dead == static_cast<std::uint64_t>(fails_after_s / step_s) + 1);
    done += static_cast<double>(of.done);
  }
  done += static_cast<double>(seen[1].done_by_dead);
  CHECK(done >= all * ranks);
  CHECK(done <= all * ranks + ranks);
}

}  // namespace
}  // namespace hearsay::deaths_test
