// The global path: what each sum must be, and options that global_contract_test.cpp does not go through.
#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/runtime/exchange/global_job.hpp"

namespace global_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

constexpr int worlds[]{1, 2, 3, 5, 6, 7, 8, 12};
constexpr const char* exact_algorithms[]{
    "exchange: {name: topk}\n",
    "exchange: {name: gtopk_naive}\n",
    "exchange: {name: gtopk, merge: tree, residual: merger}\n",
    "exchange: {name: gtopk, merge: butterfly, residual: merger}\n",
    "exchange: {name: gtopk, merge: tree, residual: owner}\n",
    "exchange: {name: gtopk, merge: butterfly, residual: owner}\n",
};

std::string sparsify(const std::string& selector, const std::string& codec = "plain",
                     const std::string& quantiser = "none") {
  return "sparsify: {selector: {" + selector + "}, codec: {name: " + codec + "}, quantiser: {name: " + quantiser +
         "}}\n";
}

GlobalOptions integers(int ranks, Iteration iterations = 5) {
  return {.ranks = ranks, .iterations = iterations, .gradient = integer_gradient};
}

/// The k positions of largest magnitude, ties by lower position.
std::vector<std::size_t> largest(const Vector& values, std::size_t k) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return std::abs(values[a]) > std::abs(values[b]); });
  order.resize(std::min(k, order.size()));
  return order;
}

/// Algorithms 1 and 2 of the gTop-k paper on dense vectors, all workers in one loop.
std::vector<Vector> simulated(const GlobalOutcome& outcome, std::size_t k, bool global) {
  const std::size_t ranks = outcome.put_in.size(), n = outcome.put_in[0][0].size();
  std::vector<Vector> residual(ranks, Vector(n)), results;
  for (std::size_t t = 0; t < outcome.put_in[0].size(); ++t) {
    Vector total(n);
    std::vector<Vector> sent(ranks, Vector(n));
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t i = 0; i < n; ++i) residual[r][i] += outcome.put_in[r][t][i];
      for (const std::size_t i : largest(residual[r], k)) std::swap(sent[r][i], residual[r][i]);
      for (std::size_t i = 0; i < n; ++i) total[i] += sent[r][i];
    }
    if (global) {
      Vector kept(n);
      for (const std::size_t i : largest(total, k)) kept[i] = total[i];
      for (std::size_t r = 0; r < ranks; ++r)
        for (std::size_t i = 0; i < n; ++i)
          if (kept[i] == 0.0F) residual[r][i] += sent[r][i];
      total = kept;
    }
    for (float& value : total) value /= static_cast<float>(ranks);
    results.push_back(total);
  }
  return results;
}

}  // namespace

TEST_CASE("nothing is lost and everybody gets the same, whatever the scope of the selection") {
  for (const char* selector :
       {"name: topk, density: 0.1, scope: per_segment", "name: topk, density: 0.03, dense_below: 10",
        "name: topk, density: 0.1, scope: per_segment, dense_below: 100"}) {
    for (const int ranks : worlds) {
      for (const char* algorithm : exact_algorithms) check_laws(algorithm + sparsify(selector), integers(ranks));
    }
  }
}

TEST_CASE("nothing is lost and everybody gets the same, for every codec of rounded values") {
  for (const char* codec : {"delta", "bitmap", "smallest"}) {
    for (const char* quantiser : {"fp16", "int8", "two_bit", "one_bit"}) {
      for (const int ranks : {1, 4, 6}) {
        for (const std::string algorithm :
             {"exchange: {name: topk}\n", "exchange: {name: gtopk_naive}\n", "exchange: {name: gtopk, merge: tree}\n",
              "exchange: {name: gtopk, merge: butterfly}\n"})
          check_laws_of_rounded(algorithm + sparsify("name: topk, density: 0.1", codec, quantiser), integers(ranks));
      }
    }
  }
}

TEST_CASE("a communication thread changes nothing") {
  for (const char* algorithm : exact_algorithms) {
    GlobalOptions options = integers(5);
    const GlobalOutcome alone = run_global(algorithm + sparsify("name: topk, density: 0.05"), options);
    options.engine = EngineKind::thread_engine;
    CHECK(run_global(algorithm + sparsify("name: topk, density: 0.05"), options).came_out == alone.came_out);
  }
}

TEST_CASE("the dense sum is the mean of all gradients, ring or library, overlapping or not, whatever the buckets") {
  for (const int ranks : worlds) {
    for (const std::string keys :
         {"", ", method: library", ", overlap: false", ", bucket_bytes: 4", ", bucket_bytes: 300"}) {
      for (const EngineKind engine : {EngineKind::inline_engine, EngineKind::thread_engine}) {
        CAPTURE(keys);
        GlobalOptions options = integers(ranks);
        options.engine = engine;
        const GlobalOutcome outcome = run_global("exchange: {name: allreduce" + keys + "}\n", options);
        CHECK(mass_is_kept(outcome));
        CHECK(all_ranks_agree(outcome));
        CHECK(std::ranges::all_of(owed(outcome), [](double r) { return r == 0.0; }));
        if (ranks == 1) CHECK(outcome.came_out == outcome.put_in);
      }
    }
  }
}

TEST_CASE("the last layers travel while the first ones still have no gradient") {
  for (const char* yaml : {"exchange: {name: allreduce, bucket_bytes: 4}\n", "exchange: {name: lkgs}\n"}) {
    CAPTURE(yaml);
    const GlobalPlan plan(yaml);
    const Topology topology = complete_topology(3);
    const Layout layout = reference::small_layout();
    const Vector initial(layout.size());
    const LocalJob job{
        .topology = topology, .layout = layout, .initial = initial, .plan = *plan, .engine = EngineKind::thread_engine};
    LocalWorld world(job);
    const auto body = [&](LocalRank& rank) {
      Participant* const exchange = &rank.member;
      const auto sent = [&] { return world.office().traffic(rank.rank()).messages; };
      REQUIRE(exchange->exchange().capabilities().layer_wise);
      for (Iteration k = 0; k < 3; ++k) {
        exchange->start(k);
        integer_gradient(rank.rank(), k, rank.replica.gradients.span());
        const std::uint64_t before = sent();
        exchange->gradient_ready(3);
        // The other segments' gradients wait until a message of the last one is out: for ever, if nothing overlaps.
        for (int waits = 0; waits < 10'000 && sent() == before; ++waits)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        CHECK(sent() > before);
        for (const SegmentId s : {2U, 1U, 0U}) exchange->gradient_ready(s);
        exchange->finish(k);
      }
      rank.member.leave();
    };
    {
      std::vector<std::jthread> threads;
      for (int r = 0; r < 3; ++r) threads.emplace_back([&, r] { world.run(r, body); });
    }
    world.rethrow();
  }
}

TEST_CASE("with k = n every algorithm is the dense one, and on one rank the identity") {
  for (const int ranks : worlds) {
    const GlobalOutcome dense = run_global("exchange: {name: allreduce}\n", integers(ranks));
    const auto check = [&](const std::string& algorithm) {
      CAPTURE(algorithm);
      const GlobalOutcome outcome = run_global(algorithm + sparsify("name: topk, density: 1.0"), integers(ranks));
      CHECK(outcome.came_out == dense.came_out);
      if (ranks == 1) CHECK(outcome.came_out == outcome.put_in);
      return outcome;
    };
    for (const char* algorithm : exact_algorithms) check(algorithm);
    for (const char* merge : {"tree", "butterfly"}) {  // no merge cuts anything off that could be lost
      const auto published = check("exchange: {name: gtopk, residual: published, merge: " + std::string(merge) + "}\n");
      CHECK(mass_is_kept(published));
      for (const auto& shares : published.shares) CHECK(shares[0].part == 0.0);
    }
  }
}

TEST_CASE("topk and gtopk_naive are Algorithms 1 and 2 of the paper") {
  const std::size_t n = reference::small_layout().size();
  for (const int ranks : worlds) {
    for (const double density : {0.002, 0.05, 0.5}) {
      const std::string section = sparsify("name: topk, density: " + std::to_string(density));
      const std::size_t k = kept_count(density, n);
      const GlobalOutcome topk = run_global("exchange: {name: topk}\n" + section, integers(ranks));
      CHECK(topk.came_out[0] == simulated(topk, k, false));
      const GlobalOutcome naive = run_global("exchange: {name: gtopk_naive}\n" + section, integers(ranks));
      CHECK(naive.came_out[0] == simulated(naive, k, true));
    }
  }
}

TEST_CASE("gtopk is gtopk_naive for one and two ranks, and never has more than k entries") {
  for (const int ranks : worlds) {
    const std::string section = sparsify("name: topk, density: 0.05");
    const GlobalOutcome naive = run_global("exchange: {name: gtopk_naive}\n" + section, integers(ranks));
    for (const char* merge : {"tree", "butterfly"}) {
      const GlobalOutcome outcome = run_global(
          "exchange: {name: gtopk, merge: " + std::string(merge) + ", residual: owner}\n" + section, integers(ranks));
      if (ranks <= 2) CHECK(outcome.came_out == naive.came_out);
      const std::size_t k = kept_count(0.05, reference::small_layout().size());
      for (const Vector& g : outcome.came_out[0])
        CHECK(static_cast<std::size_t>(std::ranges::count_if(g, [](float x) { return x != 0.0F; })) <= k);
    }
  }
}

TEST_CASE("the published rule reports the mass that it loses, the others lose none") {
  const std::string section = sparsify("name: topk, density: 0.05");
  const auto lost = [&](const char* rule, int ranks) {
    const GlobalOutcome outcome =
        run_global("exchange: {name: gtopk, residual: " + std::string(rule) + "}\n" + section, integers(ranks, 20));
    Share sum;
    for (const auto& shares : outcome.shares) {
      REQUIRE(shares.size() == 1);
      CHECK(shares[0].name == "lost_mass_fraction");
      sum.part += shares[0].part, sum.whole += shares[0].whole;
    }
    CHECK(sum.whole > 0.0);
    return sum.fraction();
  };
  CHECK(lost("published", 2) == 0.0);
  CHECK(lost("published", 8) > 0.01);
  CHECK(lost("published", 8) < 1.0);
  CHECK(lost("merger", 8) == 0.0);
  CHECK(lost("owner", 8) == 0.0);
}

TEST_CASE("densities follow the schedule, epoch by epoch") {
  GlobalOptions options = integers(2, 6);
  options.iterations_per_epoch = 2;
  const GlobalOutcome outcome = run_global(
      "exchange: {name: gtopk_naive}\nsparsify: {selector: {name: topk, density: 0.01}, density_schedule: [0.5, "
      "0.1]}\n",
      options);
  const std::size_t n = reference::small_layout().size();
  std::vector<std::size_t> entries;
  for (const Vector& g : outcome.came_out[0])
    entries.push_back(static_cast<std::size_t>(std::ranges::count_if(g, [](float x) { return x != 0.0F; })));
  const std::size_t a = kept_count(0.5, n), b = kept_count(0.1, n), c = kept_count(0.01, n);
  CHECK(entries == std::vector<std::size_t>{a, a, b, b, c, c});
}

TEST_CASE("bytes are those of the cost comments") {
  const std::size_t n = reference::small_layout().size();
  for (const int ranks : worlds) {
    const auto p = static_cast<std::size_t>(ranks);
    const auto rounds = static_cast<std::size_t>(std::bit_width(p - 1));
    for (const double density : {0.01, 0.1}) {
      const std::size_t k = kept_count(density, n), message = 8 + 8 * k;
      const std::string section = sparsify("name: topk, density: " + std::to_string(density));
      const GlobalOutcome topk = run_global("exchange: {name: topk}\n" + section, integers(ranks, 1));
      for (const Traffic& traffic : topk.traffic) {
        CHECK(traffic.messages == rounds);
        CHECK(traffic.bytes == (p - 1) * (message + 24));
        CHECK(traffic.payload_bytes == (p - 1) * 4 * k);
        CHECK(traffic.index_bytes == (p - 1) * 4 * k);
      }
      const GlobalOutcome tree = run_global("exchange: {name: gtopk, merge: tree}\n" + section, integers(ranks, 1));
      CHECK(tree.traffic[0].messages == rounds);
      CHECK(tree.traffic[0].bytes == rounds * message);
    }
    const GlobalOutcome dense = run_global("exchange: {name: allreduce, bucket_bytes: 1000000}\n", integers(ranks, 1));
    std::uint64_t bytes = 0;
    for (const Traffic& traffic : dense.traffic) bytes += traffic.bytes;
    CHECK(bytes == 2 * (p - 1) * 4 * n);
  }
}

}  // namespace global_test
