// Every exchange over sockets is the same as between threads of one process, bit for bit and byte for byte: on one
// host, on several, and on both.
#include <array>
#include <set>

#include <doctest/doctest.h>

#include "runtime/sockets/transport.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"
#include "tests/runtime/sockets/processes.hpp"

namespace hearsay::exchange_test {
namespace {

using namespace test;

constexpr Iteration iterations = 20;
constexpr double learning_rate = 0.1;

constexpr std::array accounted{"hash",    "events",        "messages",    "deferred",
                               "packets", "payload bytes", "index bytes", "header bytes"};

/// What a rank says of what it did.
std::vector<std::uint64_t> account(const RankOutcome& rank) {
  return {rank.hash,           rank.totals.events,        rank.totals.messages,    rank.totals.deferred,
          rank.totals.packets, rank.totals.payload_bytes, rank.totals.index_bytes, rank.totals.header_bytes};
}

std::string train_over_sockets(const std::vector<std::string>& configurations,
                               const std::shared_ptr<sockets::Network>& network) {
  std::vector<std::uint64_t> all;
  for (const std::string& yaml : configurations) {
    const ParticipantPlan plan(Config::from_text(yaml));
    const reference::Quadratic problem(reference::small_layout(), network->ranks(), 7);
    Parameters replica(reference::small_layout());
    if (network->rank() == 0) std::ranges::copy(problem.initial(), replica.values.span().begin());
    Participant member(std::make_unique<sockets::Transport>(network), plan.topology(network->ranks()), plan.exchange(),
                       replica, {.step = {.learning_rate = learning_rate}});
    RankTrainer trainer(member, problem, {.learning_rate = learning_rate});
    for (Iteration k = 0; k < iterations; ++k) {
      trainer.start(k);
      trainer.finish(k);
    }
    member.communication().flush();
    const LedgerTotals in_training = member.ledger().totals();
    member.settle();
    RankOutcome outcome = trainer.outcome();
    outcome.totals = in_training;
    const auto said = account(outcome);
    all.insert(all.end(), said.begin(), said.end());
  }
  return as_text<std::uint64_t>(all);
}

JobOutcome train_in_threads(const std::string& yaml, int ranks) {
  const reference::Quadratic problem(reference::small_layout(), ranks, 7);
  // Exchanges without a graph of their own talk along the complete one, which a participant takes by itself.
  const bool along_graph = ParticipantPlan(Config::from_text(yaml)).exchange().laws().along_graph;
  return train_locally(
      yaml + (along_graph ? "" : "topology: {graph: {name: complete}}\n"), reference::small_layout(), problem.initial(),
      problem,
      {.ranks = ranks, .descent = {.learning_rate = learning_rate}, .iterations = iterations, .run = Ranks::threads});
}

bool takes(const std::string& yaml, int ranks) {
  try {
    const ParticipantPlan plan(Config::from_text(yaml));
    static_cast<void>(plan.topology(ranks));
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

/// An exchange on so many ranks. The hierarchical one groups them by number, for the twin has one host only.
std::string section_of(std::string_view name, int ranks) {
  if (name == "hitopk") return "exchange: {name: hitopk, node_size: " + std::to_string(2 - ranks % 2) + "}\n";
  return in_rounds(name, 3);
}

/// Every exchange, alone and with what makes it send other things.
std::vector<std::string> configurations(int ranks) {
  std::vector<std::string> all;
  for (const ExchangeEntry& entry : exchanges())
    for (const std::string more : {"", "sparsify: {selector: {name: topk, density: 0.1}}\n",
                                   "trigger: {name: adaptive, horizon: 1.7, history: 2, warmup_iterations: 3}\n"})
      if (const std::string yaml = section_of(entry.name, ranks) + more; takes(yaml, ranks)) all.push_back(yaml);
  return all;
}

void check_equal(const MeetingPlan& job) {
  CAPTURE(job.ranks);
  const auto all = configurations(job.ranks);
  const auto said = all_done(run_processes(
      job, [&](const std::shared_ptr<sockets::Network>& network) { return train_over_sockets(all, network); }));
  const std::size_t each = account({}).size();
  for (std::size_t c = 0; c < all.size(); ++c) {
    CAPTURE(all[c]);
    const JobOutcome twin = train_in_threads(all[c], job.ranks);
    for (std::size_t rank = 0; rank < twin.ranks.size(); ++rank) {
      CAPTURE(rank);
      const auto numbers = from_text<std::uint64_t>(said[rank]);
      REQUIRE(numbers.size() == each * all.size());
      const auto from = numbers.begin() + static_cast<std::ptrdiff_t>(c * each);
      const auto expected = account(twin.ranks[rank]);
      for (std::size_t i = 0; i < each; ++i) {
        CAPTURE(std::string(accounted[i]));
        CHECK(from[static_cast<std::ptrdiff_t>(i)] == expected[i]);
      }
    }
  }
}

TEST_CASE("every exchange is there") {
  std::set<std::string> seen;
  for (const std::string& yaml : configurations(4))
    for (const ExchangeEntry& entry : exchanges())
      if (yaml.find("name: " + std::string(entry.name)) != std::string::npos) seen.emplace(entry.name);
  CHECK(seen.size() == exchanges().size());
}

TEST_CASE("on one host every exchange has the bits and the bytes of the threads' twin") {
  for (const int ranks : {1, 2, 3, 4, 8}) check_equal(on_one_host(ranks));
}

TEST_CASE("between hosts, and where some share one, too") {
  for (const int ranks : {2, 3, 4, 8}) check_equal(on_two_hosts(ranks));
  check_equal(all_apart(4));
}

}  // namespace
}  // namespace hearsay::exchange_test
