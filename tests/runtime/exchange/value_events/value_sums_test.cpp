// Sums over all ranks of which only what is news travels, in integers of one step: nothing is lost, all ranks have the
// same sum, and messages keep to a budget of bits.
#include <cmath>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/error.hpp"
#include "sparsify/quantisers/sum_step.hpp"
#include "tests/runtime/collectives/support.hpp"
#include "tests/runtime/exchange/global_job.hpp"

namespace hearsay::value_sums_test {
namespace {

using namespace test;

constexpr int worlds[]{1, 2, 3, 4, 8};
const std::vector<std::string> sums{"{name: topk}", "{name: gtopk_naive}", "{name: gtopk, merge: butterfly}",
                                    "{name: gtopk, merge: tree}", "{name: topk, feedback: {momentum: 0.5}}"};

std::string news_of(const std::string& exchange, const std::string& rule) {
  return "exchange: " + exchange + "\nsparsify: {quantiser: {name: dead_zone, " + rule + "}}\n";
}

void normal_gradient(int rank, Iteration k, std::span<float> g) {
  Random random(stream_seed(5, "gradient", static_cast<std::uint64_t>(rank) * 1000 + static_cast<std::uint64_t>(k)));
  for (float& value : g) value = static_cast<float>(random.normal());
}

GlobalOptions integers(int ranks, Iteration iterations = 6) {
  return {.ranks = ranks, .iterations = iterations, .gradient = integer_gradient};
}

// Steps are whole numbers, so all sums are.
TEST_CASE("what is applied and what is owed are together what was put in, and all ranks have the same sum") {
  for (const std::string& exchange : sums) {
    if (exchange.find("momentum") != std::string::npos) continue;
    for (const int ranks : worlds) {
      for (const std::string rule : {"step: 1", "step: 6", "bits_per_value: 0.1", "bits_per_value: 0.6"})
        check_laws(news_of(exchange, rule), integers(ranks));
      for (const std::string rule : {"step: 3, dead_zone: 0.7", "bits_per_value: 0.4, dead_zone: 0.7"})
        check_laws_of_rounded(news_of(exchange, rule), integers(ranks));
      if (exchange.find("{name: gtopk,") == std::string::npos)
        check_laws_of_rounded(news_of(exchange, "horizon: 2"), integers(ranks));
    }
  }
}

TEST_CASE("all ranks have the same bits, whatever the values and however late messages are") {
  for (const std::string& exchange : sums) {
    for (const int ranks : worlds) {
      const std::string yaml = news_of(exchange, "bits_per_value: 0.5");
      CAPTURE(yaml);
      CAPTURE(ranks);
      GlobalOptions options{.ranks = ranks, .iterations = 5, .gradient = normal_gradient};
      const GlobalOutcome punctual = run_global(yaml, options);
      CHECK(all_ranks_agree(punctual));
      options.engine = EngineKind::thread_engine;
      options.delays = 1;
      CHECK(run_global(yaml, options).came_out == punctual.came_out);
    }
  }
}

// Pairs of ranks differ by 1 at one position, whose sum then is tiny, and agree at others.
TEST_CASE("what ranks agree on is applied at once where they nearly cancel elsewhere; nothing is lost") {
  const auto gradient = [](int rank, Iteration k, std::span<float> g) {
    std::ranges::fill(g, 0.0F);
    if (k > 0) return;
    g[3] = rank % 2 == 0 ? 1024.0F : -1023.0F;
    for (std::size_t i = 5; i < g.size(); i += 7) g[i] = 16384.0F;
  };
  for (const std::string& exchange : sums) {
    if (exchange.find("momentum") != std::string::npos) continue;
    for (const int ranks : {2, 4, 8}) {
      CAPTURE(exchange);
      CAPTURE(ranks);
      const GlobalOutcome outcome =
          run_global(news_of(exchange, "bits_per_value: 0.9"), {.ranks = ranks, .iterations = 1, .gradient = gradient});
      CHECK(mass_is_kept(outcome));
      CHECK(all_ranks_agree(outcome));
      double left = 0.0, put_in = 0.0;
      for (const double value : owed(outcome)) left += std::abs(value);
      for (const double value : added(outcome.put_in)) put_in += std::abs(value);
      CHECK(left <= 0.02 * put_in);
    }
  }
}

TEST_CASE("with a step of its own nothing stays owed beyond it, and a step of 1 sends integers as they are") {
  for (const int ranks : worlds) {
    const GlobalOutcome coarse = run_global(news_of("{name: topk}", "step: 6"), integers(ranks));
    for (const Vector& residual : coarse.residual)
      for (const float owed : residual) CHECK(std::abs(owed) < 6.0F);
    const GlobalOutcome fine = run_global(news_of("{name: topk}", "step: 1"), integers(ranks));
    for (const Vector& residual : fine.residual) CHECK(residual == Vector(residual.size()));
  }
}

Layout large_layout() {
  Layout layout;
  layout.append("a", {100, 200});
  layout.append("b", {10'000});
  return layout;
}

TEST_CASE("a message takes the bits of its budget, and the formulas of bytes say so") {
  const Layout layout = large_layout();
  for (const std::string& exchange : sums) {
    for (const double bits : {0.1, 0.4}) {
      const std::string yaml = news_of(exchange, "bits_per_value: " + std::to_string(bits));
      for (const int ranks : {2, 4, 8}) {
        CAPTURE(yaml);
        CAPTURE(ranks);
        const auto bytes = [&](Iteration iterations) {
          std::uint64_t sum = 0;
          for (const Traffic& t :
               run_global(yaml, {.ranks = ranks, .iterations = iterations, .gradient = normal_gradient}, layout)
                   .traffic)
            sum += t.bytes;
          return static_cast<double>(sum);
        };
        const GlobalPlan plan(yaml);
        const Topology topology = complete_topology(ranks);
        const double an_iteration = (bytes(12) - bytes(6)) / 6.0;
        const double formula = ranks * plan->cost(layout, topology, {})->sent_bytes;
        CHECK(an_iteration == doctest::Approx(formula).epsilon(0.1));
        const auto worst = static_cast<double>(plan->worst_case_bytes(layout, topology));
        CHECK(bytes(3) <= 3 * worst);
        CHECK(formula <= worst);
      }
    }
  }
}

TEST_CASE("a budget that ties exceed is kept by leaving values for later: no message is longer than the bound") {
  const auto equal = [](int, Iteration, std::span<float> g) { std::ranges::fill(g, 1.0F); };
  const Layout layout = reference::small_layout();
  for (const std::string& exchange : sums) {
    const std::string yaml = news_of(exchange, "bits_per_value: 0.05");
    const GlobalOutcome outcome = run_global(yaml, {.ranks = 4, .iterations = 5, .gradient = equal});
    std::uint64_t sum = 0;
    for (const Traffic& t : outcome.traffic) sum += t.bytes;
    CHECK(sum <= 5 * GlobalPlan(yaml)->worst_case_bytes(layout, complete_topology(4)));
    CHECK(all_ranks_agree(outcome));
  }
}

TEST_CASE("what is no message is refused, and so is one of more values than anybody may send") {
  const Codec codec = codec_of("golomb", "dead_zone");
  constexpr std::size_t n = 1'000;
  SumStep step({.bits = 0.2});
  const SparseWire wire(codec, n, {}, nullptr, &step), free(codec, n, {});
  SparseVector v;
  for (std::uint32_t i = 0; i < SumStep::most_news({.bits = 0.2}, n); ++i)
    v.push_back(3 * i, i % 2 == 0 ? 1.0F : -2.0F);
  const OwnedMessage message = wire.encode(v);
  CHECK(wire.decode(message.bytes) == v);
  CHECK(rc::check("damage", [&](std::uint64_t seed) {
    Random random(seed);
    std::vector<std::byte> bytes = message.bytes;
    bytes[random.below(bytes.size())] ^= static_cast<std::byte>(1 + random.below(255));
    if (random.below(2) == 0) bytes.resize(random.below(bytes.size()));
    try {
      const SparseVector read = wire.decode(bytes);
      RC_ASSERT(canonical(read));
      RC_ASSERT((read.empty() || read.indices.back() < n));
      RC_ASSERT(all_finite(read.values));
    } catch (const CommunicationError&) {
    }
  }));
  CHECK_THROWS_AS(wire.decode(std::span(message.bytes).first(message.bytes.size() - 1)), CommunicationError);
  v.push_back(n - 1, 1.0F);
  CHECK_THROWS_WITH_AS(wire.decode(free.encode(v).bytes), doctest::Contains("are the most"), CommunicationError);
}

// The cosine transform rounds: to the bits of all ranks, not to whole numbers.
TEST_CASE("demo sends the coefficients that are news, and keeps the others in its momentum") {
  const std::string keys = "{name: demo, decay: 1, sign: false, block_side: 8}";
  for (const int ranks : worlds) {
    for (const std::string rule : {"step: 2", "bits_per_value: 0.5"}) {
      CAPTURE(ranks);
      CAPTURE(rule);
      const GlobalOutcome outcome =
          run_global(news_of(keys, rule), {.ranks = ranks, .iterations = 5, .gradient = normal_gradient});
      CHECK(all_ranks_agree(outcome));
      if (ranks > 1) continue;  // a mean over senders is the mean over ranks of one rank only
      const auto a = applied(outcome), r = owed(outcome), g = added(outcome.put_in);
      double worst = 0.0, most = 0.0;
      for (std::size_t i = 0; i < g.size(); ++i) {
        worst = std::max(worst, std::abs(a[i] + r[i] - g[i]));
        most = std::max(most, std::abs(a[i]));
      }
      CHECK(worst < 1e-4);
      CHECK(most > 1.0);
    }
  }
}

TEST_CASE("who does not send news refuses the budget, and says what does") {
  for (const std::string name : {"hitopk", "lkgs", "gradient_dropping", "eventgrad"})
    CHECK_THROWS_WITH_AS(GlobalPlan(news_of("{name: " + name + "}", "bits_per_value: 0.1")),
                         doctest::Contains("sparsify.quantiser.bits_per_value"), ConfigError);
  CHECK_THROWS_WITH_AS(GlobalPlan(news_of("{name: gtopk}", "horizon: 3")),
                       doctest::Contains("needs the key bits_per_value or step"), ConfigError);
}

}  // namespace
}  // namespace hearsay::value_sums_test
