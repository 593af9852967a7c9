// A rank that falls silent: the others give its weight back to themselves, so that what they mix stays an average, and
// the sum over them stays where it is.
#include <doctest/doctest.h>

#include <barrier>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/exchange/participant.hpp"
#include "tests/support/local_transport.hpp"

namespace hearsay::deaths_test {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr int ranks = 4, victim = 0;
constexpr std::size_t length = 6;

/// What the living have when they know of the death and nothing is under way, and some iterations later.
struct Outcome {
  std::vector<std::vector<float>> before, after;
};

/// In a complete graph with weights 1/4, gradients zero.
Outcome mix_without_one(const std::string& exchange, const std::function<float(int rank)>& start) {
  const ParticipantPlan plan(
      Config::from_text(exchange + "\ntopology: {graph: {name: complete}, weights: {name: uniform}}\n"));
  const auto topology = plan.topology(ranks);
  Layout layout;
  layout.append("x", {static_cast<std::int64_t>(length)});
  const ParticipantOptions options{.start_from_rank_0 = false, .failure_timeout = 1s};
  LocalBlocks blocks(std::vector<std::size_t>(
      ranks, window_bytes(plan.exchange(), layout, ranks - 1, ranks) + failure_bytes(options, ranks)));
  std::barrier<> everybody(ranks), living(ranks - 1);
  PostOffice office(ranks, {}, {});
  Outcome outcome{.before = std::vector<std::vector<float>>(ranks), .after = std::vector<std::vector<float>>(ranks)};
  const auto run = [&](int rank) {
    Parameters replica(layout, processor());
    Participant member(std::make_unique<LocalTransport>(blocks, office, everybody, rank, EngineKind::thread_engine),
                       topology, plan.exchange(), replica, options);
    const std::span<float> x = replica.values.span();
    std::ranges::fill(x, start(rank));
    Iteration k = 0;
    const auto iterate = [&] {
      member.start(k);
      member.finish(k);
      member.stepped(k++);
      std::this_thread::sleep_for(200us);
    };
    const auto settle = [&](std::vector<float>& seen) {
      member.settle([&] { living.arrive_and_wait(); });
      seen.assign(x.begin(), x.end());
      living.arrive_and_wait();
    };
    everybody.arrive_and_wait();
    while (k < 10) iterate();
    if (rank == victim) return;
    while (member.members().failures()->dead() == 0) iterate();
    settle(outcome.before[static_cast<std::size_t>(rank)]);
    const Iteration end = k + 40;
    while (k < end) iterate();
    settle(outcome.after[static_cast<std::size_t>(rank)]);
    CHECK(member.members().failures()->living() == std::vector<int>{1, 2, 3});
    const Neighbourhood& row = member.edges().neighbourhood();
    CHECK(row.self_weight + std::accumulate(row.weights.begin(), row.weights.end(), 0.0) == 1.0);
    CHECK(row.weights[row.slot(victim)] == 0.0);
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { run(rank); });
  }
  return outcome;
}

double sum_of(const std::vector<std::vector<float>>& x) {
  double sum = 0.0;
  for (const auto& of_rank : x) sum += std::accumulate(of_rank.begin(), of_rank.end(), 0.0);
  return sum;
}

constexpr const char* arrival =
    "exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}\ntrigger: {name: always}";

TEST_CASE("what the living mix without a dead neighbour stays an average") {
  for (const std::string exchange :
       {"exchange: {name: dpsgd, schedule: asynchronous}",
        "exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: stale}}\ntrigger: {name: always}",
        "exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: difference, gamma: 0.5}}\n"
        "trigger: {name: always}"}) {
    CAPTURE(exchange);
    // 0 is where the copies begin; a weight that is lost, or a copy that still pulls, would move something.
    const Outcome outcome = mix_without_one(exchange, [](int rank) { return rank == victim ? 1e6F : 0.0F; });
    for (const int rank : {1, 2, 3}) {
      const auto& before = outcome.before[static_cast<std::size_t>(rank)];
      const auto& after = outcome.after[static_cast<std::size_t>(rank)];
      float low = before.front(), high = before.front();
      for (const int other : {1, 2, 3})
        for (const float value : outcome.before[static_cast<std::size_t>(other)])
          low = std::min(low, value), high = std::max(high, value);
      const float rounding = 1e-4F * (1.0F + std::abs(high));
      for (const float value : after) CHECK((value >= low - rounding && value <= high + rounding));
    }
  }
}

TEST_CASE("where events move both ends, the sum over the living stays, and they agree") {
  const Outcome outcome = mix_without_one(arrival, [](int rank) { return static_cast<float>(1024 * rank); });
  const double before = sum_of(outcome.before), after = sum_of(outcome.after);
  CHECK(after == doctest::Approx(before).epsilon(1e-5));
  for (const int rank : {1, 2, 3})
    for (const float value : outcome.after[static_cast<std::size_t>(rank)])
      CHECK(value == doctest::Approx(before / (length * (ranks - 1))).epsilon(0.05));
}

}  // namespace
}  // namespace hearsay::deaths_test
