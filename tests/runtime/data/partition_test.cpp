#include "runtime/data/partition.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

#include "base/error.hpp"
#include "runtime/data/partitions/dirichlet.hpp"

namespace partition_test {

using namespace hearsay;

namespace {

using Shares = std::vector<std::vector<std::uint32_t>>;

std::unique_ptr<Partition> make(std::string_view name, const std::string& yaml = "{}") {
  Config config = Config::from_text(yaml);
  const auto table = partitions();
  auto partition =
      std::find_if(table.begin(), table.end(), [&](const auto& entry) { return entry.name == name; })->make(config);
  config.document().throw_if_invalid();
  return partition;
}

Shares split(const Partition& partition, std::span<const std::uint8_t> labels, int ranks, std::uint64_t seed = 1) {
  Random random(seed);
  return partition.split({.size = labels.size(), .groups = {labels.begin(), labels.end()}, .count = 10}, ranks, random);
}

/// Every index once, sorted: what all shares together must be.
bool covers(const Shares& shares, std::size_t n) {
  std::vector<std::uint32_t> all;
  for (const auto& share : shares) all.insert(all.end(), share.begin(), share.end());
  std::sort(all.begin(), all.end());
  return all == file_order(n);
}

std::pair<std::size_t, std::size_t> smallest_and_largest(const Shares& shares) {
  const auto [low, high] = std::minmax_element(shares.begin(), shares.end(),
                                               [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return {low->size(), high->size()};
}

std::vector<std::uint8_t> any_labels(std::size_t at_least) {
  const auto extra = *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange<std::uint8_t>(0, 10));
  const auto base = *rc::gen::container<std::vector<std::uint8_t>>(at_least, rc::gen::inRange<std::uint8_t>(0, 10));
  auto labels = base;
  labels.insert(labels.end(), extra.begin(), extra.end());
  return labels;
}

std::vector<std::uint8_t> balanced_labels(std::size_t n) {
  std::vector<std::uint8_t> labels(n);
  for (std::size_t i = 0; i < n; ++i) labels[i] = static_cast<std::uint8_t>(i % 10);
  return labels;
}

std::size_t classes_of(const std::vector<std::uint32_t>& share, std::span<const std::uint8_t> labels) {
  std::set<int> classes;
  for (const auto i : share) classes.insert(labels[i]);
  return classes.size();
}

}  // namespace

TEST_CASE("every partition: each index exactly once, no empty share, the same again for the same seed") {
  for (const auto& entry : partitions()) {
    CAPTURE(entry.name);
    const auto partition = make(entry.name);
    CHECK(rc::check(std::string(entry.name) + " covers", [&] {
      const int ranks = *rc::gen::inRange(1, 20);
      const auto labels = any_labels(static_cast<std::size_t>(ranks));
      const auto seed = *rc::gen::arbitrary<std::uint64_t>();
      const auto shares = split(*partition, labels, ranks, seed);
      RC_ASSERT(shares.size() == static_cast<std::size_t>(ranks));
      RC_ASSERT(covers(shares, labels.size()));
      RC_ASSERT(smallest_and_largest(shares).first >= 1U);
      RC_ASSERT(split(*partition, labels, ranks, seed) == shares);
    }));
    CHECK_THROWS_AS(split(*partition, balanced_labels(3), 4), ConfigError);
    CHECK(split(*partition, balanced_labels(30), 1).front().size() == 30);
  }
}

TEST_CASE("iid, contiguous, shards: sizes differ by at most one, with any number of shards a rank") {
  CHECK(rc::check("sizes", [] {
    const int ranks = *rc::gen::inRange(1, 12);
    const int per_rank = *rc::gen::inRange(1, 6);
    const auto labels = any_labels(static_cast<std::size_t>(ranks * per_rank));
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto shards = make("shards", "{shards_per_rank: " + std::to_string(per_rank) + "}");
    const auto iid = make("iid"), contiguous = make("contiguous");
    for (const Partition* partition : {shards.get(), iid.get(), contiguous.get()}) {
      const auto shares = split(*partition, labels, ranks, seed);
      RC_ASSERT(covers(shares, labels.size()));
      const auto [low, high] = smallest_and_largest(shares);
      RC_ASSERT(high - low <= 1U);
    }
  }));
}

TEST_CASE("contiguous keeps the file's order") {
  const auto shares = split(*make("contiguous"), balanced_labels(11), 3);
  CHECK(shares == Shares{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10}});
}

TEST_CASE("iid: every class is at every rank, in its share of the data to five standard deviations") {
  const auto labels = balanced_labels(8000);
  for (const auto& share : split(*make("iid"), labels, 8)) {
    std::vector<double> counts(10);
    for (const auto i : share) ++counts[labels[i]];
    for (const double count : counts) CHECK(std::abs(count - 100.0) < 50.0);
  }
  CHECK(split(*make("iid"), labels, 8, 1) != split(*make("iid"), labels, 8, 2));
}

TEST_CASE("shards: one shard a rank is a piece of the label-sorted data, in rank order") {
  const std::vector<std::uint8_t> labels{3, 1, 3, 0, 1, 9};
  CHECK(split(*make("shards"), labels, 3) == Shares{{3, 1}, {4, 0}, {2, 5}});
  const auto many = balanced_labels(1000);
  for (const auto& share : split(*make("shards"), many, 10)) CHECK(classes_of(share, many) == 1);
  for (const auto& share : split(*make("shards"), many, 4)) CHECK(classes_of(share, many) <= 3);
}

TEST_CASE("shards: s of P·s shards give a rank at most s classes where classes are whole shards; dealt by the seed") {
  const auto labels = balanced_labels(1000);  // 20 shards of 50, two a class
  const auto two = make("shards", "{shards_per_rank: 2}");
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const auto& share : split(*two, labels, 10, seed)) CHECK(classes_of(share, labels) <= 2);
  CHECK(split(*two, labels, 10, 1) != split(*two, labels, 10, 2));
  CHECK_THROWS_AS(split(*make("shards", "{shards_per_rank: 6}"), balanced_labels(11), 2), ConfigError);
}

TEST_CASE("dirichlet: a large alpha is nearly iid, a small one gives every class to one rank") {
  const auto labels = balanced_labels(10000);
  for (const auto& share : split(*make("dirichlet", "{alpha: 1000000}"), labels, 4)) {
    CHECK(std::abs(static_cast<double>(share.size()) - 2500.0) < 50.0);
    CHECK(classes_of(share, labels) == 10);
  }
  std::size_t held = 0;
  for (const auto& share : split(*make("dirichlet", "{alpha: 0.000001}"), labels, 4)) held += classes_of(share, labels);
  CHECK(held >= 10);
  CHECK(held <= 13);  // at most P − 1 ranks got one foreign example because they were empty
  for (const char* alpha : {"0", "-1", "1e7", ".nan"})
    CHECK_THROWS_AS(make("dirichlet", std::string("{alpha: ") + alpha + "}"), ConfigError);
}

TEST_CASE("dirichlet: proportions sum to one and have the distribution's mean and variance") {
  for (const double alpha : {0.1, 0.5, 1.0, 3.0}) {
    CAPTURE(alpha);
    constexpr int n = 4, draws = 40000;
    Random random(11);
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < draws; ++i) {
      const auto p = dirichlet(alpha, n, random);
      REQUIRE(std::accumulate(p.begin(), p.end(), 0.0) == doctest::Approx(1.0));
      REQUIRE(*std::min_element(p.begin(), p.end()) >= 0.0);
      sum += p[1];
      squares += p[1] * p[1];
    }
    const double mean = sum / draws, variance = squares / draws - mean * mean;
    CHECK(mean == doctest::Approx(0.25).epsilon(0.03));
    CHECK(variance == doctest::Approx(0.25 * 0.75 / (n * alpha + 1.0)).epsilon(0.03));
  }
}

TEST_CASE("gamma draws: mean and variance are alpha, the mean of the logarithm is digamma") {
  struct Known {
    double alpha, digamma;
  };
  for (const auto& [alpha, digamma] : {Known{0.5, -1.9635100}, Known{1.0, -0.5772157}, Known{4.0, 1.2561177}}) {
    CAPTURE(alpha);
    constexpr int draws = 100000;
    Random random(5);
    double logs = 0.0, sum = 0.0, squares = 0.0;
    for (int i = 0; i < draws; ++i) {
      const double log_g = log_gamma_draw(alpha, random), g = std::exp(log_g);
      logs += log_g;
      sum += g;
      squares += g * g;
    }
    const double mean = sum / draws;
    CHECK(std::abs(logs / draws - digamma) < 0.03);
    CHECK(mean == doctest::Approx(alpha).epsilon(0.02));
    CHECK(squares / draws - mean * mean == doctest::Approx(alpha).epsilon(0.05));
  }
}

TEST_CASE("examples without groups are dealt by those partitions that need none; the others say which") {
  const GroupedExamples ungrouped{.size = 12};
  for (const PartitionEntry& entry : partitions()) {
    CAPTURE(entry.name);
    Random random(1);
    const auto partition = make(entry.name);
    if (entry.name == "iid" || entry.name == "contiguous") {
      CHECK(covers(partition->split(ungrouped, 5, random), 12));
      continue;
    }
    try {
      static_cast<void>(partition->split(ungrouped, 5, random));
      FAIL("was dealt");
    } catch (const ConfigError& error) {
      CHECK(std::string(error.what()).find("use iid or contiguous") != std::string::npos);
    }
  }
}

TEST_CASE("a label that is no class is a bug") {
  const std::vector<std::uint8_t> labels{0, 10, 1};
  CHECK_THROWS_AS(split(*make("shards"), labels, 2), std::logic_error);
  CHECK_THROWS_AS(split(*make("dirichlet"), labels, 2), std::logic_error);
}

}  // namespace partition_test
