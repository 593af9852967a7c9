// A run that is stopped and resumed is the run that was not: over the tables, in lockstep, bit for bit; asynchronously
// its mean and its mass are kept.
#include <algorithm>
#include <numeric>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/stepwise.hpp"
#include "tests/runtime/exchange/train.hpp"
#include "tests/support/announce.hpp"
#include "trigger/trigger.hpp"

namespace hearsay::resume_test {
namespace {

using namespace test;

struct ResumedJob {
  std::string yaml;
  int ranks = 4;
  Descent descent{.momentum = 0.9};
  Iteration iterations = 24;
  EngineKind engine = EngineKind::inline_engine;
  std::function<std::shared_ptr<Device>(int rank)> device = [](int) { return processor(); };
};

/// What all ranks were when the job stopped: an archive each.
using Saved = std::vector<RawBytes>;

void load(const RawBytes& saved, RankTrainer& trainer) {
  Archive archive = Archive::loading(saved, "the checkpoint");
  trainer.state(archive);
  if (archive.left() > 0) throw std::logic_error("a rank has not read all of its checkpoint");
}

/// Iterations [from, until) of a job, from what was saved before; saves what it leaves, where it is asked to.
JobOutcome run_part(const ResumedJob& job, Iteration from, Iteration until, const Saved& before, Saved* after) {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, job.ranks, 3);
  const ParticipantPlan plan(Config::from_text(job.yaml));
  const auto topology = plan.topology(job.ranks);
  JobOutcome outcome{.ranks = std::vector<RankOutcome>(static_cast<std::size_t>(job.ranks))};
  if (after != nullptr) after->assign(outcome.ranks.size(), {});
  const LocalJob local{.topology = *topology,
                       .layout = layout,
                       .initial = problem.initial(),
                       .plan = plan.exchange(),
                       .engine = job.engine,
                       .device = job.device,
                       .iterations_per_epoch = 5,
                       .step = job.descent.response()};
  run_local_ranks(local, [&](LocalRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    RankTrainer trainer(rank.member, problem, job.descent);
    if (from > 0) load(before[me], trainer);
    for (Iteration k = from; k < until; ++k) {
      trainer.start(k);
      trainer.finish(k);
    }
    if (after != nullptr) {
      Archive archive = Archive::saving((*after)[me]);
      trainer.state(archive);
    }
    outcome.ranks[me] = trainer.outcome();
  });
  return outcome;
}

/// A job that is stopped and resumed twice, at iterations that are drawn.
void check_resumed(const ResumedJob& job) {
  CAPTURE(job.yaml);
  CAPTURE(job.ranks);
  CAPTURE(job.descent.adam);
  const JobOutcome whole = run_part(job, 0, job.iterations, {}, nullptr);
  Random random(stream_seed(17, job.yaml, static_cast<std::uint64_t>(job.ranks)));
  const auto most = static_cast<std::uint64_t>(job.iterations - 2);
  const Iteration first = 1 + static_cast<Iteration>(random.below(most));
  const Iteration second =
      first + 1 + static_cast<Iteration>(random.below(most - static_cast<std::uint64_t>(first) + 1));
  CAPTURE(first);
  CAPTURE(second);
  Saved one, two;
  run_part(job, 0, first, {}, &one);
  run_part(job, first, second, one, &two);
  const JobOutcome resumed = run_part(job, second, job.iterations, two, nullptr);
  CHECK(resumed.hashes() == whole.hashes());
  for (std::size_t r = 0; r < whole.ranks.size(); ++r) {
    CAPTURE(r);
    const RankOutcome &a = resumed.ranks[r], &b = whole.ranks[r];
    CHECK(a.segment_events == b.segment_events);
    CHECK(a.segment_messages == b.segment_messages);
    CHECK(a.segment_payload_bytes == b.segment_payload_bytes);
    CHECK(a.totals.messages == b.totals.messages);
    CHECK(a.totals.index_bytes == b.totals.index_bytes);
  }
}

bool takes(const std::string& yaml) {
  try {
    const ParticipantPlan plan(Config::from_text(yaml));
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

std::string exchange_section(std::string_view name, const std::string& more = "") {
  return "exchange: {name: " + std::string(name) + more + "}\n";
}
/// ", KEY: VALUE" for those of an entry's keys that decide how much travels, so that some does, and not all.
template <class Entry>
std::string moderate_keys(const Entry& entry) {
  Config section;
  static_cast<void>(entry.make(section));
  std::string keys;
  for (const KeyDescription& key : section.keys())
    for (const auto& [name, value] : {std::pair{"threshold", "0.05"}, {"scale", "0.3"}, {"density", "0.1"}})
      if (key.key == name) keys += ", " + key.key + ": " + value;
  return keys;
}
std::string trigger_section(const TriggerEntry& trigger) {
  return "trigger: {name: " + std::string(trigger.name) + ", warmup_iterations: 3" + moderate_keys(trigger) + "}\n";
}
std::string sparsify_section(const SelectorEntry& selector) {
  return "sparsify: {selector: {name: " + std::string(selector.name) + moderate_keys(selector) + "}}\n";
}
constexpr const char* adaptive = "trigger: {name: adaptive, warmup_iterations: 3}\n";
const std::string top_tenth = std::string("sparsify: ") + a_tenth + "\n";

/// A key that makes rounds short, where the exchange has them.
std::string rounds_of(std::string_view name, int steps) {
  const std::string key = ", local_steps: " + std::to_string(steps);
  return takes(exchange_section(name, key)) ? key : "";
}

/// Other values than a key's default, as YAML, whatever the key means; ranges tell which of them it takes.
std::vector<std::string> other_values(const KeyDescription& key) {
  std::vector<std::string> all;
  if (key.type == "true or false") all = {"true", "false"};
  if (key.type == "integer") all = {"0", "1", "2"};
  if (key.type == "number" || key.type == "number or auto") all = {"0", "0.5"};
  constexpr std::string_view options = "one of ";
  if (key.type == "choice")
    for (std::size_t at = options.size(), end = 0; at < key.range.size(); at = end + 2) {
      end = std::min(key.range.find(", ", at), key.range.size());
      all.push_back(key.range.substr(at, end - at));
    }
  std::erase(all, key.fallback);
  return all;
}

/// `key: value` of a dotted key: "outer.momentum" and "0" are ", outer: {momentum: 0}".
std::string as_yaml(std::string key, std::string value) {
  for (std::size_t dot = key.rfind('.'); dot != std::string::npos; dot = key.rfind('.')) {
    value = "{" + key.substr(dot + 1) + ": " + value + "}";
    key.resize(dot);
  }
  return ", " + key + ": " + value;
}

/// An exchange's own keys at other values than their defaults: each alone, and the first other ones of two keys or
/// sections together. Asynchronous ranks do not repeat their bits.
std::vector<std::string> other_keys(const ExchangeEntry& exchange) {
  Config root;
  Config section = root.section("exchange");
  static_cast<void>(exchange.make(section, root));
  std::vector<std::string> alone, first;
  for (const KeyDescription& key : section.keys()) {
    const std::vector<std::string> values = other_values(key);
    if (key.key == "name" || key.key == "schedule") continue;
    const std::size_t before = alone.size();
    for (const std::string& value : values)
      if (takes(exchange_section(exchange.name, as_yaml(key.key, value)))) alone.push_back(as_yaml(key.key, value));
    if (alone.size() > before) first.push_back(alone[before]);
  }
  const auto key_of = [](const std::string& yaml) { return yaml.substr(0, yaml.find(':')); };
  const std::size_t singles = first.size();
  for (std::size_t i = 0; i < singles; ++i)
    for (std::size_t j = i + 1; j < singles; ++j)
      if (key_of(first[i]) != key_of(first[j])) alone.push_back(first[i] + first[j]);
  return alone;
}

/// Every exchange with every trigger and selector that it takes, and with every key of its own at another value.
std::vector<std::string> all_configurations() {
  std::vector<std::string> all;
  for (const ExchangeEntry& exchange : exchanges()) {
    const std::string often = rounds_of(exchange.name, 3);
    all.push_back(exchange_section(exchange.name, often));
    for (const TriggerEntry& trigger : triggers())
      for (const SelectorEntry& selector : selectors())
        all.push_back(exchange_section(exchange.name, often + ", mixing: {name: arrival}") + trigger_section(trigger) +
                      sparsify_section(selector));
    for (const SelectorEntry& selector : selectors())
      all.push_back(exchange_section(exchange.name, often) + sparsify_section(selector));
    for (const char* rule : {"bits_per_value: 0.4", "horizon: 3", "step: 0.02"})
      all.push_back(exchange_section(exchange.name, often) + "sparsify: {quantiser: {name: dead_zone, " + rule +
                    "}}\n");
    for (const std::string& more : other_keys(exchange))
      for (const std::string& sparsify :
           {std::string(), top_tenth, std::string("sparsify: {quantiser: {name: dead_zone, bits_per_value: 0.4}}\n")})
        all.push_back(exchange_section(exchange.name, (more.starts_with(", local_steps") ? "" : often) + more) +
                      sparsify);
  }
  std::erase_if(all, [](const std::string& yaml) { return !takes(yaml); });
  return all;
}

}  // namespace

TEST_CASE("a lockstep run that is stopped and resumed has the bits of one that was not" *
          doctest::test_suite("arithmetic")) {
  std::set<std::string> seen;
  const std::vector<std::string> all = all_configurations();
  for (const std::string& yaml : all) {
    seen.insert(yaml.substr(0, yaml.find_first_of(",}")));
    check_resumed({.yaml = yaml});
  }
  CHECK(seen.size() == exchanges().size());
  CHECK(all.size() > triggers().size() * selectors().size() + 2 * exchanges().size());
}

TEST_CASE("so has one within a budget of bytes, which counts what was sent before") {
  for (const char* bytes : {", bytes: 0.2", ", bytes: 0.4"})
    check_resumed({.yaml = exchange_section("eventgrad", bytes) + "trigger: {name: always}\n"});
}

TEST_CASE("so has one whose optimizer has moments, on any number of ranks") {
  for (const ExchangeEntry& exchange : exchanges())
    for (const int ranks : {1, 2, 5})
      check_resumed({.yaml = exchange_section(exchange.name, rounds_of(exchange.name, 2)),
                     .ranks = ranks,
                     .descent = {.learning_rate = 0.02, .adam = true}});
  check_resumed(
      {.yaml = exchange_section("eventgrad", ", mixing: {name: arrival}, correction: {name: drift}") + adaptive,
       .descent = {.learning_rate = 0.02, .adam = true}});
  check_resumed({.yaml = exchange_section("dpsgd", ", delay: 1, correction: {name: drift}"),
                 .descent = {.learning_rate = 0.02, .adam = true}});
}

TEST_CASE("so has one whose communication has threads, or whose graph changes, or whose values are rounded") {
  for (const ExchangeEntry& exchange : exchanges())
    check_resumed(
        {.yaml = exchange_section(exchange.name, rounds_of(exchange.name, 3)), .engine = EngineKind::thread_engine});
  check_resumed({.yaml = exchange_section("diloco", ", local_steps: 8, fragments: 2, delay_steps: 3"),
                 .engine = EngineKind::thread_engine});
  check_resumed({.yaml = exchange_section("dpsgd", ", delay: 1"), .engine = EngineKind::thread_engine});
  for (const char* more : {", strategy: diffusion", ", strategy: diffusion, correction: {name: drift}"})
    check_resumed({.yaml = exchange_section("dpsgd", more), .engine = EngineKind::thread_engine});
  for (const std::string name : {"dpsgd", "push_sum", "gradient_tracking", "gasloc"})
    check_resumed({.yaml = one_peer + exchange_section(name, rounds_of(name, 3))});
  for (const std::string& sparsify : every_kind_of_body())
    for (const char* mixing : {"{name: arrival}", "{name: difference, gamma: 0.1}, delay: 1"})
      check_resumed({.yaml = exchange_section("eventgrad", std::string(", mixing: ") + mixing) + adaptive +
                             "sparsify: " + sparsify + "\n"});
}

namespace {

/// Σ over ranks of x and of what an exchange owes beside it.
double total(const std::vector<std::vector<float>>& blocks) {
  double sum = 0.0;
  for (const auto& block : blocks)
    for (const float value : block) sum += static_cast<double>(value);
  return sum;
}

}  // namespace

TEST_CASE("asynchronous ranks that meet, stop and go on keep their mean, and the ends of an edge agree on who sends") {
  for (const std::string& yaml :
       {exchange_section("dpsgd", ", schedule: asynchronous, correction: {name: drift}"),
        exchange_section("eventgrad", ", schedule: asynchronous, mixing: {name: arrival}"),
        exchange_section("eventgrad", ", schedule: asynchronous, mixing: {name: arrival}") + top_tenth,
        exchange_section("gossip_outer",
                         ", schedule: asynchronous, local_steps: 3, "
                         "outer: {learning_rate: 1, momentum: 0}")}) {
    CAPTURE(yaml);
    constexpr int ranks = 4;
    const Layout layout = reference::small_layout();
    const std::vector<float> initial(layout.size(), 1.0F);
    const ParticipantPlan plan(Config::from_text(yaml));
    const auto topology = plan.topology(ranks);
    const LocalJob local{.topology = *topology, .layout = layout, .initial = initial, .plan = plan.exchange()};
    const ZeroGradient nothing;
    std::vector<std::vector<float>> x(ranks);
    Saved saved(ranks), next(ranks);
    Iteration from = 0;
    double expected = 0.0;
    std::vector<std::uint64_t> packets(ranks);
    std::uint64_t packets_before = 0;
    for (int part = 0; part < 4; ++part) {
      run_local_ranks(local, [&](LocalRank& rank) {
        const auto me = static_cast<std::size_t>(rank.rank());
        // A correction moves ranks by what they have learnt, which adds up to 0 only over equally many steps.
        RankTrainer trainer(rank.member, nothing, {.learning_rate = 0.0});
        const auto values = rank.replica.values.span();
        if (part == 0)
          whole_numbers(rank.rank(), 0, 1 << 10, values);
        else
          load(saved[me], trainer);
        for (Iteration k = from; k < from + 25 + rank.rank(); ++k) {
          trainer.start(k);
          trainer.finish(k);
        }
        rank.member.settle();
        next[me].clear();
        Archive archive = Archive::saving(next[me]);
        trainer.state(archive);
        x[me].assign(values.begin(), values.end());
        packets[me] = rank.ledger.totals().packets;
        rank.member.leave();
      });
      saved.swap(next);
      from += 25 + ranks;
      // One end of each of the four edges may send, and does.
      const auto now = std::accumulate(packets.begin(), packets.end(), std::uint64_t{0});
      CHECK(now >= packets_before + 4);
      packets_before = now;
      if (part == 0) expected = total(x);
      CHECK(std::abs(total(x) - expected) < 1.0);
    }
  }
}

TEST_CASE("another number of ranks takes over what was owed, all of it and nothing twice") {
  for (const ExchangeEntry& exchange : exchanges()) {
    const std::string news = "sparsify: {quantiser: {name: dead_zone, step: 1}}\n";
    for (const std::string& yaml :
         {exchange_section(exchange.name), exchange_section(exchange.name, ", node_size: 2"),
          exchange_section(exchange.name, ", feedback: {momentum: 0.9}"), exchange_section(exchange.name) + news}) {
      if (!takes(yaml)) continue;
      const ParticipantPlan plan(Config::from_text(yaml));
      const bool owes = plan.exchange().laws().mixes == ExchangeLaws::Mixes::gradients ||
                        exchange.name == "sparseloco" ||
                        (exchange.name == "diloco" && yaml.find("dead_zone") != std::string::npos);
      if (!owes || exchange.name == "allreduce") continue;
      for (const int ranks : {1, 2, 4, 6}) {
        CAPTURE(yaml);
        CAPTURE(ranks);
        if (yaml.find("node_size") != std::string::npos && ranks % 2 != 0) continue;
        const Layout layout = reference::small_layout();
        const std::vector<float> initial(layout.size(), 1.0F);
        const auto topology = plan.topology(ranks);
        std::vector<float> owed(layout.size());
        whole_numbers(0, 1, 3, owed);
        std::vector<std::vector<float>> taken(static_cast<std::size_t>(ranks));
        run_local_ranks({.topology = *topology, .layout = layout, .initial = initial, .plan = plan.exchange()},
                        [&](LocalRank& rank) {
                          rank.member.begin_at(7, plan.exchange(), owed);
                          auto& own = taken[static_cast<std::size_t>(rank.rank())];
                          own.assign(owed.size(), 0.0F);
                          add_residual(rank.member.exchange(), own);
                          rank.member.leave();
                        });
        for (std::size_t e = 0; e < owed.size(); ++e) {
          float sum = 0.0F;
          for (const auto& own : taken) sum += own[e];
          REQUIRE(sum == owed[e]);
        }
      }
    }
  }
}

TEST_CASE("ranks that begin at iteration k with the same model do what ranks do that begin with it at 0") {
  for (const ExchangeEntry& exchange : exchanges()) {
    for (const std::string more : {"", ", delay: 1", ", mixing: {name: arrival}", ", correction: {name: drift}",
                                   ", mixing: {name: arrival}, correction: {name: drift}"}) {
      const std::string yaml = exchange_section(exchange.name, rounds_of(exchange.name, 2) + more);
      if (!takes(yaml)) continue;
      CAPTURE(yaml);
      constexpr int ranks = 4;
      constexpr Iteration before = 10, iterations = 6;  // the graph's period and the epochs' densities stay in step
      const Layout layout = reference::small_layout();
      const reference::Quadratic problem(layout, ranks, 3);
      const ParticipantPlan plan(Config::from_text(yaml));
      const auto topology = plan.topology(ranks);
      std::vector<std::uint64_t> hashes[2];
      for (const Iteration from : {Iteration{0}, before}) {
        auto& of = hashes[from == 0 ? 0 : 1];
        of.resize(ranks);
        const std::vector<float> other(layout.size(), 9.0F);  // what ranks are made with is forgotten
        const LocalJob local{.topology = *topology,
                             .layout = layout,
                             .initial = from == 0 ? std::span<const float>(problem.initial()) : other,
                             .plan = plan.exchange()};
        run_local_ranks(local, [&](LocalRank& rank) {
          const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
          if (from > 0) {
            std::ranges::copy(problem.initial(), x.begin());
            rank.member.begin_at(from, plan.exchange(), {});
          }
          for (Iteration k = 0; k < iterations; ++k) {
            rank.member.start(from + k);
            problem.gradient(rank.rank(), k, x, g);
            announce_gradients(rank.member);
            rank.member.learning_rate(0.1);
            rank.member.finish(from + k);
            for (std::size_t e = 0; e < x.size(); ++e) x[e] -= 0.1F * g[e];
            rank.member.stepped(from + k);
          }
          rank.member.leave();
          of[static_cast<std::size_t>(rank.rank())] = replica_hash(x);
        });
      }
      CHECK(hashes[0] == hashes[1]);
    }
  }
}

}  // namespace hearsay::resume_test
