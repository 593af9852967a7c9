// gTopKAllReduce: mass, equality on all members, exactness where theory promises it, bytes. Small integers stored as
// floats make every sum exact.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "runtime/collectives/gtopk.hpp"
#include "tests/runtime/collectives/support.hpp"
#include "tests/support/local_peers.hpp"

namespace gtopk_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

constexpr int worlds[]{1, 2, 3, 4, 5, 6, 7, 8, 12, 16};
constexpr std::size_t n = 60;

using Collective = GTopKResult (*)(const Group&, const SparseVector&, const SparseWire&, const GTopKOptions&);
struct Merge {
  const char* name;
  Collective run;
};
constexpr Merge merges[]{{"tree", gtopk_tree}, {"butterfly", gtopk_butterfly}};

struct Outcome {
  std::vector<GTopKResult> members;
  std::vector<Traffic> traffic;
};

Outcome run(Collective collective, const std::vector<SparseVector>& own, const Codec& codec,
            const GTopKOptions& options) {
  const auto ranks = static_cast<int>(own.size());
  Outcome outcome;
  outcome.members.resize(own.size());
  PostOffice office(ranks);
  run_peers(office, [&](LocalPeers& peers) {
    const auto me = static_cast<std::size_t>(peers.rank());
    outcome.members[me] = collective(Group(peers), own[me], SparseWire(codec, n, {}), options);
  });
  CHECK(office.empty());
  for (int r = 0; r < ranks; ++r) outcome.traffic.push_back(office.traffic(r));
  return outcome;
}

/// Every rank's top-k of something: k entries each.
std::vector<SparseVector> contributions(Random& random, int ranks, std::size_t k, int limit = 20) {
  std::vector<SparseVector> own;
  for (int r = 0; r < ranks; ++r) own.push_back(random_vector(random, n, k, limit));
  return own;
}

SparseVector total(const std::vector<SparseVector>& vectors) { return sum(std::span<const SparseVector>(vectors)); }

SparseVector exact(const std::vector<SparseVector>& own, std::size_t k) {
  SparseVector all = total(own);
  Truncation().keep_largest(all, k);
  return all;
}

std::vector<SparseVector> returned(const Outcome& outcome) {
  std::vector<SparseVector> all;
  for (const GTopKResult& member : outcome.members) all.push_back(member.returned);
  return all;
}

void check_same_and_well_formed(const Outcome& outcome, std::size_t k) {
  for (const GTopKResult& member : outcome.members) {
    REQUIRE(member.result == outcome.members[0].result);
    REQUIRE(member.result.size() <= k);
    REQUIRE(canonical(member.result));
    REQUIRE(canonical(member.returned));
  }
}

/// Σ v: what is kept of a value that was rounded up and then cut off is negative.
double signed_mass(const SparseVector& v) { return std::accumulate(v.values.begin(), v.values.end(), 0.0); }

/// Lost mass is what is said, and `merge` loses some.
void check_published(const Merge& merge, const Codec& codec) {
  double lost_ever = 0.0;
  for (const int ranks : worlds) {
    CAPTURE(ranks);
    Random random(static_cast<std::uint64_t>(ranks) + 100);
    for (int round = 0; round < 20; ++round) {
      auto own = contributions(random, ranks, 6);
      for (SparseVector& v : own)
        for (float& value : v.values) value = std::abs(value);  // so that masses add up
      const Outcome outcome = run(merge.run, own, codec, {.k = 6, .rule = ResidualRule::published});
      check_same_and_well_formed(outcome, 6);
      double lost = 0.0;
      for (const GTopKResult& member : outcome.members) lost += member.lost_mass;
      const SparseVector kept = sum(outcome.members[0].result, total(returned(outcome)));
      CHECK(signed_mass(total(own)) - signed_mass(kept) == lost);
      if (ranks <= 2) CHECK(lost == 0.0);
      lost_ever += lost;
    }
  }
  CHECK(lost_ever > 0.0);
}

}  // namespace

TEST_CASE("nothing is lost: result + what is returned = what was put in, but for the published rule") {
  const Codec codec = codec_of("plain", "none");
  for (const Merge& merge : merges) {
    for (const int ranks : worlds) {
      for (const ResidualRule rule : {ResidualRule::merger, ResidualRule::owner}) {
        CAPTURE(merge.name);
        CAPTURE(ranks);
        Random random(static_cast<std::uint64_t>(ranks));
        for (int round = 0; round < 20; ++round) {
          const std::size_t k = 1 + random.below(12);
          const auto own = contributions(random, ranks, k, round % 2 == 0 ? 3 : 20);  // few values: ties, cancellation
          const Outcome outcome = run(merge.run, own, codec, {.k = k, .rule = rule});
          check_same_and_well_formed(outcome, k);
          REQUIRE(sum(outcome.members[0].result, total(returned(outcome))) == total(own));
          for (const GTopKResult& member : outcome.members) REQUIRE(member.lost_mass == 0.0);
        }
      }
    }
  }
}

TEST_CASE("the published rule loses exactly what it says, rounded values or not") {
  for (const Merge& merge : merges) {
    for (const char* quantiser : {"none", "fp16", "int8", "two_bit", "one_bit"}) {
      CAPTURE(merge.name);
      CAPTURE(quantiser);
      check_published(merge, codec_of("plain", quantiser));
    }
  }
}

TEST_CASE("the smallest case in which the published rule loses a value") {
  const Codec codec = codec_of("plain", "none");
  // round 1: (a:3, b:2) keeps a; (b:2.5, b:2) keeps b:4.5; at the end b:4.5 wins, and rank 1's b:2 is gone.
  const std::vector<SparseVector> own{{{0}, {3.0F}}, {{1}, {2.0F}}, {{1}, {2.5F}}, {{1}, {2.0F}}};
  for (const Merge& merge : merges) {
    CAPTURE(merge.name);
    const Outcome published = run(merge.run, own, codec, {.k = 1, .rule = ResidualRule::published});
    CHECK(published.members[0].result == SparseVector{{1}, {4.5F}});
    CHECK(total(returned(published)) == SparseVector{{0}, {3.0F}});
    const Outcome owner = run(merge.run, own, codec, {.k = 1, .rule = ResidualRule::owner});
    CHECK(owner.members[0].returned == SparseVector{{0}, {3.0F}});
    CHECK(owner.members[1].returned == SparseVector{{1}, {2.0F}});
    CHECK(owner.members[1].included.empty());
    CHECK(owner.members[2].included == own[2]);
    const Outcome merger = run(merge.run, own, codec, {.k = 1, .rule = ResidualRule::merger});
    CHECK(total(returned(merger)) == SparseVector{{0, 1}, {3.0F, 2.0F}});
  }
}

TEST_CASE("exact where theory says so") {
  const Codec codec = codec_of("plain", "none");
  Random random(9);
  for (const Merge& merge : merges) {
    for (const int ranks : worlds) {
      CAPTURE(merge.name);
      CAPTURE(ranks);
      const auto same = [&](const std::vector<SparseVector>& own, std::size_t k) {
        return run(merge.run, own, codec, {.k = k}).members[0].result == exact(own, k);
      };
      if (ranks <= 2) CHECK(same(contributions(random, ranks, 8), 8));
      CHECK(same(contributions(random, ranks, 8), n));  // nothing is cut off
      std::vector<SparseVector> identical(static_cast<std::size_t>(ranks), random_vector(random, n, 5));
      CHECK(same(identical, 5));
      std::vector<SparseVector> disjoint(static_cast<std::size_t>(ranks));
      for (std::uint32_t i = 0; i < n; ++i)
        disjoint[i % static_cast<std::uint32_t>(ranks)].push_back(i, static_cast<float>((i * 7) % n + 1));
      for (SparseVector& v : disjoint) Truncation().keep_largest(v, 3);
      CHECK(same(disjoint, 3));
    }
  }
}

TEST_CASE("the deviation from the exact top-k that theory predicts") {
  const Codec codec = codec_of("plain", "none");
  // a:3 b:2 b:2 c:1, k = 1: the tree finds a:3, the exact answer is b:4.
  const std::vector<SparseVector> own{{{0}, {3.0F}}, {{1}, {2.0F}}, {{1}, {2.0F}}, {{2}, {1.0F}}};
  for (const Merge& merge : merges)
    CHECK(run(merge.run, own, codec, {.k = 1}).members[0].result == SparseVector{{0}, {3.0F}});
  CHECK(exact(own, 1) == SparseVector{{1}, {4.0F}});
}

TEST_CASE("tree and butterfly agree for powers of two") {
  const Codec codec = codec_of("plain", "none");
  for (const int ranks : {1, 2, 4, 8, 16}) {
    CHECK(rc::check("tree = butterfly", [&](std::uint64_t seed) {
      Random random(seed);
      const auto own = contributions(random, ranks, 5);
      RC_ASSERT(run(gtopk_tree, own, codec, {.k = 5}).members[0].result ==
                run(gtopk_butterfly, own, codec, {.k = 5}).members[0].result);
    }));
  }
}

TEST_CASE("for powers of two the published rule loses the same along the tree and the butterfly, whatever the signs") {
  const Codec codec = codec_of("plain", "none");
  for (const int ranks : {2, 4, 8, 16}) {
    CAPTURE(ranks);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Random random(seed);
      const auto own = contributions(random, ranks, 6);
      const auto lost = [&](Collective collective) {
        double sum = 0.0;
        for (const auto& m : run(collective, own, codec, {.k = 6, .rule = ResidualRule::published}).members)
          sum += m.lost_mass;
        return sum;
      };
      CHECK(lost(gtopk_tree) == lost(gtopk_butterfly));
    }
  }
}

TEST_CASE("messages and bytes are those of the cost formula") {
  const Codec codec = codec_of("plain", "none");
  constexpr std::size_t k = 5;
  constexpr std::uint64_t message = 8 + 8 * k;  // header; 4-byte values and positions
  for (const int ranks : worlds) {
    CAPTURE(ranks);
    Random random(7);
    // Supports of k positions each: every merge has at least k entries, so every message is full.
    const auto own = contributions(random, ranks, k);
    const auto p = static_cast<unsigned>(ranks);
    const auto rounds = static_cast<std::uint64_t>(std::bit_width(p - 1));  // ⌈log2 P⌉
    const Outcome tree = run(gtopk_tree, own, codec, {.k = k});
    CHECK(tree.traffic[0].messages == rounds);
    CHECK(tree.traffic[0].bytes == rounds * message);
    std::uint64_t all = 0;
    for (const Traffic& traffic : tree.traffic) all += traffic.bytes;
    CHECK(all == 2 * (p - 1) * message);
    const Outcome butterfly = run(gtopk_butterfly, own, codec, {.k = k});
    const unsigned core = std::bit_floor(p);
    for (unsigned r = 0; r < p; ++r) {
      const std::uint64_t expected = r >= core ? 1 : std::bit_width(core) - 1U + (r + core < p ? 1U : 0U);
      CHECK(butterfly.traffic[r].messages == expected);
      CHECK(butterfly.traffic[r].bytes == expected * message);
    }
    const Outcome owner = run(gtopk_tree, own, codec, {.k = k, .rule = ResidualRule::owner});
    CHECK(owner.traffic[0].bytes == rounds * (message + 1));  // and k bits back
  }
}

TEST_CASE("with rounded values replicas agree and nothing is lost") {
  for (const char* quantiser : {"fp16", "int8", "two_bit", "one_bit"}) {
    const Codec codec = codec_of("delta", quantiser);
    for (const Merge& merge : merges) {
      for (const int ranks : worlds) {
        CAPTURE(quantiser);
        CAPTURE(merge.name);
        CAPTURE(ranks);
        Random random(static_cast<std::uint64_t>(ranks));
        const auto own = contributions(random, ranks, 7);
        const Outcome outcome = run(merge.run, own, codec, {.k = 7, .rule = ResidualRule::merger});
        check_same_and_well_formed(outcome, 7);
        CHECK(sum(outcome.members[0].result, total(returned(outcome))) == total(own));
      }
    }
  }
}

TEST_CASE("sums of rounded values have no owner") {
  const Codec codec = codec_of("plain", "int8");
  CHECK_THROWS_AS(run(gtopk_tree, {{{0}, {1.0F}}}, codec, {.k = 1, .rule = ResidualRule::owner}), std::logic_error);
}

}  // namespace gtopk_test
