// Ranks that die and are replaced: a spare takes the place of a dead rank, the model of a neighbour and new edges. From
// then on nothing of the sum over ranks is lost, and both ends of every edge hold the same pair of copies.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/exchange/neighbour/alternating_edges.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/transport/whole_word.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/support/local_transport.hpp"
#include "tests/topology/support.hpp"

namespace hearsay::return_test {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr LinkOptions alternating{
    .schedule = Schedule::asynchronous, .keep_own_copies = true, .repeats = false, .alternating = true};

Sparsifier sparsifier(const std::string& yaml) {
  Config section = Config::from_text(yaml);
  Sparsifier read = read_sparsifier(section, {});
  section.document().throw_if_invalid();
  return read;
}

/// Arrival along alternating edges, every segment at every iteration, whose copies can be looked at.
class OpenExchange final : public Exchange, public IdleWork {
 public:
  OpenExchange(const ExchangeContext& context, const std::string& sparsify)
      : link(context, alternating, sparsifier(sparsify)),
        drift(0.5, context, link.settling(), 1.0),
        context_(context),
        mixing_(context_, link, *rule_, &drift),
        fired_(context.replica.layout.count(), std::uint8_t{1}) {}
  void start(Iteration k) override {
    last_ = k;
    drift.start(k);
    for (std::size_t e = 0; e < link.edges().size(); ++e) link.say_gains(e, drift.gains(e, k));
    edges_.send(k, fired_);
  }
  void finish(Iteration k) override {
    double row = context_.neighbourhood.self_weight;
    for (const MixEdge& edge : link.edges()) row += edge.weight;
    rows_are_whole = rows_are_whole && row == 1.0;
    edges_.hear(k);
  }
  bool idle(Iteration) override { return false; }
  void drain() override { finish(last_); }
  Capabilities capabilities() override { return {.idle_work = this}; }

  NeighbourLink link;
  DriftCorrection drift;
  bool rows_are_whole = true;  ///< at every iteration: rules that average need it of edges that begin or are lost

 private:
  ExchangeContext context_;
  std::unique_ptr<MixingRule> rule_ = make_arrival();
  EdgeMixing mixing_;
  AlternatingEdges edges_{link, mixing_};
  std::vector<std::uint8_t> fired_;
  Iteration last_ = 0;
};

class OpenPlan final : public ExchangePlan {
 public:
  explicit OpenPlan(std::string sparsify) : sparsify_(std::move(sparsify)) {}
  std::size_t packet_bound(const Layout& layout, int) const override {
    std::size_t bytes = sizeof(PacketHeader);
    for (const Segment& s : layout.segments()) bytes += segment_bound(sparsifier(sparsify_), s.length);
    return bytes;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<OpenExchange>(context, sparsify_);
  }
  std::size_t kept_bytes(const Layout&, std::size_t, int) const override { return 0; }
  Schedule schedule() const override { return Schedule::asynchronous; }
  std::optional<std::size_t> in_flight() const override { return 1; }
  bool survives_deaths() const override { return true; }
  ExchangeLaws laws() const override { return {.along_graph = true}; }

 private:
  std::string sparsify_;
};

/// Time that passes only as fast as all living processes look at their windows: a thread that the machine lets wait is
/// not taken for dead.
class Time {
 public:
  explicit Time(int processes) : looks_(static_cast<std::size_t>(processes)), gone_(looks_.size()) {}
  static std::chrono::nanoseconds now() { return std::chrono::nanoseconds(now_ns.load()); }
  void look(int process) { ++looks_[static_cast<std::size_t>(process)]; }
  void leave(int process) { gone_[static_cast<std::size_t>(process)] = true; }
  /// Until all have left.
  void run() {
    constexpr std::uint64_t looks_a_step = 3;
    for (std::vector<std::uint64_t> due(looks_.size()); !all_gone();) {
      const auto has_looked = [&](std::size_t p) { return gone_[p] || looks_[p] >= due[p]; };
      for (std::size_t p = 0; p < due.size(); ++p)
        while (!has_looked(p)) std::this_thread::sleep_for(20us);
      now_ns += std::chrono::nanoseconds(10ms).count();
      for (std::size_t p = 0; p < due.size(); ++p) due[p] = looks_[p] + looks_a_step;
    }
  }

 private:
  bool all_gone() const {
    return std::ranges::all_of(gone_, [](const std::atomic<bool>& gone) { return gone.load(); });
  }
  static inline std::atomic<std::int64_t> now_ns{0};
  std::vector<std::atomic<std::uint64_t>> looks_;
  std::vector<std::atomic<bool>> gone_;
};

/// A local transport on that time.
class TimedTransport final : public Transport {
 public:
  TimedTransport(std::unique_ptr<LocalTransport> local, Time& time) : local_(std::move(local)), time_(time) {}
  int rank() const override { return local_->rank(); }
  int ranks() const override { return local_->ranks(); }
  Clock clock() const override { return Time::now; }
  RemoteMemory& open_memory(std::size_t bytes, const MemoryUse& use) override {
    return local_->open_memory(bytes, use);
  }
  Peers& open_peers(Hooks hooks) override { return local_->open_peers(std::move(hooks)); }
  std::unique_ptr<CommunicationEngine> make_engine(ProgressStep step) override {
    return local_->make_engine([this, step = std::move(step)] {
      time_.look(rank());
      return step();
    });
  }
  void barrier() override { local_->barrier(); }
  void broadcast(std::span<std::byte> bytes, int root) override { local_->broadcast(bytes, root); }
  void pass_time(double seconds, CommunicationEngine& engine) override { local_->pass_time(seconds, engine); }

 private:
  std::unique_ptr<LocalTransport> local_;
  Time& time_;
};

/// x before anything happens, and what ranks add to it: multiples of a number that leaves room behind the point.
constexpr float unit = 65536.0F, common = 3 * unit;

struct Story {
  std::string edges = "";  ///< with weights; else all of them, of 1/4
  int ranks = 4, spares = 1;
  std::string sparsify = whole;
  std::map<int, int> dies_after = {{0, 0}};  ///< process: how many have joined by then
  int joins = 1;                             ///< that there are in the end
  bool garbage = false;                      ///< what the dead still write
  bool edges_first = true;                   ///< ranks begin to differ when all edges mix, or when spares have joined
  int vacant = 0;                            ///< vertices, the last, that nobody has at the start
};

/// What is left of a process that lives, when all is quiet.
struct Rest {
  int place = -1;
  std::vector<float> taken, x, v;  ///< taken: the model that it began with
  std::vector<double> added;
  std::map<int, std::vector<float>> ours, theirs;  ///< by place
  std::vector<double> row;
};

class Play {
 public:
  explicit Play(const Story& story)
      : story_(story),
        plan_(story.sparsify),
        topology_(topology(story)),
        layout_(reference::small_layout()),
        options_{.step = {.learning_rate = 1.0},
                 .start_from_rank_0 = false,
                 .failure_timeout = 1s,
                 .spares = story.spares,
                 .vacant = story.vacant},
        blocks_(sizes()),
        everybody_(story.ranks + story.spares - story.vacant),
        living_(story.ranks),
        office_(story.ranks + story.spares, {}, {}),
        time_(story.ranks + story.spares),
        rest_(static_cast<std::size_t>(story.ranks + story.spares)) {}

  std::vector<Rest> run() {
    {
      std::vector<std::jthread> threads;
      threads.emplace_back([this] { time_.run(); });
      for (int p = 0; p < story_.ranks + story_.spares; ++p)
        threads.emplace_back([this, p] {
          process(p);
          time_.leave(p);
        });
    }
    std::erase_if(rest_, [](const Rest& rest) { return rest.place < 0; });
    return rest_;
  }
  const Topology& topology() const { return *topology_; }

 private:
  static std::shared_ptr<const Topology> topology(const Story& story) {
    const TextFile file(story.edges);
    const std::string list = "{name: edge_list, path: " + file.name() + "}";
    const std::string edges = story.edges.empty() ? "{graph: {name: complete}, weights: {name: uniform}}"
                                                  : "{graph: " + list + ", weights: " + list + "}";
    Config root = Config::from_text("topology: " + edges);
    Config section = root.section("topology");
    const TopologyPlan plan(section);
    root.document().throw_if_invalid();
    return std::make_shared<const Topology>(plan.build(story.ranks));
  }
  std::vector<std::size_t> sizes() const {
    const Seats seats(*topology_, story_.spares);
    std::vector<std::size_t> all;
    for (int p = 0; p < seats.processes(); ++p)
      all.push_back(window_bytes(plan_, layout_, seats.neighbour_slots(p), story_.ranks, story_.spares) +
                    failure_bytes(options_, story_.ranks));
    return all;
  }
  void iterate(Participant& member, Iteration& k, Random& random) {
    member.start(k);
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(300)));
    member.finish(k);
    member.stepped(k++);
  }
  /// All that the dead could still write into the memories of the others: what is theirs to write.
  void write_garbage(int from) {
    const Seats seats(*topology_, story_.spares);
    const std::size_t capacity =
        MailboxMap::capacity_for(std::max(plan_.packet_bound(layout_, 0), whole_model_bytes(layout_)), 1);
    LocalMemory memory(blocks_, from);
    const std::vector<std::byte> noise(capacity, std::byte{0x5a});
    for (const int to : topology_->neighbourhood(from).neighbours) {
      const MailboxMap map{.degree = static_cast<int>(seats.slots(to)), .capacity_bytes = capacity};
      const std::size_t slot = seats.slot({.process = to, .vertex = to}, {.process = from, .vertex = from});
      memory.put(std::span(noise).first(8), to, map.tail(static_cast<int>(slot)));
      memory.put(std::span(noise).first(8), to, map.head(static_cast<int>(slot)));
      memory.put(noise, to, map.ring(static_cast<int>(slot)));
      const std::size_t words = JobCount::bytes(1, seats.processes());
      std::vector<std::uint64_t> counts(words / 8, whole_word(1'000'000));
      memory.put(std::as_bytes(std::span(counts)), to, map.total_bytes() + slot * words);
    }
  }
  bool all_mix(const Participant& member) const {
    const Neighbourhood& row = member.edges().neighbourhood();
    return row.weights == topology_->neighbourhood(row.rank).weights;
  }
  void process(int me) {
    if (me >= story_.ranks - story_.vacant && me < story_.ranks) return;
    Parameters replica(layout_, processor());
    const auto x = replica.values.span();
    std::ranges::fill(x, me < story_.ranks ? common : -1.0F);
    auto local = std::make_unique<LocalTransport>(blocks_, office_, everybody_, me, EngineKind::thread_engine);
    Participant member(std::make_unique<TimedTransport>(std::move(local), time_), topology_, plan_, replica, options_);
    everybody_.arrive_and_wait();
    Rest& rest = rest_[static_cast<std::size_t>(me)];
    Random random(stream_seed(5, "return", static_cast<std::uint64_t>(me)));
    const auto dies = story_.dies_after.find(me);
    if (member.spare() != nullptr) {
      if (dies != story_.dies_after.end() && dies->second == 0) return std::this_thread::sleep_for(100ms);
      if (!member.spare()->take_over(plan_)) return;
      rest.taken.assign(x.begin(), x.end());
      ++joined_;
    }
    Iteration k = 0;
    const Iteration least = me < story_.ranks ? 10 : 0;  // a spare may differ before it has sent anything
    while (joined_ < story_.joins || k < least) {
      if (dies != story_.dies_after.end() && joined_ >= dies->second && k >= 5) break;
      iterate(member, k, random);
    }
    if (dies != story_.dies_after.end()) {
      batches_of_dead_ += static_cast<std::uint64_t>(k);
      return;
    }
    if (story_.garbage && me == story_.ranks - 1)
      for (const auto& [dead, after] : story_.dies_after)
        if (dead < story_.ranks) write_garbage(dead);
    if (story_.edges_first) {
      for (bool mixes = false; mixing_ < story_.ranks; iterate(member, k, random))
        if (!mixes && all_mix(member)) mixes = true, ++mixing_;
      living_.arrive_and_wait();
    }
    rest.added.assign(x.size(), common);
    for (std::size_t e = 0; e < x.size(); ++e) {
      const float step = unit * (static_cast<float>(random.below(15)) - 7.0F);
      x[e] += step;
      rest.added[e] += step;
    }
    // Few events, for the bits behind the point, and at least one: where a ring was full in all three iterations, who
    // sends next still has to.
    for (const Iteration end = k + 3; k < end;) iterate(member, k, random);
    for (bool counted = false; !all_have_moved(counted, !std::ranges::equal(x, rest.added));) {
      std::this_thread::sleep_for(10ms);
      iterate(member, k, random);
    }
    batches_ += static_cast<std::uint64_t>(k);
    member.settle([this] { living_.arrive_and_wait(); });
    look(member, rest);
    living_.arrive_and_wait();
  }
  /// All together. `counted`: this rank is, among those that have moved.
  bool all_have_moved(bool& counted, bool has_moved) {
    if (has_moved && !std::exchange(counted, true)) ++moved_;
    living_.arrive_and_wait();
    const bool all = moved_ == story_.ranks;
    living_.arrive_and_wait();
    return all;
  }
  void look(Participant& member, Rest& rest) {
    const auto& exchange = dynamic_cast<const OpenExchange&>(member.exchange());
    const auto x = member.replica().values.span();
    CHECK(exchange.rows_are_whole);
    rest.place = member.edges().rank();
    rest.x.assign(x.begin(), x.end());
    rest.v.resize(x.size());
    const_cast<OpenExchange&>(exchange).drift.correct(rest.v);
    const Neighbourhood& row = member.edges().neighbourhood();
    for (std::size_t e = 0; e < row.neighbours.size(); ++e) {
      const MixEdge& edge = exchange.link.edges()[e];
      rest.ours[row.neighbours[e]].assign(edge.ours.begin(), edge.ours.end());
      rest.theirs[row.neighbours[e]].assign(edge.theirs.begin(), edge.theirs.end());
    }
    rest.row = row.weights;
    rest.row.push_back(row.self_weight);
    const auto known = [&] {
      return static_cast<std::uint64_t>(std::llround(member.members().job_iterations(0) * story_.ranks));
    };
    for (int look = 0; look < 1000 && known() < batches_; ++look) std::this_thread::sleep_for(10ms);
    CHECK(known() >= batches_);
    CHECK(known() <= batches_ + batches_of_dead_);
  }

  const Story story_;
  const OpenPlan plan_;
  const std::shared_ptr<const Topology> topology_;
  const Layout layout_;
  const ParticipantOptions options_;
  LocalBlocks blocks_;
  std::barrier<> everybody_, living_;
  PostOffice office_;
  Time time_;
  std::vector<Rest> rest_;
  std::atomic<int> joined_{0}, mixing_{0}, moved_{0};
  std::atomic<std::uint64_t> batches_{0}, batches_of_dead_{0};
};

/// The laws, for whoever works at the places in the end.
void check(const Story& story) {
  Play play(story);
  const std::vector<Rest> all = play.run();
  REQUIRE(all.size() == static_cast<std::size_t>(story.ranks));
  std::map<int, const Rest*> at;
  for (const Rest& rest : all) at[rest.place] = &rest;
  REQUIRE(at.size() == all.size());
  std::vector<double> sum(all[0].x.size()), sum_of_v(sum.size());
  for (const Rest& rest : all) {
    if (!rest.taken.empty()) CHECK(rest.taken == std::vector<float>(sum.size(), common));
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += rest.x[e] - rest.added[e], sum_of_v[e] += rest.v[e];
  }
  CHECK(sum == std::vector<double>(sum.size(), 0.0));
  for (const Rest& rest : all) {
    const Neighbourhood row = play.topology().neighbourhood(rest.place);
    if (!story.edges_first) continue;
    for (const int other : row.neighbours) {
      CAPTURE(rest.place);
      CAPTURE(other);
      CHECK(rest.ours.at(other) == at[other]->theirs.at(rest.place));
    }
    std::vector<double> whole_row = row.weights;
    whole_row.push_back(row.self_weight);
    CHECK(rest.row == whole_row);
    CHECK(std::vector<double>(rest.x.begin(), rest.x.end()) != rest.added);
  }
}

constexpr const char* ring = "0 1 0.25\n1 2 0.25\n2 3 0.25\n0 3 0.25\n";
constexpr const char* path = "0 1 0.25\n1 2 0.25\n";

TEST_CASE("a spare takes the place of a dead rank, and nothing of the sum is lost") {
  int victim = 0;
  for (const char* const sparsify : {whole, "{selector: {name: topk, density: 0.3}}"}) {
    for (const bool edges_first : {true, false}) {
      CAPTURE(victim);
      CAPTURE(sparsify);
      CAPTURE(edges_first);
      check({.sparsify = sparsify, .dies_after = {{victim++, 0}}, .edges_first = edges_first});
    }
  }
}

TEST_CASE("a replacement that dies is replaced") {
  check({.edges = ring, .spares = 2, .dies_after = {{1, 0}, {4, 1}}, .joins = 2});
}

TEST_CASE("two ranks die at once, and two spares take their places") {
  for (const int other : {1, 2}) {
    CAPTURE(other);
    check({.edges = ring, .spares = 2, .dies_after = {{0, 0}, {other, 0}}, .joins = 2});
  }
}

TEST_CASE("vertices that are vacant from the start are taken by those who come, beside those of the dead") {
  check({.edges = ring, .dies_after = {}, .vacant = 1});
  check({.edges = ring, .spares = 2, .dies_after = {}, .joins = 2, .vacant = 2});
  check({.edges = ring, .spares = 2, .dies_after = {{1, 0}}, .joins = 2, .vacant = 1});
  check({.spares = 3, .dies_after = {{4, 1}, {0, 0}}, .joins = 3, .vacant = 1});
}

TEST_CASE("a spare that is not needed dies, and the next one is used") {
  check({.edges = ring, .spares = 2, .dies_after = {{0, 0}, {4, 0}}, .joins = 1});
}

TEST_CASE("what a rank still writes that was taken for dead is read by nobody") {
  check({.edges = ring, .dies_after = {{1, 0}}, .garbage = true});
}

TEST_CASE("a place all of whose neighbours are dead is taken when one of them is back") {
  check({.edges = path, .ranks = 3, .spares = 2, .dies_after = {{0, 0}, {1, 0}}, .joins = 2});
}

}  // namespace
}  // namespace hearsay::return_test
