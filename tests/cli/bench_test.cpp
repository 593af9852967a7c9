// hearsay bench: quantiles, the α-β model, the oracle that results are held against, what is printed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <string>

#include "apps/bench/between_ranks/mass_balance.hpp"
#include "apps/bench/between_ranks/oracle.hpp"
#include "apps/hearsay/views/bench_report.hpp"
#include "apps/shared/text.hpp"
#include "base/timing.hpp"
#include "tests/support/local_peers.hpp"

namespace bench_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

std::vector<SparseVector> whole(int ranks, std::size_t m, std::size_t k) {
  std::vector<SparseVector> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(whole_entries(7, rank, m, k));
  return all;
}

/// What ranks that merge two at a time would have: rank 0 keeps what is cut off.
TruncatedSums cut_by_rank_0(const std::vector<SparseVector>& all, std::size_t k) {
  SparseVector result = exact_sum(all);
  SparseVector dropped = Truncation().keep_largest(result, k);
  TruncatedSums sums{.results = std::vector(all.size(), result), .returned = std::vector<SparseVector>(all.size())};
  sums.returned.front() = std::move(dropped);
  return sums;
}

template <class Check>
std::string complaint(Check check) {
  try {
    check();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

bool mentions(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

CollectivesBench example() {
  CollectivesBench bench;
  bench.machine = {.cores = 2, .mpi = "Open MPI v4.1.4, package: x", .hearsay = "0.1.0"};
  bench.collectives.ranks = 4;
  bench.collectives.ping_pong = {{.bytes = 4, .one_way_s = 1e-6}, {.bytes = 4'000'000, .one_way_s = 1.001e-3}};
  bench.collectives.model = fitted(bench.collectives.ping_pong);
  bench.collectives.timings = {{.algorithm = "ring",
                                .values = 1000,
                                .k = 1000,
                                .calls = 9,
                                .median_s = 2e-3,
                                .p99_s = 3e-3,
                                .predicted_s = 1e-6},
                               {.algorithm = "gtopk_butterfly",
                                .values = 25'000'000,
                                .density = 0.001,
                                .k = 25'000,
                                .calls = 200,
                                .median_s = 0.5,
                                .p99_s = 0.75,
                                .predicted_s = 0.25,
                                .bytes_sent = 400'016}};
  bench.merge = {.entries = 25'000, .repeats = 3, .median_s = 8e-4};
  bench.selection = {.values = 10, .density = 0.5, .repeats = 3, .addition_s = 1.0, .selection_s = 2.0, .ratio = 2.0};
  return bench;
}

}  // namespace

TEST_CASE("mass balances over ranks, and one unit that is lost, or a replica that is not the same, is noticed") {
  const std::vector<std::vector<float>> gradients{{3, 0, -7, 1}, {2, 5, 0, 1}, {-5, 0, 0, 8}};
  const std::vector<float> mean{0, 5.0F / 3.0F, -7.0F / 3.0F, 0};  // the last position stays in the residuals
  const auto statements = [&](float lost, float replica) {
    std::vector<MassBalance::Statement> all;
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      MassBalance balance(7);
      balance.put_in(gradients[rank]);
      if (rank == 0) balance.applied(mean, 3);
      balance.kept(std::vector<float>{0, 0, 0, rank == 1 ? gradients[rank][3] - lost : gradients[rank][3]});
      all.push_back(balance.statement(std::vector<float>{1, rank == 2 ? replica : 2.0F}));
    }
    return all;
  };
  CHECK_NOTHROW(require_laws("x", statements(0, 2)));
  CHECK(mentions(complaint([&] { require_laws("x", statements(1, 2)); }), "what x applied and what all ranks keep"));
  CHECK(mentions(complaint([&] { require_laws("x", statements(0, 2.5F)); }), "rank 2 under x"));
  CHECK_NOTHROW(require_laws("x", {}));
}

TEST_CASE("a quantile is one of the values, by nearest rank") {
  std::vector<double> hundred(100);
  std::iota(hundred.rbegin(), hundred.rend(), 1.0);
  CHECK(quantile(hundred, 0.99) == 99.0);
  CHECK(quantile(hundred, 1.0) == 100.0);
  CHECK(quantile(hundred, 0.001) == 1.0);
  CHECK(median(hundred) == 50.0);
  CHECK(median({3.0, 1.0, 2.0}) == 2.0);
  CHECK(quantile({5.0}, 0.99) == 5.0);
  CHECK(quantile({5.0, 7.0}, 0.99) == 7.0);
  CHECK_THROWS_AS(median({}), std::logic_error);
  CHECK_THROWS_AS(quantile({1.0}, 0.0), std::logic_error);
}

TEST_CASE("messages and words of the busiest rank") {
  const auto is = [](const CommunicationCost& cost, double messages, double words) {
    return cost.messages == messages && cost.words == words;
  };
  CHECK(is(ring_cost(4, 1000), 6, 1500));
  CHECK(is(ring_cost(2, 1000), 2, 1000));
  CHECK(is(gather_cost(4, 80), 2, 60));
  CHECK(is(gather_cost(5, 80), 3, 80));
  CHECK(is(tree_cost(4, 80), 4, 80));
  CHECK(is(tree_cost(5, 80), 6, 120));
  CHECK(is(butterfly_cost(4, 80), 2, 40));
  CHECK(is(butterfly_cost(8, 80), 3, 60));
  CHECK(is(butterfly_cost(5, 80), 4, 80));  // folds in, two rounds, told after
  CHECK(ring_cost(4, 1000).seconds({.alpha_s = 2.0, .beta_s = 0.5}) == 762.0);
}

TEST_CASE("the fit finds the α and β that times were made with") {
  const AlphaBeta made{.alpha_s = 4e-5, .beta_s = 3e-9};
  std::vector<PingPong> times{{.bytes = 4, .one_way_s = made.alpha_s}};
  for (const std::size_t words : {1000UL, 20'000UL, 4'000'000UL})
    times.push_back({.bytes = 4 * words, .one_way_s = made.alpha_s + made.beta_s * static_cast<double>(words)});
  const AlphaBeta found = fitted(times);
  CHECK(found.alpha_s == made.alpha_s);
  CHECK(found.beta_s == doctest::Approx(made.beta_s).epsilon(1e-9));
  CHECK_THROWS_AS(fitted(std::span(times).first(1)), std::logic_error);
}

TEST_CASE("ping-pong: small first, and ranks beyond the second have no part in it") {
  PostOffice office(3);
  std::vector<PingPong> times;
  run_peers(office, [&](LocalPeers& peers) {
    if (peers.rank() > 1) return;
    const auto own = ping_pong(peers, 1 - peers.rank(), peers.rank() == 0, 1);
    if (peers.rank() == 0) times = own;
  });
  CHECK(office.empty());
  REQUIRE(times.size() == 6);
  CHECK(times.front().bytes == 4);
  CHECK(std::ranges::is_sorted(times, {}, &PingPong::bytes));
  CHECK(office.traffic(0).bytes ==
        office.traffic(1).bytes + times.size());  // the leader says each time whether to go on
}

TEST_CASE("entries: k of them, ascending, the same for the same rank") {
  for (const std::size_t k : {1UL, 30UL, 70UL, 100UL}) {
    for (const SparseVector& v : {normal_entries(1, 0, 100, k), whole_entries(1, 0, 100, k)}) {
      CHECK(v.size() == k);
      CHECK(v.values.size() == k);
      CHECK(std::ranges::adjacent_find(v.indices, std::greater_equal<>()) == v.indices.end());
      CHECK(v.indices.back() < 100);
      CHECK(std::ranges::find(v.values, 0.0F) == v.values.end());
    }
    CHECK(whole_entries(1, 3, 100, k) == whole_entries(1, 3, 100, k));
    CHECK(whole_entries(1, 3, 100, k) != whole_entries(1, 4, 100, k));
  }
  for (const float value : whole_entries(1, 0, 1000, 500).values) CHECK(value == std::round(value));
}

TEST_CASE("the oracle agrees with the collectives' own sums and cuts") {
  const auto all = whole(5, 400, 60);
  SparseVector total = exact_sum(all);
  CHECK(total == sum(std::span<const SparseVector>(all)));
  const SparseVector largest = exact_largest(total, 60);
  Truncation().keep_largest(total, 60);
  CHECK(largest == total);
  const SparseVector ties{.indices = {1, 2, 5}, .values = {-3.0F, 3.0F, 4.0F}};
  CHECK(exact_largest(ties, 2) == SparseVector{.indices = {1, 5}, .values = {-3.0F, 4.0F}});
}

TEST_CASE("a wrong dense sum is found, with algorithm and rank") {
  const SparseVector expected{.indices = {1, 3}, .values = {2.0F, -1.0F}};
  std::vector<float> values{0.0F, 2.0F, 0.0F, -1.0F};
  CHECK(complaint([&] { require_dense("ring", 2, values, expected); }).empty());
  values[2] = 1.0F;
  const std::string text = complaint([&] { require_dense("ring", 2, values, expected); });
  CHECK(mentions(text, "ring on rank 2"));
  CHECK(mentions(text, "value 2 is 1"));
  CHECK_FALSE(complaint([&] { require_dense("ring", 2, std::span(values).first(2), expected); }).empty());
}

TEST_CASE("a wrong sparse sum is found, with algorithm and rank") {
  const SparseVector expected{.indices = {1, 3}, .values = {2.0F, -1.0F}};
  CHECK(complaint([&] { require_sparse("topk", 1, expected, expected); }).empty());
  for (const SparseVector& wrong :
       {SparseVector{.indices = {1, 3}, .values = {2.0F, 1.0F}},
        SparseVector{.indices = {1, 2}, .values = {2.0F, -1.0F}}, SparseVector{.indices = {1}, .values = {2.0F}},
        SparseVector{.indices = {1, 3, 4}, .values = {2.0F, -1.0F, 1.0F}}})
    CHECK(mentions(complaint([&] { require_sparse("topk", 1, wrong, expected); }), "topk on rank 1"));
}

TEST_CASE("what a truncating sum must keep: equality, k entries, mass, and exactness for two ranks") {
  for (const int ranks : {2, 4}) {
    const auto all = whole(ranks, 300, 50);
    const TruncatedSums right = cut_by_rank_0(all, 50);
    const auto found = [&](const TruncatedSums& got, std::size_t k = 50) {
      return complaint([&] { require_truncated("gtopk_tree", got, all, k); });
    };
    CHECK(found(right).empty());
    CHECK(mentions(found(right, 49), "50 entries, not 49"));
    TruncatedSums unequal = right;
    unequal.results.back().values.front() += 1.0F;
    CHECK(mentions(found(unequal), "gtopk_tree on rank " + std::to_string(ranks - 1)));
    TruncatedSums lost = right;
    lost.returned.front().indices.pop_back(), lost.returned.front().values.pop_back();
    CHECK(mentions(found(lost), "residuals"));
    // Nothing is lost where the result is cut to fewer, but it is not the exact one.
    CHECK(found(cut_by_rank_0(all, 40)).empty() == (ranks > 2));
  }
}

TEST_CASE("what is printed is at most 100 columns wide and hides nothing") {
  const std::string text = bench_text(example());
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(screen_width(line) <= 100, line);
  for (const char* words : {"4 ranks on 1 machine of 2 cores, Open MPI v4.1.4\n", "α  1.00 µs a message",
                            "1,000 values", "25,000,000 values", "2000", "400 kB", "target: at most 1.00 ms",
                            "2.00 times r += g", "4 ranks a machine share 2 cores"})
    CHECK_MESSAGE(mentions(text, words), words);
}

TEST_CASE("the JSON has the same numbers in seconds and bytes") {
  const auto json = nlohmann::json::parse(bench_json(example()));
  CHECK(json["ranks"] == 4);
  CHECK(json["beta_s_per_word"].get<double>() == doctest::Approx(1e-9));
  CHECK(json["collectives"][0]["density"].is_null());
  CHECK(json["collectives"][1]["measured_to_predicted"] == 2.0);
  CHECK(json["collectives"][1]["sent_bytes"] == 400'016);
  CHECK(json["selection"]["ratio"] == 2.0);
}

}  // namespace bench_test
