// The laws of every synchronous exchange of the global path, over the tables: each algorithm with each selector, codec
// and quantiser, for any number of ranks and any timing. What is in a table is tested without a test of its own.
#include <limits>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/runtime/exchange/global_job.hpp"

namespace global_contract_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

constexpr int worlds[]{1, 2, 3, 5, 6, 7, 8, 12};

/// The variants of one algorithm on `ranks` ranks, as sections `exchange:`. Not here: `gtopk` with `residual:
/// published`, which loses mass and says how much, and `gradient_dropping`, where a rank gets the gradients of its own
/// shard only (gradient_dropping_test.cpp).
std::vector<std::string> variants(std::string_view name, int ranks, bool rounded) {
  const auto with = [&](const std::string& keys) { return "exchange: {name: " + std::string(name) + keys + "}\n"; };
  if (name == "gtopk") {
    std::vector<std::string> all;
    for (const std::string merge : {"tree", "butterfly"}) {
      all.push_back(with(", residual: merger, merge: " + merge));
      if (!rounded) all.push_back(with(", residual: owner, merge: " + merge));  // refused: sums of rounded values
    }
    return all;
  }
  if (name == "hitopk") {
    std::vector<std::string> all;
    for (const int node : {1, 2, 3})
      if (ranks % node == 0) all.push_back(with(", node_size: " + std::to_string(node)));
    return all;
  }
  if (name == "lkgs") return {with(""), with(", overlap: false")};
  return {with("")};
}

ExchangeLaws laws_of(const ExchangeEntry& entry) {
  return GlobalPlan("exchange: {name: " + std::string(entry.name) + "}")->laws();
}
bool sums_gradients(const ExchangeEntry& entry) { return laws_of(entry).mixes == ExchangeLaws::Mixes::gradients; }
bool in_this_file(const ExchangeEntry& entry) {
  const ExchangeLaws laws = laws_of(entry);
  return laws.mixes == ExchangeLaws::Mixes::gradients && laws.replicas_agree && laws.keeps_mass && !laws.sharded;
}
/// Whether it selects what it sends: then there is a section for it.
bool sparse(const ExchangeEntry& entry) {
  if (!in_this_file(entry)) return false;
  try {
    const GlobalPlan plan("exchange: {name: " + std::string(entry.name) + "}\nsparsify: {selector: {name: topk}}");
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

std::string selector_section(std::string_view name) {
  const std::string keys = name == "threshold" ? ", threshold: 9" : name == "dense" ? "" : ", density: 0.1";
  return "selector: {name: " + std::string(name) + keys + "}";
}

/// `check(yaml, ranks)` for every variant of every sparse algorithm and every number of ranks.
void for_all(const std::string& sparsify, bool rounded, const std::function<void(const std::string&, int)>& check) {
  for (const ExchangeEntry& entry : exchanges()) {
    if (!sparse(entry)) continue;
    for (const int ranks : worlds)
      for (const std::string& exchange : variants(entry.name, ranks, rounded))
        check(exchange + "sparsify: {" + sparsify + "}\n", ranks);
  }
}

GlobalOptions integers(int ranks, Iteration iterations = 4) {
  return {.ranks = ranks, .iterations = iterations, .gradient = integer_gradient};
}

/// No sum of these is exact: another order of the additions gives other bits.
void real_gradient(int rank, Iteration k, std::span<float> g) {
  Random random(stream_seed(12, "gradient", static_cast<std::uint64_t>(rank) * 1000 + static_cast<std::uint64_t>(k)));
  for (float& value : g) value = static_cast<float>(random.normal());
}

}  // namespace

TEST_CASE("nothing is lost and everybody gets the same: every algorithm and selector" *
          doctest::test_suite("arithmetic")) {
  for (const SelectorEntry& selector : selectors())
    for_all(selector_section(selector.name), false,
            [](const std::string& yaml, int ranks) { check_laws(yaml, integers(ranks)); });
}

TEST_CASE("nothing is lost and everybody gets the same: every algorithm and codec" *
          doctest::test_suite("arithmetic")) {
  for (const PositionCoderEntry& coder : position_coders())
    for_all("selector: {name: topk, density: 0.1}, codec: {name: " + std::string(coder.name) + "}", false,
            [](const std::string& yaml, int ranks) { check_laws(yaml, integers(ranks)); });
}

TEST_CASE("nothing is lost and everybody gets the same: every algorithm and quantiser" *
          doctest::test_suite("arithmetic")) {
  for (const QuantiserEntry& quantiser : quantisers()) {
    std::vector<std::string> keys{""};
    if (quantiser.name == "one_bit") keys = {"", ", centre: mean", ", centre: row_mean"};
    for (const std::string& more : keys)
      for_all("selector: {name: topk, density: 0.1}, quantiser: {name: " + std::string(quantiser.name) + more + "}",
              quantiser.name != "none",
              [](const std::string& yaml, int ranks) { check_laws_of_rounded(yaml, integers(ranks)); });
  }
}

TEST_CASE("everybody has the same bits whatever the values and however late messages are") {
  const auto check = [](const std::string& yaml, int ranks) {
    CAPTURE(yaml);
    CAPTURE(ranks);
    GlobalOptions options{.ranks = ranks, .iterations = 4, .gradient = real_gradient};
    const GlobalOutcome punctual = run_global(yaml, options);
    CHECK(all_ranks_agree(punctual));
    options.engine = EngineKind::thread_engine;
    for (const std::uint64_t seed : {1U, 2U}) {
      options.delays = seed;
      CHECK(run_global(yaml, options).came_out == punctual.came_out);
    }
  };
  for_all("selector: {name: topk, density: 0.1}", false, check);
  for (const int ranks : worlds)
    for (const std::string keys : {"", ", method: library", ", bucket_bytes: 300"})
      check("exchange: {name: allreduce" + keys + "}\n", ranks);
}

// So that a break-down can tell coding from communication, and what is hidden is counted once.
TEST_CASE("the time of encoding is told, and is a part of the time of collectives") {
  const auto told = [](const std::string& yaml, int ranks) {
    CAPTURE(yaml);
    CAPTURE(ranks);
    for (const EngineKind engine : {EngineKind::inline_engine, EngineKind::thread_engine}) {
      GlobalOptions options = integers(ranks);
      options.engine = engine;
      for (const auto& seconds : run_global(yaml, options).seconds) {
        const double encode = seconds[static_cast<std::size_t>(Phase::communicate_encode)];
        CHECK((ranks == 1 || encode > 0.0));  // alone, the butterfly sends nothing
        CHECK(encode <= seconds[static_cast<std::size_t>(Phase::communicate)]);
      }
    }
  };
  for_all("selector: {name: topk, density: 0.1}", false, told);
  told("exchange: {name: gradient_dropping}\n", 3);
  const auto dense = run_global("exchange: {name: allreduce}\n", integers(3));
  for (const auto& seconds : dense.seconds) CHECK(seconds[static_cast<std::size_t>(Phase::communicate_encode)] == 0.0);
}

// Wherever the value lies, also in a shard that another rank works on: the rank that made it says so.
TEST_CASE("a gradient that is not finite is an error on the rank that has it, and names the segment") {
  constexpr int ranks = 6, guilty = 2;
  const Layout layout = reference::small_layout();
  for (const ExchangeEntry& entry : exchanges()) {
    if (!sums_gradients(entry)) continue;
    for (const std::string& exchange : variants(entry.name, ranks, false)) {
      for (const Segment& segment : layout.segments()) {
        for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
          CAPTURE(exchange);
          CAPTURE(value);
          GlobalOptions options = integers(ranks, 2);
          options.gradient = [&](int rank, Iteration k, std::span<float> g) {
            integer_gradient(rank, k, g);
            if (rank == guilty && k == 1) g[segment.offset + segment.length - 1] = value;
          };
          CHECK_THROWS_WITH_AS(run_global(exchange, options),
                               doctest::Contains(("gradient of parameter '" + segment.name + "'").c_str()),
                               DivergenceError);
          options.keep_failure = true;
          CHECK(run_global(exchange, options).failed_rank == guilty);
        }
      }
    }
  }
}

}  // namespace global_contract_test
