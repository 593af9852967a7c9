// Asynchronous ranks whose edges alternate: nothing of the mean is lost, and skewed data do not bend the result,
// whatever the delays, the speeds and the events.
#include <atomic>
#include <chrono>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/exchange/neighbour/alternating_edges.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"
#include "tests/topology/support.hpp"

namespace hearsay::alternating_edges_test {
namespace {

using namespace test;
using std::chrono::microseconds;

/// A ring whose edges weigh 1/4: whole numbers stay multiples of small powers of two.
std::string quarter_ring(int ranks) {
  std::string lines;
  for (int i = 0; i < ranks; ++i)
    if (ranks > 2 || i == 0) lines += std::to_string(i) + " " + std::to_string((i + 1) % ranks) + " 0.25\n";
  return lines;
}
Topology quarter_ring_of(int ranks) {
  const TextFile file(quarter_ring(ranks));
  const std::string path = "path: " + file.name() + "}";
  return Plan("topology: {graph: {name: edge_list, " + path + ", weights: {name: edge_list, " + path + "}\n" + dpsgd)
      .topology(ranks);
}

Sparsifier sparsifier(const std::string& yaml) {
  Config section = Config::from_text(yaml);
  Sparsifier read = read_sparsifier(section, {});
  section.document().throw_if_invalid();
  return read;
}

std::unique_ptr<MixingRule> rule_named(const std::string& yaml) {
  Config section = Config::from_text(yaml);
  auto rule = chosen_entry(mixing_rules(), section, "arrival", "").make(section);
  section.document().throw_if_invalid();
  return rule;
}

constexpr LinkOptions alternating{
    .schedule = Schedule::asynchronous, .keep_own_copies = true, .repeats = false, .alternating = true};

/// What is left of a rank when all is quiet.
struct Rest {
  std::vector<float> x, v;
  std::vector<double> added;  ///< to x by the rank itself
  std::vector<std::vector<float>> ours, theirs;
};

struct Walk {
  std::string mixing = "{name: arrival}";
  std::string sparsify = whole;
  EngineKind engine = EngineKind::thread_engine;
  Iteration iterations = 60;
  double strength = 0.5;
  bool walks = true;  ///< ranks move by themselves, too
  std::uint64_t seed = 0;
  bool stops = false;    ///< rank 1 does, for a second
  bool answers = false;  ///< ranks answer between iterations, too, every other time
};

/// Small whole numbers; ranks that fire at random, move by whole numbers, and go at speeds of their own.
std::vector<Rest> walk(int ranks, const Walk& how) {
  const Topology topology = quarter_ring_of(ranks);
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  std::size_t bytes = sizeof(PacketHeader);
  for (const Segment& s : layout.segments()) bytes += segment_bound(sparsifier(how.sparsify), s.length);
  const IdlePlan plan(bytes);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan, .engine = how.engine};
  std::vector<Rest> all(static_cast<std::size_t>(ranks));
  run_local_ranks(job, [&](LocalRank& rank) {
    Rest& rest = all[static_cast<std::size_t>(rank.rank())];
    const auto context = rank.context();
    NeighbourLink link(context, alternating, sparsifier(how.sparsify));
    DriftCorrection drift(how.strength, context, link.settling(), 1.0);
    const auto rule = rule_named(how.mixing);
    EdgeMixing mixing(context, link, *rule, &drift);
    AlternatingEdges edges(link, mixing);
    Random random(stream_seed(31 + how.seed, "walk", static_cast<std::uint64_t>(rank.rank())));
    rest.added.resize(layout.size());
    const auto step = [&](std::size_t e, float to) {
      float& x = rank.replica.values.span()[e];
      rest.added[e] += double{to} - x;
      x = to;
    };
    for (std::size_t e = 0; e < layout.size(); ++e) step(e, static_cast<float>(random.below(15)) - 7.0F);
    std::vector<std::uint8_t> fired(layout.count());
    for (Iteration k = 0; k < how.iterations; ++k) {
      for (auto& f : fired) f = k % 3 == 0 || random.uniform() < 0.4 ? 1 : 0;
      for (std::size_t e = 0; e < link.edges().size(); ++e) link.say_gains(e, drift.gains(e, k));
      edges.send(k, fired);
      std::this_thread::sleep_for(microseconds(random.below(rank.rank() == 0 ? 800 : 200)));
      if (how.stops && rank.rank() == 1 && k == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
      edges.hear(k);
      if (how.answers && random.below(2) == 0) edges.answer(k);
      for (std::size_t e = 0; how.walks && e < layout.size(); ++e)
        step(e, std::round(rank.replica.values.span()[e]) + static_cast<float>(random.below(3)) - 1.0F);
    }
    rank.member.settle();
    edges.hear(how.iterations);
    rest.x.assign(rank.replica.values.span().begin(), rank.replica.values.span().end());
    rest.v.resize(layout.size());
    drift.correct(rest.v);
    for (const MixEdge& edge : link.edges()) {
      rest.ours.emplace_back(edge.ours.begin(), edge.ours.end());
      rest.theirs.emplace_back(edge.theirs.begin(), edge.theirs.end());
    }
    rank.barrier();
  });
  return all;
}

constexpr EngineKind engines[] = {EngineKind::inline_engine, EngineKind::thread_engine};
const std::string exact_bodies[] = {whole, "{selector: {name: topk, density: 0.3}}"};

/// What the ranks have beyond what they added themselves.
std::vector<double> surplus(const std::vector<Rest>& all) {
  std::vector<double> sum(all[0].x.size());
  for (const Rest& rest : all)
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += rest.x[e] - rest.added[e];
  return sum;
}
bool mixed(const std::vector<Rest>& all) {
  for (const Rest& rest : all)
    for (std::size_t e = 0; e < rest.x.size(); ++e)
      if (rest.x[e] != rest.added[e]) return true;
  return false;
}

// A move has two bits more behind the point than the copies that it is made of: four iterations, at most nine events of
// an edge, fit into a float.
TEST_CASE("the sum over ranks is what they had and what they added themselves, after any delays, speeds and events") {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    for (const std::string mixing : {"{name: arrival}", "{name: difference, gamma: 1}"}) {
      for (const std::string& body : exact_bodies) {
        for (const EngineKind engine : engines) {
          for (std::uint64_t seed = 0; seed < 5; ++seed) {
            CAPTURE(ranks);
            CAPTURE(mixing);
            CAPTURE(body);
            const auto all =
                walk(ranks, {.mixing = mixing, .sparsify = body, .engine = engine, .iterations = 4, .seed = seed});
            CHECK(surplus(all) == std::vector<double>(all[0].x.size(), 0.0));
            CHECK(mixed(all));
          }
        }
      }
    }
  }
}

TEST_CASE("the same where ranks answer between iterations, and what they learn adds up to 0") {
  for (const int ranks : {2, 4, 8}) {
    for (const std::string& body : exact_bodies) {
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        CAPTURE(ranks);
        CAPTURE(body);
        const auto all = walk(ranks, {.sparsify = body, .iterations = 2, .seed = seed, .answers = true});
        CHECK(surplus(all) == std::vector<double>(all[0].x.size(), 0.0));
        CHECK(mixed(all));
        std::vector<double> learnt(all[0].v.size());
        for (const Rest& rest : all)
          for (std::size_t e = 0; e < learnt.size(); ++e) learnt[e] += rest.v[e];
        CHECK(learnt == std::vector<double>(learnt.size(), 0.0));
      }
    }
  }
}

TEST_CASE("the same where a rank stops for a second") {
  for (const std::string mixing : {"{name: arrival}", "{name: difference, gamma: 1}"}) {
    CAPTURE(mixing);
    const auto all = walk(4, {.mixing = mixing, .iterations = 4, .stops = true});
    CHECK(surplus(all) == std::vector<double>(all[0].x.size(), 0.0));
    CHECK(mixed(all));
  }
}

// A gradient is of where the rank's own event has moved it: nothing has come of the other end yet. What comes before a
// rank has begun an iteration moves it, too.
TEST_CASE("an event moves its sender before the gradient is taken, and the other end when it comes") {
  const Topology topology = quarter_ring_of(2);
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const std::string asynchronous[] = {
      "exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}\ntrigger: {name: always}",
      "exchange: {name: dpsgd, schedule: asynchronous, correction: {name: drift}}"};
  for (const std::string& yaml : asynchronous) {
    for (const bool has_begun : {true, false}) {
      CAPTURE(yaml);
      CAPTURE(has_begun);
      const Plan plan(yaml);
      const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange()};
      LocalWorld world(job);
      const auto sender = world.make_rank(0), receiver = world.make_rank(1);
      const auto all_are = [](const LocalRank& rank, float value) {
        return std::ranges::all_of(rank.replica.values.span(), [&](float x) { return x == value; });
      };
      std::ranges::fill(sender->replica.values.span(), 8.0F);
      sender->member.start(0);  // moves both by (0 − 8) / 4
      CHECK(all_are(*sender, 6.0F));
      if (has_begun) receiver->member.start(0);  // the lower rank sends first
      receiver->mailbox.progress();
      CHECK(all_are(*receiver, 0.0F));
      receiver->member.finish(0);
      CHECK(all_are(*receiver, 2.0F));
      sender->member.finish(0);
      CHECK(all_are(*sender, 6.0F));
      // Gradients were 0: what is left of them is −v.
      const float learnt = sender->replica.gradients.span().front();
      CHECK((learnt != 0.0F) == (yaml.find("drift") != std::string::npos));
      CHECK(receiver->replica.gradients.span().front() == -learnt);
    }
  }
}

// What a rank tells the other end is its gain, the learning rate of 1/2, times the iterations that a move counts for.
TEST_CASE("a move counts for an iteration, where an edge has two in each for twice as long, and for a silence") {
  const Topology topology = quarter_ring_of(2);
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const IdlePlan plan(65536);
  const LocalJob job{
      .topology = topology, .layout = layout, .initial = initial, .plan = plan, .step = {.learning_rate = 0.5}};
  const std::vector<std::uint8_t> fires(layout.count(), 1), rests(layout.count(), 0);
  struct Member {
    explicit Member(LocalRank& rank)
        : context(rank.context()),
          link(context, alternating, sparsifier(whole)),
          drift(0.5, context, link.settling(), 1.0),
          mixing(context, link, *rule, &drift) {}
    ExchangeContext context;
    NeighbourLink link;
    DriftCorrection drift;
    std::unique_ptr<MixingRule> rule = make_arrival();
    EdgeMixing mixing;
    AlternatingEdges edges{link, mixing};
  };
  constexpr Iteration iterations = 240;
  const auto told = [&](Iteration period, bool both) {
    LocalWorld world(job);
    const auto a = world.make_rank(0), b = world.make_rank(1);
    Member first(*a), second(*b);
    for (Iteration k = 0; k < iterations; ++k) {
      for (Member* member : {&first, &second}) member->link.say_gains(0, member->drift.gains(0, k));
      first.edges.send(k, k % period == 0 ? fires : rests);
      a->member.communication().flush();
      b->mailbox.progress();
      second.edges.hear(k);
      second.edges.send(k, both && k % period == 0 ? fires : rests);
      b->member.communication().flush();
      a->mailbox.progress();
      first.edges.hear(k);
    }
    return first.drift.gains(0, iterations)[0] / 0.5F;
  };
  CHECK(told(1, false) == 1.0F);
  CHECK(told(1, true) == doctest::Approx(2.0).epsilon(0.15));
  CHECK(told(4, false) == doctest::Approx(4.0).epsilon(0.05));
}

TEST_CASE("the same to rounding after many iterations, whatever travels") {
  for (const std::string& body : every_kind_of_body()) {
    for (const std::string mixing : {"{name: arrival}", "{name: difference, gamma: 0.5}"}) {
      CAPTURE(body);
      CAPTURE(mixing);
      for (const double left : surplus(walk(5, {.mixing = mixing, .sparsify = body}))) CHECK(std::abs(left) < 1e-3);
    }
  }
}

// Few iterations: what is learnt of a move has 8 significant bits, and the sum of many of them more than a float.
TEST_CASE("what the ranks learn adds up to 0, asynchronously too") {
  for (const int ranks : {2, 4, 8}) {
    for (const std::string mixing : {"{name: arrival}", "{name: difference, gamma: 1}"}) {
      for (const std::string& body : exact_bodies) {
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          CAPTURE(ranks);
          CAPTURE(mixing);
          CAPTURE(body);
          const auto all =
              walk(ranks, {.mixing = mixing, .sparsify = body, .iterations = 3, .walks = false, .seed = seed});
          std::vector<double> sum(all[0].v.size());
          bool learnt = false;
          for (const Rest& rest : all) {
            for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += rest.v[e];
            learnt = learnt || rest.v != std::vector<float>(sum.size(), 0.0F);
          }
          CHECK(sum == std::vector<double>(sum.size(), 0.0));
          CHECK(learnt);
        }
      }
    }
  }
}

TEST_CASE("both ends of an edge hold the same pair of copies when all is quiet, whatever travels") {
  constexpr int ranks = 4;
  for (const std::string& body : every_kind_of_body()) {
    for (const std::string mixing : {"{name: arrival}", "{name: difference, gamma: 0.5}"}) {
      CAPTURE(body);
      CAPTURE(mixing);
      const auto all = walk(ranks, {.mixing = mixing, .sparsify = body});
      const Topology topology = quarter_ring_of(ranks);
      const auto edge = [&](int from, int to) {
        const auto list = topology.neighbourhood(from).neighbours;
        return static_cast<std::size_t>(std::ranges::find(list, to) - list.begin());
      };
      for (int i = 0; i < ranks; ++i)
        for (const int j : topology.neighbourhood(i).neighbours)
          CHECK(all[std::size_t(i)].ours[edge(i, j)] == all[std::size_t(j)].theirs[edge(j, i)]);
    }
  }
}

// As for a checkpoint. Rank 1 is late to take in what has arrived: the others would be sending again by then, if they
// did not wait for it, and what all are would not fit together.
TEST_CASE("where ranks settle on their way, nothing of the sum is under way") {
  constexpr int ranks = 4;
  const Plan plan(
      "exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}\ntrigger: {name: always}");
  const Topology topology = quarter_ring_of(ranks);
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const LocalJob job{.topology = topology,
                     .layout = layout,
                     .initial = initial,
                     .plan = plan.exchange(),
                     .engine = EngineKind::thread_engine};
  for (int again = 0; again < 8; ++again) {
    std::vector<std::vector<float>> x(ranks);
    run_local_ranks(job, [&](LocalRank& rank) {
      const auto values = rank.replica.values.span();
      std::ranges::fill(values, 65536.0F * static_cast<float>(rank.rank()));
      const auto iterate = [&](Iteration first, Iteration end) {
        for (Iteration k = first; k < end; ++k) rank.member.start(k), rank.member.finish(k), rank.member.stepped(k);
      };
      iterate(0, 3);
      int met = 0;
      rank.member.settle([&] {
        rank.barrier();
        if (++met == 2 && rank.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      });
      x[static_cast<std::size_t>(rank.rank())].assign(values.begin(), values.end());
      iterate(3, 6);
      rank.member.settle();
      rank.barrier();
    });
    for (std::size_t e = 0; e < layout.size(); ++e) {
      double sum = 0.0;
      for (const auto& of_rank : x) sum += of_rank[e];
      CHECK(sum == 65536.0 * (0 + 1 + 2 + 3));
    }
  }
}

float distance(std::span<const float> x, float from) {
  float most = 0.0F;
  for (const float value : x)
    if (const float error = std::abs(value - from); !(error <= most)) most = error;  // also if it is not a number
  return most;
}

// If copies did not follow, each event would pull the silent rank by what it lacked at first, past the other and on.
TEST_CASE("a rank that never fires is drawn to its neighbour, not past it") {
  const Topology topology = quarter_ring_of(2);
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const IdlePlan plan(1 << 13);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan};
  const auto rule = make_arrival();
  run_local_ranks(job, [&](LocalRank& rank) {
    const auto context = rank.context();
    NeighbourLink link(context, alternating, {});
    EdgeMixing mixing(context, link, *rule, nullptr);
    AlternatingEdges edges(link, mixing);
    if (rank.rank() == 1) std::ranges::fill(rank.replica.values.span(), 8.0F);
    const std::vector<std::uint8_t> fired(layout.count(), rank.rank() == 0 ? 1 : 0);
    for (Iteration k = 0; k < 60; ++k) {
      edges.send(k, std::vector<std::uint8_t>(layout.count(), k == 0 ? 1 : fired[0]));
      rank.barrier();
      edges.hear(k);
      rank.barrier();
    }
    CHECK(distance(rank.replica.values.span(), 4.0F) < 1e-3F);
  });
}

/// Worker i minimises ½ ‖x − b_i‖², b_i = i everywhere.
class Apart final : public reference::GradientSource {
 public:
  void gradient(int worker, std::int64_t, std::span<const float> x, std::span<float> g) const override {
    for (std::size_t e = 0; e < g.size(); ++e) g[e] = x[e] - static_cast<float>(worker);
  }
};

/// Trains until all ranks are within `goal` of the minimum of the sum at once, or for `seconds`; rank 0 takes four
/// times as long for an iteration. Returns the largest distance of a rank when training is over, and when all that is
/// under way has mixed, too.
struct Distances {
  float trained, settled;
};
Distances descend(const std::string& yaml, int ranks, float goal, double seconds) {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const Plan plan(ring + yaml);
  const Topology topology = plan.topology(ranks);
  const LocalJob job{.topology = topology,
                     .layout = layout,
                     .initial = initial,
                     .plan = plan.exchange(),
                     .engine = EngineKind::thread_engine,
                     .step = {.learning_rate = 0.05}};
  const float minimum = static_cast<float>(ranks - 1) / 2.0F;
  const Apart problem;
  std::vector<std::atomic<float>> far(static_cast<std::size_t>(ranks));
  for (auto& of_one : far) of_one = 1e9F;
  const auto farthest = [&] {
    float most = 0.0F;
    for (const auto& of_one : far) most = std::max(most, of_one.load());
    return most;
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::atomic<bool> over{false};
  float trained = 0.0F;
  run_local_ranks(job, [&](LocalRank& rank) {
    RankTrainer trainer(rank.member, problem, {.learning_rate = 0.05});
    Random random(stream_seed(3, "delays", static_cast<std::uint64_t>(rank.rank())));
    for (Iteration k = 0; !over; ++k) {
      trainer.start(k);
      std::this_thread::sleep_for(microseconds(random.below(100) + (rank.rank() == 0 ? 300 : 0)));
      trainer.finish(k);
      far[static_cast<std::size_t>(rank.rank())] = distance(rank.replica.values.span(), minimum);
      if (farthest() <= goal || std::chrono::steady_clock::now() > end) over = true;
    }
    rank.barrier();
    if (rank.rank() == 0) trained = farthest();
    rank.barrier();
    rank.member.settle();
    far[static_cast<std::size_t>(rank.rank())] = distance(rank.replica.values.span(), minimum);
    rank.barrier();
  });
  return {trained, farthest()};
}

std::string corrected(const std::string& mixing, const std::string& correction) {
  return "exchange: {name: eventgrad, schedule: asynchronous, mixing: " + mixing +
         ", correction: {name: " + correction + "}}\n";
}

TEST_CASE("with one slow rank and data that differ every rank reaches the minimum of the sum, and not without drift") {
  const std::string adaptive = "trigger: {name: adaptive, horizon: 2, maximum_silence: 8, warmup_iterations: 0}\n";
  const std::string always = "trigger: {name: always}\n";
  const auto arrival = [](const std::string& rest) {
    return std::pair(corrected("{name: arrival}", "drift") + rest, corrected("{name: arrival}", "none") + rest);
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"exchange: {name: dpsgd, schedule: asynchronous, correction: {name: drift}}\n",
       "exchange: {name: dpsgd, schedule: asynchronous}\n"},
      arrival(always),
      arrival(adaptive),
      arrival("trigger: {name: periodic, period: 4, warmup_iterations: 0}\n"),
      arrival(always + "sparsify: {quantiser: {name: int8}}\n"),
      arrival(always + "sparsify: {selector: {name: topk, density: 0.3}}\n"),
      {corrected("{name: difference, gamma: 0.5}", "drift") + adaptive,
       corrected("{name: difference, gamma: 0.5}", "none") + adaptive}};
  for (const auto& [with, without] : cases) {
    CAPTURE(with);
    const Distances drift = descend(with, 6, 1e-2F, 60.0);
    CHECK(drift.trained < 2e-2F);
    CHECK(drift.settled < 2e-2F);
    CHECK(descend(without, 6, 0.0F, 0.3).trained > 0.2F);
  }
}

TEST_CASE("a second packet in a row is an error, and so is more than one packet under way") {
  const Topology topology = quarter_ring_of(2);
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 1.0F);
  const IdlePlan plan(1 << 12);
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan};
  LocalWorld world(job);
  const auto sender = world.make_rank(0), receiver = world.make_rank(1);
  LinkOptions anybody = alternating;
  anybody.alternating = false, anybody.in_flight = 2;
  NeighbourLink from(sender->context(), anybody, {}), to(receiver->context(), alternating, {});
  const std::vector<std::uint8_t> all(layout.count(), 1);
  from.send(0, all);
  from.send(1, all);
  receiver->mailbox.progress();
  CHECK_THROWS_WITH_AS(to.receive(0), doctest::Contains("no answer yet"), CommunicationError);

  for (const std::string yaml : {"{name: eventgrad, schedule: asynchronous, mixing: {name: arrival}, in_flight: 2}",
                                 "{name: dpsgd, schedule: asynchronous, correction: {name: drift}, in_flight: 2}"}) {
    Config root = Config::from_text("exchange: " + yaml);
    static_cast<void>(plan_exchange(root));
    CHECK_THROWS_WITH_AS(root.document().throw_if_invalid(), doctest::Contains("alternation"), ConfigError);
  }
}

}  // namespace
}  // namespace hearsay::alternating_edges_test
