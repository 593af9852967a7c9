// Gradient dropping in step: what is pushed and what is pulled is never lost, and the optimizer moves masters only.
#include <algorithm>
#include <bit>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/runtime/exchange/dropping/dropping_job.hpp"

namespace gradient_dropping_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

constexpr int worlds[]{1, 2, 3, 5, 6, 7, 8, 12};
constexpr const char* exact_selectors[]{"name: sampled, density: 0.1",
                                        "name: topk, density: 0.05",
                                        "name: topk, density: 0.05, scope: per_segment",
                                        "name: topk, density: 0.1, dense_below: 10",
                                        "name: mstopk, density: 0.1",
                                        "name: random, density: 0.1",
                                        "name: dense"};

std::string dropping(const std::string& keys, const std::string& selector, const std::string& more = "") {
  return "exchange: {name: gradient_dropping" + keys + "}\nsparsify: {selector: {" + selector + "}" + more + "}\n";
}

void positive_gradient(int rank, Iteration k, std::span<float> g) {
  integer_gradient(rank, k, g);
  for (float& value : g) value += 10.0F;
}

/// Σ applied + Σ residuals = Σ gradients, and no gradient outside a rank's own shard. `rounded`: sums need not be
/// integers, so dividing them by P rounds by up to half a unit in the last place unless P is a power of two.
void check_pushes(const std::vector<DroppingOutcome>& ranks, bool rounded = false) {
  const std::size_t n = ranks[0].put_in[0].size(), p = ranks.size();
  const bool division_rounds = rounded && !std::has_single_bit(p);
  std::vector<double> put_in(n), applied(n), owed(n), allowed(n);
  bool zero_elsewhere = true;
  for (std::size_t r = 0; r < p; ++r) {
    const Part part = part_of(n, static_cast<int>(p), static_cast<int>(r));
    for (std::size_t k = 0; k < ranks[r].put_in.size(); ++k) {
      for (std::size_t i = 0; i < n; ++i) {
        put_in[i] += ranks[r].put_in[k][i];
        const double mean = ranks[r].came_out[k][i];
        applied[i] += division_rounds ? static_cast<double>(p) * mean : times_ranks(ranks[r].came_out[k][i], p);
        if (division_rounds) allowed[i] += static_cast<double>(p) * std::abs(mean) * 0x1.0p-24;
        const bool own = i >= part.begin && i < part.begin + part.length;
        zero_elsewhere = zero_elsewhere && (own || ranks[r].came_out[k][i] == 0.0F);
      }
    }
    for (std::size_t i = 0; i < n; ++i) owed[i] += ranks[r].residual[i];
  }
  CHECK(zero_elsewhere);
  bool kept = true;
  for (std::size_t i = 0; i < n; ++i) kept = kept && std::abs(applied[i] + owed[i] - put_in[i]) <= allowed[i];
  CHECK(kept);
}

/// The server's master goes on from where the optimizer left it; a change that is pulled is the whole difference at its
/// position, so copy + residual of the pull = master; at most `most` positions change.
void check_pulls(const std::vector<DroppingOutcome>& ranks, std::size_t most) {
  const std::size_t n = ranks[0].put_in[0].size();
  const Vector initial = dropping_start(n);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Part part = part_of(n, static_cast<int>(ranks.size()), static_cast<int>(r));
    const DroppingOutcome& server = ranks[r];
    for (std::size_t k = 0; k < server.x.size(); ++k) {
      if (k > 0) CHECK(server.found[k] == server.moved[k - 1]);
      std::size_t pulled = 0;
      bool whole_differences = true;
      for (std::size_t i = 0; i < part.length; ++i) {
        const float before = k == 0 ? initial[part.begin + i] : server.x[k - 1][part.begin + i];
        const float after = server.x[k][part.begin + i];
        if (after == before) continue;
        ++pulled;
        whole_differences = whole_differences && after == server.moved[k][i];
      }
      CHECK(whole_differences);
      CHECK(pulled <= most);
    }
  }
}

bool replicas_agree(const std::vector<DroppingOutcome>& ranks) {
  for (const DroppingOutcome& rank : ranks)
    for (std::size_t k = 0; k < rank.x.size(); ++k)
      if (replica_hash(rank.x[k]) != replica_hash(ranks[0].x[k])) return false;
  return true;
}

}  // namespace

TEST_CASE("pushes and pulls in step lose nothing and replicas stay equal, for any number of ranks") {
  for (const int ranks : worlds) {
    for (const EngineKind engine : {EngineKind::inline_engine, EngineKind::thread_engine}) {
      CAPTURE(ranks);
      const auto outcome =
          run_dropping(dropping("", "name: sampled, density: 0.1"), {.ranks = ranks, .engine = engine});
      check_pushes(outcome);
      CHECK(replicas_agree(outcome));
      const std::size_t shard = part_of(372, ranks, 0).length;
      if (ranks > 1) check_pulls(outcome, kept_count(0.1, shard) * 13 / 10);
    }
  }
}

TEST_CASE("pushes and pulls in step lose nothing, for every selector and codec") {
  const auto check = [](const std::string& yaml, int ranks, std::size_t most) {
    CAPTURE(yaml);
    CAPTURE(ranks);
    const auto outcome = run_dropping(yaml, {.ranks = ranks});
    check_pushes(outcome);
    if (ranks > 1) check_pulls(outcome, most);
    CHECK(replicas_agree(outcome));
  };
  for (const int ranks : worlds) {
    for (const char* selector : exact_selectors) check(dropping("", selector), ranks, 372);
    check(dropping("", "name: threshold, threshold: 9"), ranks, 372);
    for (const PositionCoderEntry& codec : position_coders())
      check(dropping("", "name: topk, density: 0.1", ", codec: {name: " + std::string(codec.name) + "}"), ranks,
            kept_count(0.1, part_of(372, ranks, 0).length));
  }
}

TEST_CASE("rounded pushes stay in the residual and rounded pulls stay owed") {
  // Values rounded to few bits: sums and what is rounded off are exact.
  for (const char* quantiser :
       {"fp16", "int8", "two_bit", "one_bit", "one_bit, centre: mean", "one_bit, centre: row_mean"}) {
    for (const int ranks : worlds) {
      CAPTURE(quantiser);
      CAPTURE(ranks);
      const std::string yaml =
          dropping("", "name: topk, density: 0.1", ", quantiser: {name: " + std::string(quantiser) + "}");
      const auto outcome = run_dropping(yaml, {.ranks = ranks});
      check_pushes(outcome, true);
      CHECK(replicas_agree(outcome));
      for (const DroppingOutcome& server : outcome)
        for (std::size_t k = 1; k < server.x.size(); ++k) CHECK(server.found[k] == server.moved[k - 1]);
    }
  }
}

TEST_CASE("once gradients stop, everything that is owed arrives") {
  for (const char* selector : exact_selectors) {
    CAPTURE(selector);
    if (std::string(selector).find("random") != std::string::npos) continue;  // arrives almost surely only
    const auto outcome = run_dropping(dropping("", selector), {.ranks = 3, .quiet_iterations = 60});
    const Vector expected = settled(outcome, 372);
    for (const DroppingOutcome& rank : outcome) {
      CHECK(rank.x.back() == expected);
      CHECK(std::ranges::all_of(rank.residual, [](float r) { return r == 0.0F; }));
    }
  }
}

TEST_CASE("with density 1 gradient dropping is the dense sum") {
  for (const int ranks : worlds) {
    const auto outcome = run_dropping(dropping("", "name: topk, density: 1.0"), {.ranks = ranks});
    std::vector<DroppingOutcome> so_far(static_cast<std::size_t>(ranks));
    for (std::size_t k = 0; k < 5; ++k) {
      for (std::size_t r = 0; r < so_far.size(); ++r) so_far[r].put_in.push_back(outcome[r].put_in[k]);
      for (const DroppingOutcome& rank : outcome) CHECK(rank.x[k] == settled(so_far, 372));
    }
  }
}

TEST_CASE("one rank drops nothing, whatever the selector and the schedule") {
  for (const std::string keys : {"", ", schedule: asynchronous"}) {
    for (const char* selector : exact_selectors) {
      for (const char* more : {"", ", quantiser: {name: one_bit}"}) {
        const auto outcome = run_dropping(dropping(keys, selector, more), {.ranks = 1});
        CHECK(outcome[0].came_out == outcome[0].put_in);
        CHECK(outcome[0].x.back() == settled(outcome, 372));
      }
    }
  }
}

TEST_CASE("everything is pulled with pull_density 1, and at most its share with less") {
  const auto all = run_dropping(dropping(", pull_density: 1.0", "name: threshold, threshold: 6"), {.ranks = 3});
  for (std::size_t r = 0; r < 3; ++r) {
    const Part part = part_of(372, 3, static_cast<int>(r));
    for (std::size_t k = 0; k < 5; ++k) {
      Vector own(all[r].x[k].begin() + static_cast<std::ptrdiff_t>(part.begin),
                 all[r].x[k].begin() + static_cast<std::ptrdiff_t>(part.begin + part.length));
      CHECK(own == all[r].moved[k]);
    }
  }
  check_pulls(run_dropping(dropping(", pull_density: 0.02", "name: topk, density: 0.5"), {.ranks = 3}),
              kept_count(0.02, 124));
}

TEST_CASE("bytes of gradient dropping are those of its cost comment, and never more than its worst case") {
  const Layout layout = reference::small_layout();
  for (const int ranks : worlds) {
    for (const double density : {0.01, 0.1, 1.0}) {
      CAPTURE(ranks);
      CAPTURE(density);
      const std::string yaml = dropping("", "name: topk, density: " + std::to_string(density));
      std::vector<Traffic> traffic;
      const auto outcome =
          run_dropping(yaml, {.ranks = ranks, .iterations = 1, .gradient = positive_gradient}, &traffic);
      const auto p = static_cast<std::size_t>(ranks);
      const auto bytes_of = [](std::size_t entries, std::size_t n) {
        return 8 + 4 * entries + 4 * std::min(entries, n - entries);
      };
      std::size_t expected = 0, payload = 0, sent = 0;
      for (int s = 0; s < ranks; ++s) {
        const Part part = part_of(layout.size(), ranks, s);
        std::size_t changed = 0;
        for (std::size_t i = part.begin; i < part.begin + part.length; ++i) {
          bool any = false;
          for (const DroppingOutcome& rank : outcome) any = any || rank.residual[i] == 0.0F;
          changed += any ? 1 : 0;
        }
        const std::size_t pulled = std::min(changed, kept_count(density, part.length));
        expected += (p - 1) * (24 + bytes_of(pulled, part.length));
        payload += (p - 1) * 4 * pulled;
        for (int r = 0; r < ranks; ++r) {
          if (r == s) continue;
          const auto& residual = outcome[static_cast<std::size_t>(r)].residual;
          const auto shard = std::span(residual).subspan(part.begin, part.length);
          const auto pushed = static_cast<std::size_t>(std::ranges::count(shard, 0.0F));
          expected += bytes_of(pushed, part.length);
          payload += 4 * pushed;
        }
      }
      std::size_t bytes = 0;
      for (const Traffic& rank : traffic) {
        bytes += rank.bytes, sent += rank.payload_bytes;
        CHECK(rank.messages == p - 1 + static_cast<std::size_t>(std::bit_width(p - 1)));
      }
      CHECK(bytes == expected);
      CHECK(sent == payload);
      CHECK(bytes <= GlobalPlan(yaml)->worst_case_bytes(layout, complete_topology(ranks)));
    }
  }
}

TEST_CASE("momentum correction and clipping of gradient dropping are those of topk") {
  const std::string feedback = ", feedback: {momentum: 0.5, factor_masking: false, clip_norm: 3.0}";
  const std::string sparsify = "sparsify: {selector: {name: topk, density: 1.0}}\n";
  const auto outcome = run_dropping(dropping(feedback, "name: topk, density: 1.0"), {.ranks = 2});
  const GlobalOutcome expected = run_global("exchange: {name: topk" + feedback + "}\n" + sparsify,
                                            {.ranks = 2, .iterations = 5, .gradient = integer_gradient});
  for (std::size_t k = 0; k < 5; ++k)
    for (std::size_t i = 0; i < 372; ++i)
      REQUIRE(outcome[i < 186 ? 0 : 1].came_out[k][i] == expected.came_out[0][k][i]);
}

TEST_CASE("gradient dropping says which segment is not finite and when there are too many servers") {
  for (const std::string keys : {"", ", schedule: asynchronous"}) {
    const auto poisoned = [](int rank, Iteration k, std::span<float> g) {
      integer_gradient(rank, k, g);
      if (rank == 1) g[3] = std::numeric_limits<float>::quiet_NaN();
    };
    CHECK_THROWS_WITH_AS(run_dropping(dropping(keys, "name: topk"), {.ranks = 2, .gradient = poisoned}),
                         doctest::Contains("gradient of parameter 'bias'"), DivergenceError);
    Layout tiny;
    tiny.append("a", {3});
    CHECK_THROWS_WITH_AS(run_dropping(dropping(keys, "name: topk"), {.ranks = 5, .layout = tiny}),
                         doctest::Contains("5 servers of 3 parameters"), ConfigError);
    const auto outcome = run_dropping(dropping(keys, "name: topk"), {.ranks = 3, .layout = tiny});
    CHECK(outcome.size() == 3);
  }
}

TEST_CASE("gradient dropping in step gives every rank the same bits, however late messages are") {
  const auto gradient = [](int rank, Iteration k, std::span<float> g) {
    Random random(stream_seed(13, "gradient", static_cast<std::uint64_t>(rank) * 1000 + static_cast<std::uint64_t>(k)));
    for (float& value : g) value = static_cast<float>(random.normal());
  };
  for (const int ranks : worlds) {
    CAPTURE(ranks);
    const std::string yaml = dropping("", "name: sampled, density: 0.1");
    DroppingOptions options{.ranks = ranks, .gradient = gradient};
    const auto punctual = run_dropping(yaml, options);
    CHECK(replicas_agree(punctual));
    options.engine = EngineKind::thread_engine;
    options.delays = 5;
    const auto late = run_dropping(yaml, options);
    for (std::size_t r = 0; r < late.size(); ++r) CHECK(late[r].x == punctual[r].x);
  }
}

}  // namespace gradient_dropping_test
