// Layer-wise top-k: budgets that are k in all, the same on every rank, and sums that lose nothing.
#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/error.hpp"
#include "runtime/exchange/global/parts/segment_budgets.hpp"
#include "tests/runtime/exchange/global_job.hpp"

namespace lkgs_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

constexpr int worlds[]{1, 2, 3, 5, 6, 7, 8, 12};

std::string lkgs(const std::string& keys, const std::string& selector, const std::string& more = "") {
  return "exchange: {name: lkgs" + keys + "}\nsparsify: {selector: {" + selector + "}" + more + "}\n";
}

GlobalOptions integers(int ranks, Iteration iterations = 6) {
  return {.ranks = ranks, .iterations = iterations, .gradient = integer_gradient};
}

/// No zeros, so that every budget is used up.
void distinct_gradient(int rank, Iteration k, std::span<float> g) {
  integer_gradient(rank, k, g);
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = 16.0F * g[i] + 1.0F + static_cast<float>(rank);
}

std::size_t entries(std::span<const float> g) {
  return g.size() - static_cast<std::size_t>(std::ranges::count(g, 0.0F));
}

std::size_t sum_of(std::span<const std::size_t> parts) {
  return std::accumulate(parts.begin(), parts.end(), std::size_t{0});
}

}  // namespace

TEST_CASE("lkgs loses nothing and gives everybody the same, for any number of ranks and on either engine") {
  for (const int ranks : worlds) {
    for (const std::string keys : {"", ", overlap: false"}) {
      GlobalOptions options = integers(ranks);
      for (const EngineKind engine : {EngineKind::inline_engine, EngineKind::thread_engine}) {
        options.engine = engine;
        check_laws(lkgs(keys, "name: topk, density: 0.05"), options);
      }
    }
  }
}

TEST_CASE("lkgs loses nothing with small segments dense") {
  for (const int ranks : worlds) check_laws(lkgs("", "name: topk, density: 0.03, dense_below: 10"), integers(ranks));
}

TEST_CASE("the first iteration of lkgs is dense, and all are with density 1") {
  for (const int ranks : worlds) {
    const GlobalOutcome dense = run_global("exchange: {name: allreduce}\n", integers(ranks));
    const GlobalOutcome all = run_global(lkgs("", "name: topk, density: 1.0"), integers(ranks));
    CHECK(all.came_out == dense.came_out);
    const GlobalOutcome sparse = run_global(lkgs("", "name: topk, density: 0.1"), integers(ranks));
    CHECK(sparse.came_out[0][0] == dense.came_out[0][0]);
    CHECK(sparse.came_out[0][1] != dense.came_out[0][1]);
    if (ranks == 1) CHECK(all.came_out == all.put_in);
  }
}

// The all-reduce adds in ring order, too, a bucket being a segment here.
TEST_CASE("the first iteration of lkgs sends what a ring sends, and makes the same bits of it") {
  Layout layout;
  layout.append("weight", {70, 70});
  layout.append("embedding", {4096});
  layout.append("bias", {5003});
  const auto normal = [](int rank, Iteration k, std::span<float> g) {
    Random random(stream_seed(3, "gradient", static_cast<std::uint64_t>(rank) * 10 + static_cast<std::uint64_t>(k)));
    for (float& value : g) value = static_cast<float>(random.normal());
  };
  for (const int ranks : worlds) {
    CAPTURE(ranks);
    for (const EngineKind engine : {EngineKind::inline_engine, EngineKind::thread_engine}) {
      const GlobalOptions options{.ranks = ranks, .iterations = 1, .engine = engine, .gradient = normal};
      const GlobalOutcome dense = run_global("exchange: {name: allreduce, bucket_bytes: 4}\n", options, layout);
      const GlobalOutcome first = run_global(lkgs("", "name: topk, density: 0.1"), options, layout);
      CHECK(first.came_out == dense.came_out);
      CHECK(first.residual == std::vector<Vector>(static_cast<std::size_t>(ranks), Vector(layout.size())));
      for (std::size_t r = 0; r < first.traffic.size(); ++r) {
        CHECK(first.traffic[r].messages == dense.traffic[r].messages);
        CHECK(first.traffic[r].bytes == dense.traffic[r].bytes);
        CHECK(first.traffic[r].index_bytes == 0);
      }
    }
  }
}

TEST_CASE("lkgs loses nothing where segments change between ring and gather" * doctest::test_suite("arithmetic")) {
  Layout layout;
  layout.append("a", {4096});
  layout.append("b", {3, 5});
  layout.append("c", {4500});
  for (const int ranks : worlds) {
    for (const char* more : {"", ", feedback: {momentum: 0.5}", ", overlap: false"}) {
      for (const char* selector : {"name: topk, density: 0.6", "name: topk, density: 0.01, dense_below: 4200"}) {
        const GlobalOutcome outcome = run_global(lkgs(more, selector), integers(ranks), layout);
        CHECK(all_ranks_agree(outcome));
        if (std::string_view(more).find("momentum") == std::string_view::npos) CHECK(mass_is_kept(outcome));
      }
      std::uint64_t before = 0;
      const std::string yaml = lkgs(more, "name: topk, density: 0.9999");
      for (const Iteration iterations : {1, 2, 3}) {
        std::uint64_t bytes = 0;
        GlobalOptions options{.ranks = ranks, .iterations = iterations, .gradient = distinct_gradient};
        for (const Traffic& traffic : run_global(yaml, options, layout).traffic) bytes += traffic.bytes;
        CHECK(bytes - before <= GlobalPlan(yaml)->worst_case_bytes(layout, complete_topology(ranks)));
        before = bytes;
      }
    }
  }
}

TEST_CASE("overlap and the communication thread change no bit of lkgs") {
  const auto run = [](const std::string& keys, EngineKind engine) {
    GlobalOptions options = integers(5);
    options.engine = engine;
    return run_global(lkgs(keys, "name: topk, density: 0.05"), options).came_out;
  };
  const auto expected = run("", EngineKind::inline_engine);
  CHECK(run("", EngineKind::thread_engine) == expected);
  CHECK(run(", overlap: false", EngineKind::inline_engine) == expected);
  CHECK(run(", overlap: false", EngineKind::thread_engine) == expected);
}

TEST_CASE("shares add up, keep to their limits, and follow the weights") {
  CHECK(rc::check("apportion", [](std::uint64_t seed) {
    Random random(seed);
    const std::size_t segments = 1 + random.below(12);
    std::vector<std::size_t> lengths;
    std::vector<float> weights;
    for (std::size_t s = 0; s < segments; ++s) {
      lengths.push_back(random.below(6) == 0 ? 0 : random.below(s % 2 == 0 ? 10 : 1000));
      weights.push_back(random.below(4) == 0 ? 0.0F : static_cast<float>(random.below(500)));
    }
    const std::size_t all = sum_of(lengths);
    const auto least = segments - static_cast<std::size_t>(std::ranges::count(lengths, std::size_t{0}));
    const std::size_t total = random.below(all + 10);
    const auto parts = apportion(weights, lengths, total);
    RC_ASSERT(sum_of(parts) == std::clamp(total, least, std::max(least, all)));
    for (std::size_t a = 0; a < segments; ++a) {
      RC_ASSERT(parts[a] >= std::min<std::size_t>(1, lengths[a]));
      RC_ASSERT(parts[a] <= lengths[a]);
      for (std::size_t b = 0; b < segments; ++b)
        if (weights[a] > weights[b] && parts[a] < lengths[a]) RC_ASSERT(parts[a] + 1 >= parts[b]);
    }
  }));
}

TEST_CASE("shares are the weights themselves where those add up to the total") {
  const std::vector<std::size_t> lengths{100, 5, 70, 0, 200};
  const std::vector<float> weights{20.0F, 5.0F, 1.0F, 0.0F, 74.0F};
  CHECK(apportion(weights, lengths, 100) == std::vector<std::size_t>{20, 5, 1, 0, 74});
  const std::vector<float> scaled{60.0F, 15.0F, 3.0F, 0.0F, 222.0F};
  CHECK(apportion(scaled, lengths, 100) == std::vector<std::size_t>{20, 5, 1, 0, 74});
  // One that would get nothing gets one, at the others' cost.
  const std::vector<float> starved{97.0F, 3.0F, 0.0F, 0.0F, 0.0F};
  CHECK(apportion(starved, lengths, 100) == std::vector<std::size_t>{95, 3, 1, 0, 1});
  const std::vector<float> none(5);
  CHECK(sum_of(apportion(none, lengths, 100)) == 100);
}

// Every rank selects V_s values of s, no more and no less, and V_s are k in all: rank 0's messages show it.
TEST_CASE("after the first iteration every rank of lkgs sends max(k, segments) values") {
  const Layout layout = reference::small_layout();
  for (const int ranks : {1, 2, 3, 8}) {
    const auto p = static_cast<std::uint64_t>(ranks);
    for (const double density : {0.001, 0.05, 0.3}) {
      GlobalOptions options{.ranks = ranks, .iterations = 1, .gradient = distinct_gradient};
      const std::string yaml = lkgs("", "name: topk, density: " + std::to_string(density));
      std::vector<std::uint64_t> payload;
      std::uint64_t messages = 0;
      for (const Iteration iterations : {1, 2, 6}) {
        options.iterations = iterations;
        const GlobalOutcome outcome = run_global(yaml, options);
        std::uint64_t sum = 0;
        for (const Traffic& traffic : outcome.traffic) sum += traffic.payload_bytes;
        payload.push_back(sum);
        messages = outcome.traffic[0].messages;
      }
      const std::uint64_t k = std::max(kept_count(density, layout.size()), layout.count());
      const std::uint64_t counts = 2 * (p - 1) * 4 * layout.count();
      const auto rounds = static_cast<std::uint64_t>(std::bit_width(p - 1));
      CHECK(payload[0] == p * (p - 1) * 4 * layout.size());
      CHECK(payload[1] - payload[0] == p * (p - 1) * 4 * k + counts);
      CHECK(payload[2] - payload[0] == 5 * (p * (p - 1) * 4 * k + counts));
      CHECK(messages == 6 * layout.count() * rounds + 5 * 2 * (p - 1));
    }
  }
}

TEST_CASE("no iteration of lkgs sends more than the worst case says") {
  const Layout layout = reference::small_layout();
  for (const int ranks : worlds) {
    const std::string yaml = lkgs("", "name: topk, density: 0.4");
    GlobalOptions options{.ranks = ranks, .iterations = 1, .gradient = distinct_gradient};
    std::uint64_t before = 0;
    for (options.iterations = 1; options.iterations < 4; ++options.iterations) {
      std::uint64_t bytes = 0;
      for (const Traffic& traffic : run_global(yaml, options).traffic) bytes += traffic.bytes;
      CHECK(bytes - before <= GlobalPlan(yaml)->worst_case_bytes(layout, complete_topology(ranks)));
      before = bytes;
    }
  }
}

// Rank 0's large values lie in segment 2, the other's in segment 3; both agree on half of k for either.
TEST_CASE("budgets are the same on every rank") {
  const Layout layout = reference::small_layout();
  const auto gradient = [&](int rank, Iteration, std::span<float> g) {
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = 1.0F + static_cast<float>(i % 7);
    const Segment& large = layout[rank == 0 ? 2 : 3];
    for (std::size_t i = 0; i < 40; ++i) g[large.offset + i] = 1000.0F + static_cast<float>(i);
  };
  const std::size_t k = kept_count(0.1, layout.size());
  REQUIRE(k == 37);
  const GlobalOutcome outcome =
      run_global(lkgs("", "name: topk, density: 0.1"), {.ranks = 2, .iterations = 2, .gradient = gradient});
  const Vector& g = outcome.came_out[0][1];
  const auto of = [&](SegmentId s) { return std::span(g).subspan(layout[s].offset, layout[s].length); };
  CHECK(entries(of(0)) == 1);
  for (const SegmentId s : {2U, 3U}) {
    // At most 18 positions from either rank; without agreement one rank alone would have sent 34.
    CHECK(entries(of(s)) >= 17);
    CHECK(std::ranges::count_if(of(s), [](float x) { return x >= 500.0F; }) <= 18);
  }
}

TEST_CASE("budgets go where the large values are, and the density of the coming iteration counts") {
  const Layout layout = reference::small_layout();
  const auto gradient = [&](int, Iteration k, std::span<float> g) {
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = static_cast<float>(1 + i % 3);
    const Segment& large = layout[k == 0 ? 2 : 3];
    for (std::size_t i = 0; i < large.length; ++i) g[large.offset + i] = 1000.0F;
  };
  GlobalOptions options{.ranks = 1, .iterations = 3, .gradient = gradient};
  const GlobalOutcome outcome =
      run_global(lkgs("", "name: topk, density: 0.05", ", density_schedule: [1.0, 0.1]"), options, layout);
  const auto of = [&](std::size_t k, SegmentId s) {
    return entries(std::span(outcome.came_out[0][k]).subspan(layout[s].offset, layout[s].length));
  };
  CHECK(of(1, 2) == 37 - 3);  // 1 each for the others
  CHECK(of(1, 3) == 1);
  CHECK(of(2, 2) == 1);
  CHECK(of(2, 3) == 19 - 3);
}

TEST_CASE("lkgs names the segment of a value that is not finite, and refuses what it cannot do") {
  GlobalOptions options = integers(1, 2);
  options.gradient = [](int rank, Iteration k, std::span<float> g) {
    integer_gradient(rank, k, g);
    if (k == 1) g[10] = std::numeric_limits<float>::quiet_NaN();
  };
  for (const char* selector : {"name: topk, density: 0.1", "name: topk, density: 1.0"}) {
    for (const EngineKind engine : {EngineKind::inline_engine, EngineKind::thread_engine}) {
      options.engine = engine;
      CHECK_THROWS_WITH_AS(run_global(lkgs("", selector), options), doctest::Contains("gradient of parameter 'weight'"),
                           DivergenceError);
    }
  }
  CHECK_THROWS_WITH_AS(GlobalPlan(lkgs(", feedback: {clip_norm: 2.0}", "name: topk")), doctest::Contains("clip_norm"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(GlobalPlan(lkgs("", "name: topk, scope: global")), doctest::Contains("scope"), ConfigError);
}

TEST_CASE("lkgs with momentum correction and everything sent is the optimizer's momentum") {
  const GlobalOutcome outcome = run_global(
      lkgs(", feedback: {momentum: 0.5, factor_masking: false}", "name: topk, density: 1.0"), integers(2, 5));
  const GlobalOutcome masked =
      run_global(lkgs(", feedback: {momentum: 0.5}", "name: topk, density: 1.0"), integers(2, 5));
  Vector v(outcome.put_in[0][0].size());
  for (std::size_t k = 0; k < 5; ++k) {
    for (std::size_t i = 0; i < v.size(); ++i) {
      const float mean = (outcome.put_in[0][k][i] + outcome.put_in[1][k][i]) / 2;
      v[i] = 0.5F * v[i] + mean;
      REQUIRE(outcome.came_out[0][k][i] == v[i]);
      REQUIRE(masked.came_out[0][k][i] == mean);
    }
  }
}

TEST_CASE("empty segments and segments without gradients do not disturb lkgs") {
  Layout layout;
  layout.append("none", {0});
  layout.append("a", {5});
  layout.append("still nothing", {0, 3});
  layout.append("b", {20});
  for (const int ranks : {1, 3}) {
    const GlobalOutcome outcome = run_global(lkgs("", "name: topk, density: 0.2"), integers(ranks), layout);
    CHECK(mass_is_kept(outcome));
    CHECK(all_ranks_agree(outcome));
  }
}

}  // namespace lkgs_test
