// Single values as events: what they keep, how far a copy may be off, and what does not travel.
#include <cmath>
#include <mutex>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/exchange/neighbour/link/link.hpp"
#include "runtime/exchange/neighbour/value_step.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"
#include "tests/topology/support.hpp"
#include "trigger/trigger.hpp"

namespace hearsay::value_events_test {
namespace {

using namespace test;

/// A ring whose edges weigh 1/4: multiples of 4 stay whole numbers.
std::string quarter_ring(int ranks) {
  std::string lines;
  for (int i = 0; i < ranks; ++i)
    if (ranks > 2 || i == 0) lines += std::to_string(i) + " " + std::to_string((i + 1) % ranks) + " 0.25\n";
  return lines;
}

std::string value_events(double step, double theta) {
  return "trigger: {name: value_events}\nsparsify: {quantiser: {step: " + std::to_string(step) +
         ", dead_zone: " + std::to_string(theta) + "}}\n";
}

void scatter_integers(LocalRank& rank) {
  Random random(stream_seed(5, "start", static_cast<std::uint64_t>(rank.rank())));
  for (float& v : rank.replica.values.span()) v = static_cast<float>(static_cast<int>(random.below(2001)) - 1000);
}

std::string topology_of(const TextFile& file) {
  const std::string path = "path: " + file.name() + "}";
  return "topology: {graph: {name: edge_list, " + path + ", weights: {name: edge_list, " + path + "}\n";
}

/// Asynchronously mixes only, from whole numbers, until nothing is under way.
JobOutcome settled(int ranks, const std::string& yaml, Iteration iterations) {
  const TextFile file(quarter_ring(ranks));
  const Plan plan(topology_of(file) + yaml);
  const Topology topology = plan.topology(ranks);
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange()};
  JobOutcome outcome{.ranks = std::vector<RankOutcome>(static_cast<std::size_t>(ranks))};
  run_local_ranks(job, [&](LocalRank& rank) {
    scatter_integers(rank);
    for (Iteration k = 0; k < iterations; ++k) {
      rank.member.start(k);
      rank.member.finish(k);
      rank.member.stepped(k);
    }
    rank.member.settle();
    const auto x = rank.replica.values.span();
    outcome.ranks[static_cast<std::size_t>(rank.rank())].x.assign(x.begin(), x.end());
  });
  return outcome;
}

/// Mixes only, from whole numbers.
JobOutcome mix(int ranks, const std::string& yaml, Iteration iterations) {
  const TextFile file(quarter_ring(ranks));
  const std::string topology = topology_of(file);
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const ZeroGradient none;
  return train_locally(topology + yaml, layout, initial, none,
                       {.ranks = ranks,
                        .descent = {.learning_rate = 0.0},
                        .iterations = iterations,
                        .run = Ranks::threads,
                        .prepare = scatter_integers});
}

std::vector<double> sum_over_ranks(const JobOutcome& job) {
  std::vector<double> sum(job.ranks.front().x.size());
  for (const RankOutcome& rank : job.ranks)
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += rank.x[e];
  return sum;
}

double spread(const JobOutcome& job) {
  double most = 0.0;
  for (std::size_t e = 0; e < job.ranks.front().x.size(); ++e) {
    float low = job.ranks.front().x[e], high = low;
    for (const RankOutcome& rank : job.ranks) low = std::min(low, rank.x[e]), high = std::max(high, rank.x[e]);
    most = std::max(most, static_cast<double>(high - low));
  }
  return most;
}

// A move is a quarter of a multiple of Δ = 64: nothing is rounded.
TEST_CASE("in lockstep the sum over ranks is kept exactly, and ranks come together") {
  for (const char* mixing : {"{name: difference, gamma: 1}", "{name: arrival}"}) {
    for (const double theta : {0.5, 0.75, 1.0}) {
      for (int ranks = 2; ranks <= 8; ++ranks) {
        CAPTURE(mixing);
        CAPTURE(theta);
        CAPTURE(ranks);
        const std::string yaml = eventgrad(mixing) + value_events(64, theta);
        const JobOutcome before = mix(ranks, yaml, 0), after = mix(ranks, yaml, 60);
        CHECK(sum_over_ranks(after) == sum_over_ranks(before));
        CHECK(spread(after) < spread(before) / 2);
        CHECK(after.totals().messages > 0);
      }
    }
  }
}

// Where edges alternate, copies follow each other's moves by a quarter, so digits grow: few iterations.
TEST_CASE("asynchronously nothing is lost either, whatever the order of events") {
  for (const char* mixing : {"{name: difference, gamma: 1}", "{name: arrival}"}) {
    for (int ranks = 2; ranks <= 8; ++ranks) {
      CAPTURE(mixing);
      CAPTURE(ranks);
      const std::string yaml = eventgrad(mixing, "asynchronous") + value_events(64, 0.75);
      const JobOutcome before = settled(ranks, yaml, 0), after = settled(ranks, yaml, 5);
      CHECK(sum_over_ranks(after) == sum_over_ranks(before));
      bool moved = false;  // a rank that is done before the others have begun may mix with nothing
      for (std::size_t r = 0; r < after.ranks.size(); ++r) moved = moved || after.ranks[r].x != before.ranks[r].x;
      CHECK(moved);
    }
  }
}

// With copies of an edge as well: digits grow by two an iteration.
TEST_CASE("copies of an edge, which follow the moves that both ends know, lose nothing") {
  for (const char* mixing : {"{name: difference, gamma: 1}", "{name: arrival}"}) {
    for (int ranks = 2; ranks <= 8; ++ranks) {
      CAPTURE(mixing);
      CAPTURE(ranks);
      const std::string yaml =
          "exchange: {name: eventgrad, copies: edge, mixing: " + std::string(mixing) + "}\n" + value_events(64, 0.75);
      const JobOutcome before = mix(ranks, yaml, 0), after = mix(ranks, yaml, 6);
      CHECK(sum_over_ranks(after) == sum_over_ranks(before));
      CHECK(spread(after) < spread(before));
      CHECK(mix(ranks, yaml, 6).hashes() == after.hashes());
    }
  }
}

Sparsifier sparsifier(const std::string& yaml) {
  Config section = Config::from_text(yaml);
  Sparsifier read = read_sparsifier(section, {});
  section.document().throw_if_invalid();
  return read;
}

TEST_CASE("after every send no copy is further off than θΔ, and both ends hold the same copy") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  for (const double theta : {0.5, 0.7, 1.0}) {
    CAPTURE(theta);
    const Sparsifier sparse = sparsifier("{quantiser: {name: dead_zone, dead_zone: " + std::to_string(theta) + "}}");
    const StepRule rule = *sparse.codec->step_rule();
    const Topology topology = Plan(std::string(ring) + dpsgd).topology(4);
    const std::vector<std::uint8_t> all(layout.count(), std::uint8_t{1});
    const IdlePlan plan(packet_bound(sparse, layout, all));
    const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan};
    std::vector<std::vector<float>> held(4);
    double furthest = 0.0;
    std::mutex mutex;
    run_local_ranks(job, [&](LocalRank& rank) {
      NeighbourLink link(rank.context(), {.keep_own_copies = true}, sparse.fresh());
      Random random(stream_seed(9, "walk", static_cast<std::uint64_t>(rank.rank())));
      for (Iteration k = 0; k < 40; ++k) {
        const float step = sent_step(std::exp(random.normal()));
        for (float& x : rank.replica.values.span()) x += static_cast<float>(random.normal());
        link.count_in(step);
        link.send(k, all);
        const auto copy = link.own_copies().front().span();
        {
          const std::lock_guard lock(mutex);
          held[static_cast<std::size_t>(rank.rank())].assign(copy.begin(), copy.end());
          for (std::size_t e = 0; e < layout.size(); ++e)
            furthest =
                std::max(furthest, std::abs(double{rank.replica.values.span()[e]} - copy[e]) / dead_zone(rule, step));
        }
        link.receive(k);
        link.mixed(link.every_segment());
        rank.barrier();
        for (std::size_t e = 0; e < link.edges().size(); ++e) {
          const auto& theirs = held[static_cast<std::size_t>(rank.context().neighbourhood.neighbours[e])];
          const std::lock_guard lock(mutex);
          CHECK(std::ranges::equal(link.edges()[e].theirs, theirs));
        }
        rank.barrier();
      }
    });
    CHECK(furthest <= 1.0 + 1e-5);
    CHECK(furthest > 0.9);
  }
}

/// Moves the first value of the second segment of every rank, and nothing else.
class OneValueMoves final : public reference::GradientSource {
 public:
  explicit OneValueMoves(const Layout& layout) : at_(layout[1].offset) {}
  void gradient(int, Iteration, std::span<const float>, std::span<float> g) const override {
    std::ranges::fill(g, 0.0F);
    g[at_] = 1.0F;
  }

 private:
  std::size_t at_;
};

TEST_CASE("a tensor without news costs nothing, one with an event a few bytes") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const OneValueMoves moves(layout);
  const std::string yaml = ring + eventgrad("{name: difference, gamma: 1}") +
                           "trigger: {name: value_events, warmup_iterations: 0}\nsparsify: {quantiser: {step: 0.25}}\n";
  const JobOutcome job = train_locally(yaml, layout, initial, moves, {.ranks = 4, .descent = {.learning_rate = 0.1}});
  for (const RankOutcome& rank : job.ranks) {
    CHECK(rank.segment_events[0] + rank.segment_events[2] + rank.segment_events[3] == 0);
    CHECK(rank.segment_messages[0] + rank.segment_messages[2] + rank.segment_messages[3] == 0);
    CHECK(rank.segment_events[1] >= 20);  // 60 steps of 0.1
    CHECK(rank.segment_events[1] <= 24);
    CHECK(rank.totals.payload_bytes + rank.totals.index_bytes <= 10 * rank.totals.messages);
  }
}

TEST_CASE("while no step is known nothing is news; the first gradient tells it") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const reference::Quadratic problem(layout, 4, 3);
  const std::string yaml = ring + eventgrad("{name: difference, gamma: 1}") + "trigger: {name: value_events}\n";
  const auto messages = [&](Iteration iterations) {
    return train_locally(yaml, layout, initial, problem, {.ranks = 4, .iterations = iterations}).totals().messages;
  };
  CHECK(messages(1) == 0);
  CHECK(messages(60) > 0);
}

TEST_CASE("Δ is h typical steps: of a gradient, under momentum, and of an optimizer that normalises") {
  const Layout layout = reference::small_layout();
  const auto device = processor();
  std::vector<StepResponse> steps(layout.count(), StepResponse{.learning_rate = 0.5});
  ValueStep step({.horizon = 4.0, .dead_zone = 0.5}, steps, layout, *device);
  CHECK(step.length() == 0.0F);
  CHECK(std::isinf(step.dead_zone()));
  const std::vector<float> g(layout.size(), 0.25F);
  for (int i = 0; i < 100; ++i) step.gradient(g);
  CHECK(step.length() == 0.5F);
  CHECK(step.dead_zone() == 0.25);
  RawBytes saved;
  Archive to = Archive::saving(saved);
  step.state(to);
  for (StepResponse& s : steps) s = {.learning_rate = 0.5, .momentum = 0.5};
  CHECK(step.length() == 1.0F);
  for (StepResponse& s : steps) s = {.learning_rate = 0.5, .normalised = StepResponse::Normalised{}};
  CHECK(step.length() == 2.0F);
  for (StepResponse& s : steps) s = {.learning_rate = 0.5};
  ValueStep again({.horizon = 4.0, .dead_zone = 0.5}, steps, layout, *device);
  Archive from = Archive::loading(saved, "here");
  again.state(from);
  CHECK(again.length() == 0.5F);
  ValueStep fixed({.fixed = 0.3}, steps, layout, *device);
  CHECK(fixed.length() == sent_step(0.3));
}

TEST_CASE("drift correction finds the minimum of the sum from events of single values") {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, 8, 3);
  const std::vector<float> initial = problem.initial();
  const auto distance = [&](const std::string& correction) {
    const std::string yaml =
        ring + std::string("exchange: {name: eventgrad, mixing: {name: difference, gamma: 1}, correction: ") +
        correction + "}\ntrigger: {name: value_events}\nsparsify: {quantiser: {horizon: 2}}\n";
    const JobOutcome job = train_locally(yaml, layout, initial, problem, {.ranks = 8, .iterations = 800});
    double most = 0.0;
    for (int r = 0; r < 8; ++r) {
      std::vector<float> sum(layout.size()), g(layout.size());
      for (int source = 0; source < 8; ++source) {
        problem.gradient(source, 800, job.ranks[static_cast<std::size_t>(r)].x, g);
        for (std::size_t e = 0; e < g.size(); ++e) sum[e] += g[e] / 8;
      }
      most = std::max(most, norm(sum));
    }
    return most;
  };
  CHECK(distance("{name: drift, strength: 0.3}") < distance("{name: none}") / 2);
}

TEST_CASE("what values cannot be is said by name") {
  const auto refusal = [](const std::string& yaml) {
    try {
      Plan(ring + eventgrad("{name: difference}") + yaml);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal("trigger: {name: value_events}\nsparsify: {quantiser: {name: fp4}}\n").find("dead_zone") !=
        std::string::npos);
  CHECK(refusal("trigger: {name: value_events}\nsparsify: {quantiser: {dead_zone: 0.4}}\n").find("dead_zone") !=
        std::string::npos);
  CHECK(refusal("trigger: {name: value_events}\n").empty());
  CHECK(refusal("trigger: {name: always}\nsparsify: {quantiser: {name: dead_zone}}\n").empty());
}

}  // namespace
}  // namespace hearsay::value_events_test
