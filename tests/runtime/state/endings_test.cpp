// How jobs of one's own loops end: with a model that all ranks have served until the last of them was done, and never
// as finished with what is not a number.
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/global_job.hpp"
#include "tests/runtime/exchange/train.hpp"
#include "tests/support/announce.hpp"

namespace hearsay::endings_test {
namespace {

using namespace test;
using std::chrono::microseconds;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Every entry of the table in every schedule that it has, as YAML.
std::vector<std::string> all_exchanges() {
  std::vector<std::string> all;
  for (const ExchangeEntry& entry : exchanges()) {
    for (const std::string schedule : {"lockstep", "asynchronous"}) {
      const std::string yaml = "exchange: {name: " + std::string(entry.name) + ", schedule: " + schedule + "}\n";
      try {
        static_cast<void>(ParticipantPlan(Config::from_text(yaml)));
        all.push_back(yaml);
      } catch (const ConfigError&) {
        if (schedule == "lockstep") all.push_back("exchange: {name: " + std::string(entry.name) + "}\n");
      }
    }
  }
  return all;
}

using Loop = std::function<void(LocalRank& rank)>;

/// What each rank has thrown: empty where it has not; the first of all first.
struct Thrown {
  std::vector<std::string> by_rank;
  std::string first;
  bool diverged = false;
};

Thrown run(const std::string& yaml, int ranks, const Layout& layout, const Loop& loop,
           EngineKind engine = EngineKind::thread_engine) {
  const ParticipantPlan plan(Config::from_text(yaml));
  const auto topology = plan.topology(ranks);
  const std::vector<float> initial(layout.size(), 0.0F);
  const LocalJob job{
      .topology = *topology, .layout = layout, .initial = initial, .plan = plan.exchange(), .engine = engine};
  Thrown thrown;
  thrown.by_rank.resize(static_cast<std::size_t>(ranks));
  std::mutex mutex;
  try {
    run_local_ranks(job, [&](LocalRank& rank) {
      try {
        loop(rank);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        thrown.by_rank[static_cast<std::size_t>(rank.rank())] = error.what();
        if (thrown.first.empty()) {
          thrown.first = error.what();
          thrown.diverged = dynamic_cast<const DivergenceError*>(&error) != nullptr;
        }
        throw;
      }
    });
  } catch (const std::exception&) {
  }
  return thrown;
}

/// x ← x − 0.1 g with g = 1, but for what `spoil` does to it.
void descend(LocalRank& rank, Iteration iterations, const std::function<void(Iteration k, std::span<float> g)>& spoil) {
  const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
  for (Iteration k = 0; k < iterations; ++k) {
    rank.member.start(k);
    std::ranges::fill(g, 1.0F);
    spoil(k, g);
    announce_gradients(rank.member);
    rank.member.learning_rate(0.1);
    rank.member.finish(k);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= 0.1F * g[i];
    rank.member.stepped(k);
  }
}

Layout two_segments(std::int64_t second) {
  Layout layout;
  layout.append("first", {10});
  layout.append("second", {second});
  return layout;
}

}  // namespace

TEST_CASE("a gradient that is not finite ends every exchange with its rank, iteration and segment") {
  for (const std::string& yaml : all_exchanges()) {
    for (const float bad : {nan, std::numeric_limits<float>::infinity()}) {
      CAPTURE(yaml);
      CAPTURE(bad);
      const Thrown thrown = run(yaml, 4, two_segments(30), [&](LocalRank& rank) {
        descend(rank, 6, [&](Iteration k, std::span<float> g) {
          if (rank.rank() == 1 && k == 2) g[17] = bad;
        });
        rank.member.settle();
      });
      CHECK(thrown.diverged);
      CHECK(thrown.first.find("rank 1 diverged at iteration 2: ") == 0);
      CHECK(thrown.first.find("parameter 'second'") != std::string::npos);
    }
  }
}

TEST_CASE(
    "in the last step of a large model it is told by all ranks alike, with the iterations between which it came") {
  const auto n = static_cast<std::int64_t>(3 * FiniteWatch::piece);
  for (const std::string& yaml : all_exchanges()) {
    CAPTURE(yaml);
    // Kept until all have said it: a rank that leaves by an exception ends the others.
    std::vector<std::string> all(4);
    const Thrown thrown = run(yaml, 4, two_segments(n), [&](LocalRank& rank) {
      const auto x = rank.replica.values.span();
      descend(rank, 5, [](Iteration, std::span<float>) {});
      rank.member.settle();                  // a packet that still waited for room would take it along
      if (rank.rank() == 2) x.back() = nan;  // the loop has done something of its own
      try {
        rank.member.settle();
        CHECK(all_finite(x));
      } catch (const DivergenceError& error) {
        all[static_cast<std::size_t>(rank.rank())] = error.what();
      }
    });
    CHECK(thrown.first == "");
    if (all == std::vector<std::string>(4)) {  // serving has put what the others know in its place
      CHECK(yaml.find("asynchronous") != std::string::npos);
      CHECK((yaml.find("push_sum") != std::string::npos || yaml.find("gradient_dropping") != std::string::npos));
      continue;
    }
    for (const std::string& said : all) {
      CHECK(said == all.front());
      CHECK(said.find("rank 2 diverged ") == 0);
      CHECK(said.find("value " + std::to_string(n - 1) + " of parameter 'second' is nan") != std::string::npos);
    }
  }
}

TEST_CASE("gradients whose sum is too large for a float end every exchange that adds them, with the segment") {
  for (const std::string& yaml : all_exchanges()) {
    CAPTURE(yaml);
    const ExchangeLaws laws = ParticipantPlan(Config::from_text(yaml)).exchange().laws();
    const Thrown thrown = run(yaml, 2, two_segments(30), [&](LocalRank& rank) {
      const auto x = rank.replica.values.span();
      descend(rank, 1, [&](Iteration, std::span<float> g) { std::ranges::fill(g, 3e38F); });
      rank.member.settle();
      for (const float value : x) CHECK(std::isfinite(value));
    });
    // Asynchronous servers add what has come at once: both gradients, or one after the other.
    const bool sums = laws.mixes == ExchangeLaws::Mixes::gradients;
    if (!sums || yaml.find("asynchronous") == std::string::npos) CHECK(thrown.diverged == sums);
    CHECK((thrown.first.empty() || thrown.first.find(" of parameter '") != std::string::npos));
  }
}

TEST_CASE("what the exchange keeps beside x is looked at, too") {
  struct Keeps final : Exchange {
    explicit Keeps(const ExchangeContext& context)
        : momentum(context.replica.layout.size()), rank(context.peers.rank()) {}
    void start(Iteration) override {}
    void finish(Iteration) override {}
    void stepped(Iteration) override { momentum[12] = rank == 1 ? nan : 0.0F; }
    void state(Archive& archive) override { archive.values("momentum", std::span(momentum)); }
    std::vector<float> momentum;
    int rank;
  };
  struct KeepsPlan final : ExchangePlan {
    std::size_t packet_bound(const Layout&, int) const override { return 0; }
    std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
      return std::make_unique<Keeps>(context);
    }
    std::size_t kept_bytes(const Layout&, std::size_t, int) const override { return 0; }
    Schedule schedule() const override { return Schedule::lockstep; }
    ExchangeLaws laws() const override { return {}; }
  };
  const KeepsPlan plan;
  const Topology topology = complete_topology(3);
  const Layout layout = two_segments(30);
  const std::vector<float> initial(layout.size(), 0.0F);
  std::set<std::string> said;
  std::mutex mutex;
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan};
  run_local_ranks(job, [&](LocalRank& rank) {
    descend(rank, 3, [](Iteration, std::span<float>) {});
    try {
      rank.member.settle();
    } catch (const DivergenceError& error) {
      const std::lock_guard lock(mutex);
      said.insert(error.what());
    }
  });
  CHECK(said.size() == 1);
  CHECK(said.begin()->find("rank 1 diverged at iteration 2: value 2 of parameter 'second' is nan, in 'momentum'") == 0);
}

// x is −Σ of all pushes over P, which is whole.
TEST_CASE("servers apply all that is pushed to them, also after their own last step, and all ranks end with that") {
  for (const EngineKind engine : {EngineKind::inline_engine, EngineKind::thread_engine}) {
    for (const auto& iterations : {std::vector<Iteration>{4, 8, 40, 80}, {80, 1, 1, 2}}) {
      const Iteration all = iterations[0] + iterations[1] + iterations[2] + iterations[3];
      const Thrown thrown = run(
          "exchange: {name: gradient_dropping, schedule: asynchronous}\n"
          "sparsify: {selector: {name: topk, density: 1.0}}\n",
          4, two_segments(30),
          [&](LocalRank& rank) {
            const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
            for (Iteration k = 0; k < iterations[static_cast<std::size_t>(rank.rank())]; ++k) {
              rank.member.start(k);
              std::ranges::fill(g, 1.0F);
              std::this_thread::sleep_for(microseconds(100));
              rank.member.learning_rate(1.0);
              rank.member.finish(k);
              for (std::size_t i = 0; i < x.size(); ++i) x[i] -= g[i];
              rank.member.stepped(k);
            }
            rank.member.service().end();
            rank.member.settle();
            for (const float value : x) CHECK(value == -static_cast<float>(all) / 4.0F);
          },
          engine);
      CHECK(thrown.first == "");
    }
  }
}

TEST_CASE("a server that does not know its optimizer says so, and one that is told it uses that") {
  const std::string yaml = "exchange: {name: gradient_dropping, schedule: asynchronous}\n";
  const auto loop = [](LocalRank& rank, bool tells) {
    const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
    const auto step = [=] {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] -= g[i];
    };
    if (tells) rank.member.service().optimizer(step);
    for (Iteration k = 0; k < (rank.rank() == 0 ? 1 : 40); ++k) {
      rank.member.start(k);
      std::ranges::fill(g, 1.0F);
      std::this_thread::sleep_for(microseconds(100));
      rank.member.finish(k);
      step();
      rank.member.stepped(k);
    }
    rank.member.settle();
  };
  const ParticipantPlan plan(Config::from_text(yaml));
  const auto topology = plan.topology(2);
  const Layout layout = two_segments(30);
  const std::vector<float> initial(layout.size(), 0.0F);
  const LocalJob job{.topology = *topology,
                     .layout = layout,
                     .initial = initial,
                     .plan = plan.exchange(),
                     .engine = EngineKind::thread_engine,
                     .step = {.learning_rate = 1.0, .momentum = 0.9}};
  CHECK_NOTHROW(run_local_ranks(job, [&](LocalRank& rank) { loop(rank, true); }));
  CHECK_THROWS_WITH_AS(run_local_ranks(job, [&](LocalRank& rank) { loop(rank, false); }),
                       doctest::Contains("does not know what its optimizer does"), ConfigError);
}

// Without gradients; a rank that stood still after its only iteration would keep its 100.
TEST_CASE("a rank that is done goes on mixing until all are") {
  const std::string ring = "topology: {graph: {name: ring}, weights: {name: uniform}}\n";
  for (const std::string& yaml :
       {ring + "exchange: {name: dpsgd, schedule: asynchronous}\n",
        ring + "exchange: {name: dpsgd, schedule: asynchronous, correction: {name: drift}}\n",
        ring +
            "exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}\ntrigger: {name: always}\n",
        ring + "exchange: {name: push_sum, schedule: asynchronous}\n",
        std::string("topology: {graph: {name: directed_ring}, weights: {name: uniform}}\n"
                    "exchange: {name: push_sum, schedule: asynchronous}\n")}) {
    CAPTURE(yaml);
    std::vector<float> last(3);
    const Thrown thrown = run(yaml, 3, two_segments(30), [&](LocalRank& rank) {
      const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
      std::ranges::fill(x, rank.rank() == 0 ? 100.0F : 0.0F);
      std::ranges::fill(g, 0.0F);
      // The others go on until they are near the mean, 33.3, or for a while: how long that takes is up to the machine.
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
      const auto goes_on = [&](Iteration k) {
        if (k < (rank.rank() == 0 ? 1 : 300)) return true;
        return rank.rank() != 0 && std::abs(x[20] - 33.3F) > 2.0F && std::chrono::steady_clock::now() < deadline;
      };
      for (Iteration k = 0; goes_on(k); ++k) {
        rank.member.start(k);
        std::this_thread::sleep_for(microseconds(200));
        rank.member.learning_rate(0.1);
        rank.member.finish(k);
        rank.member.stepped(k);
      }
      rank.member.settle();
      last[static_cast<std::size_t>(rank.rank())] = x[20];
    });
    CHECK(thrown.first == "");
    CHECK(std::ranges::max(last) - std::ranges::min(last) < 5.0F);
    CHECK(std::ranges::max(last) < 60.0F);
  }
}

TEST_CASE("whoever waits for a rank that has left is told so") {
  const Thrown thrown = run(
      "topology: {graph: {name: ring}, weights: {name: uniform}}\nexchange: {name: dpsgd, schedule: asynchronous}\n", 4,
      two_segments(30), [&](LocalRank& rank) {
        descend(rank, 3, [](Iteration, std::span<float>) {});
        if (rank.rank() == 2) return rank.member.leave();
        rank.member.settle();
      });
  CHECK(thrown.first.find("rank 2 has left the job") == 0);
  CHECK(thrown.by_rank[2] == "");
}

}  // namespace hearsay::endings_test
