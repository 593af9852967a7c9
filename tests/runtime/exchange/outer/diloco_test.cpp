// The laws of DiLoCo: what it is at its corners, and what fragments, delay and blending do.
#include "base/error.hpp"
#include "tests/runtime/exchange/outer/given.hpp"

namespace hearsay::diloco_test {
namespace {

using namespace test;

std::string diloco(const std::string& keys) { return everybody + ("exchange: {name: diloco, " + keys + "}\n"); }
constexpr const char* plain_outer = "outer: {learning_rate: 1, momentum: 0}";

JobOutcome train(const std::string& yaml, int ranks, Descent descent = {}, Iteration iterations = 60) {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, ranks, 3);
  return train_locally(yaml, layout, problem.initial(), problem,
                       {.ranks = ranks, .descent = descent, .iterations = iterations, .run = Ranks::threads});
}

TEST_CASE("a round of one step with a plain outer step is the dense sum's SGD, to rounding") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    CAPTURE(ranks);
    const JobOutcome rounds = train(diloco(std::string("local_steps: 1, ") + plain_outer), ranks);
    const JobOutcome dense = train(everybody + "exchange: {name: allreduce}\n", ranks);
    for (const RankOutcome& rank : rounds.ranks) CHECK(rank.hash == rounds.ranks[0].hash);
    check_close(mean_of(rounds), mean_of(dense), 2e-6);
  }
}

// Slow weights follow fast ones every H steps.
TEST_CASE("one rank alone is Lookahead and sends nothing") {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, 1, 3);
  std::vector<float> fast = problem.initial(), slow = fast, g(fast.size());
  for (Iteration k = 0; k < 60; ++k) {
    problem.gradient(0, k, fast, g);
    for (std::size_t e = 0; e < fast.size(); ++e) fast[e] -= 0.1F * g[e];
    if ((k + 1) % 5 != 0) continue;
    for (std::size_t e = 0; e < fast.size(); ++e) fast[e] = slow[e] += 0.5F * (fast[e] - slow[e]);
  }
  const JobOutcome alone = train(diloco("local_steps: 5, outer: {learning_rate: 0.5, momentum: 0}"), 1);
  CHECK(alone.ranks[0].x == fast);
  CHECK(alone.totals().bytes() == 0);
}

TEST_CASE("the outer step is Nesterov's, and the inner optimizer keeps its own state") {
  for (const int ranks : {1, 3, 4}) {
    const JobOutcome job = train_given(diloco("local_steps: 4, outer: {learning_rate: 0.7, momentum: 0.9}"), ranks, 40);
    check_close(mean_of(job), mean_way(ranks, job.ranks[0].x.size(), 40, 4, 0.7, 0.9, true), 2e-4);
    for (const RankOutcome& rank : job.ranks) CHECK(rank.hash == job.ranks[0].hash);
  }
  // A velocity that was reset at the end of a round would give another model than one that was not.
  const Descent momentum{.learning_rate = 0.02, .momentum = 0.9};
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, 1, 3);
  std::vector<float> x = problem.initial(), velocity(x.size()), g(x.size());
  for (Iteration k = 0; k < 60; ++k) {
    problem.gradient(0, k, x, g);
    for (std::size_t e = 0; e < x.size(); ++e) {
      velocity[e] = 0.9F * velocity[e] + g[e];
      x[e] -= momentum.rate(k) * velocity[e];
    }
  }
  const auto alone = train(diloco(std::string("local_steps: 6, ") + plain_outer), 1, momentum).ranks[0].x;
  for (std::size_t e = 0; e < x.size(); ++e) CHECK(alone[e] == doctest::Approx(x[e]).epsilon(1e-4).scale(0.01));
}

TEST_CASE("between rounds ranks go alone, and at their end they are the same") {
  const auto agree = [](Iteration iterations) {
    const JobOutcome job = train(diloco("local_steps: 4"), 3, {}, iterations);
    return job.ranks[0].hash == job.ranks[1].hash && job.ranks[0].hash == job.ranks[2].hash;
  };
  for (const Iteration k : {1, 2, 3, 5, 9, 11}) CHECK(!agree(k));
  for (const Iteration k : {4, 8, 12}) CHECK(agree(k));
}

// Four fragments of one segment each, of 1, 7, 64 and 300 values. Their rounds end after 2, 4, 6 and 8 steps.
TEST_CASE("fragments end their rounds one after the other, with all that they have by then") {
  const Layout layout = reference::small_layout();
  for (const Iteration iterations : {1, 2, 3, 4, 6, 7, 8, 9, 10}) {
    CAPTURE(iterations);
    const JobOutcome job =
        train_given(diloco(std::string("local_steps: 8, fragments: 4, ") + plain_outer), 4, iterations);
    for (std::size_t s = 0; s < layout.count(); ++s) {
      const Segment& segment = layout[static_cast<SegmentId>(s)];
      const Iteration ends = 2 * (static_cast<Iteration>(s) + 1);
      const bool ended_now = iterations >= ends && (iterations - ends) % 8 == 0;
      bool same = true;
      for (const RankOutcome& rank : job.ranks)
        for (std::size_t e = segment.offset; e < segment.offset + segment.length; ++e)
          same = same && rank.x[e] == job.ranks[0].x[e];
      // One value may be the same on all ranks by chance.
      if (segment.length > 1) CHECK(same == ended_now);
      CHECK(job.ranks[0].segment_events[s] ==
            static_cast<std::uint64_t>(std::max<Iteration>(0, (iterations - ends + 8) / 8)));
    }
    // The mean goes where it goes without fragments: a plain round moves it nowhere.
    check_close(mean_of(job), mean_way(4, layout.size(), iterations, 1000, 1.0, 0.0, true), 1e-5);
  }
}

/// One value on every rank: Streaming DiLoCo as its paper has it, in double.
std::vector<double> streamed(int ranks, Iteration iterations, Iteration local_steps, Iteration delay, double blend,
                             double eta, double mu) {
  const Given given;
  std::vector<double> x(static_cast<std::size_t>(ranks));
  double phi = 0.0, m = 0.0, difference = 0.0;
  std::vector<float> g(1);
  for (Iteration k = 1; k <= iterations; ++k) {
    for (int r = 0; r < ranks; ++r) {
      given.gradient(r, k - 1, {}, g);
      x[static_cast<std::size_t>(r)] -= 0.125 * static_cast<double>(g[0]);
    }
    if (k % local_steps == 0) {
      difference = 0.0;
      for (const double value : x) difference += (phi - value) / ranks;
    }
    if (k >= local_steps + delay && (k - delay) % local_steps == 0) {
      m = mu * m + difference;
      phi -= eta * (difference + mu * m);
      for (double& value : x) value = (1.0 - blend) * phi + blend * value;
    }
  }
  return x;
}

TEST_CASE("a sum that travels for some steps acts on what they have made") {
  Layout layout;
  layout.append("value", {1});
  const std::vector<float> initial(1, 0.0F);
  for (const Iteration delay : {0, 1, 3}) {
    for (const std::string blend : {"0", "0.25"}) {
      for (const Iteration iterations : {4, 5, 7, 24, 27, 30}) {
        CAPTURE(delay);
        CAPTURE(blend);
        CAPTURE(iterations);
        const JobOutcome job =
            train_locally(diloco("local_steps: 4, delay_steps: " + std::to_string(delay) + ", blend: " + blend), layout,
                          initial, Given(),
                          {.ranks = 3,
                           .descent = {.learning_rate = 0.125},
                           .iterations = iterations,
                           .run = Ranks::threads_with_communication_threads});
        const auto expected = streamed(3, iterations, 4, delay, std::stod(blend), 0.7, 0.9);
        for (std::size_t r = 0; r < 3; ++r)
          CHECK(static_cast<double>(job.ranks[r].x[0]) == doctest::Approx(expected[r]).epsilon(1e-4).scale(1.0));
      }
    }
  }
}

TEST_CASE("a round has the bytes of one dense sum") {
  const Layout layout = reference::small_layout();
  for (const std::string keys : {"local_steps: 5", "local_steps: 10, fragments: 3", "local_steps: 5, delay_steps: 2"}) {
    for (const int ranks : {2, 4, 5}) {
      const JobOutcome job = train(diloco(keys), ranks, {}, 20);
      const std::uint64_t rounds = keys.find("10") == std::string::npos ? 4 : 2;
      CHECK(job.totals().payload_bytes == rounds * 2 * static_cast<std::uint64_t>(ranks - 1) * 4 * layout.size());
      const auto cost = Plan(diloco(keys)).exchange().cost(layout, Plan(diloco(keys)).topology(ranks), {});
      CHECK(20 * ranks * cost->sent_bytes == doctest::Approx(static_cast<double>(job.totals().payload_bytes)));
    }
  }
}

TEST_CASE("what is not finite is said before anybody adds it") {
  class Bad final : public reference::GradientSource {
   public:
    void gradient(int worker, std::int64_t k, std::span<const float>, std::span<float> g) const override {
      for (float& value : g) value = 1.0F;
      if (worker == 1 && k == 2) g[10] = std::numeric_limits<float>::infinity();
    }
  };
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  for (const std::string name : {"diloco", "noloco"})
    CHECK_THROWS_WITH_AS(train_locally(everybody + "exchange: {name: " + name + ", local_steps: 4}\n", layout, initial,
                                       Bad(), {.ranks = 3, .iterations = 8, .run = Ranks::threads}),
                         doctest::Contains("parameter 'weight'"), DivergenceError);
}

TEST_CASE("settings that make no sense are refused with the remedy") {
  CHECK(said_of(alone(diloco("local_steps: 4, fragments: 5"))).find("use fewer fragments") != std::string::npos);
  CHECK(said_of(alone(diloco("local_steps: 4, fragments: 2, delay_steps: 2"))).find("must be less than") !=
        std::string::npos);
  CHECK(said_of(alone(diloco("local_steps: 4, fragments: 2, delay_steps: 1"))).empty());
  CHECK(said_of(alone(diloco("schedule: asynchronous"))).find("take gossip_outer") != std::string::npos);
  CHECK(said_of(diloco("local_steps: 4")).find("topology") != std::string::npos);
  CHECK_THROWS_WITH_AS(Plan(diloco("fragments: 5")).exchange().packet_bound(reference::small_layout(), 2),
                       doctest::Contains("the model has 4 tensors"), ConfigError);
}

}  // namespace
}  // namespace hearsay::diloco_test
