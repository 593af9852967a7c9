#include "runtime/data/sampler.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

namespace sampler_test {

using namespace hearsay;

namespace {

/// A share whose indices are not positions.
std::vector<std::uint32_t> share_of(std::size_t n) {
  std::vector<std::uint32_t> share(n);
  for (std::size_t i = 0; i < n; ++i) share[i] = static_cast<std::uint32_t>(3 * i + 5);
  return share;
}

std::vector<std::uint32_t> epoch_of(Sampler& sampler) {
  std::vector<std::uint32_t> drawn;
  for (std::int64_t k = 0; k < sampler.iterations_per_epoch(); ++k) {
    const auto batch = sampler.next();
    drawn.insert(drawn.end(), batch.begin(), batch.end());
  }
  return drawn;
}

/// Largest minus smallest number of times that an element of the share occurs.
std::size_t spread(const std::vector<std::uint32_t>& share, const std::vector<std::uint32_t>& drawn) {
  std::map<std::uint32_t, std::size_t> counts;
  for (const auto index : share) counts[index] = 0;
  for (const auto index : drawn) ++counts.at(index);
  const auto [low, high] = std::minmax_element(counts.begin(), counts.end(),
                                               [](const auto& a, const auto& b) { return a.second < b.second; });
  return high->second - low->second;
}

}  // namespace

TEST_CASE("even batches: as many as whole ones, with the same examples, and no two differ by more than one") {
  CHECK(rc::check("sizes", [] {
    const auto n = *rc::gen::inRange<std::size_t>(1, 40), samples = *rc::gen::inRange<std::size_t>(1, 60);
    const auto batch = *rc::gen::inRange<std::size_t>(1, 70);
    const bool shuffle = *rc::gen::arbitrary<bool>();
    Sampler whole(share_of(n), samples, batch, shuffle, 1);
    Sampler even(share_of(n), samples, batch, shuffle, 1, Batches::even);
    RC_ASSERT(even.iterations_per_epoch() == whole.iterations_per_epoch());
    for (int epoch = 0; epoch < 3; ++epoch) {
      const auto all = epoch_of(whole);
      std::vector<std::uint32_t> drawn;
      std::size_t least = batch, most = 0;
      for (std::int64_t k = 0; k < even.iterations_per_epoch(); ++k) {
        const auto next = even.next();
        drawn.insert(drawn.end(), next.begin(), next.end());
        least = std::min(least, next.size()), most = std::max(most, next.size());
      }
      RC_ASSERT(drawn == all);
      RC_ASSERT(most <= batch);
      RC_ASSERT(most - least <= 1U);
    }
  }));
}

TEST_CASE("an epoch has exactly its samples, in full batches but the last") {
  CHECK(rc::check("sizes", [] {
    const auto n = *rc::gen::inRange<std::size_t>(1, 40), samples = *rc::gen::inRange<std::size_t>(1, 60);
    const auto batch = *rc::gen::inRange<std::size_t>(1, 70);
    Sampler sampler(share_of(n), samples, batch, *rc::gen::arbitrary<bool>(), 1);
    RC_ASSERT(sampler.iterations_per_epoch() == static_cast<std::int64_t>((samples + batch - 1) / batch));
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::size_t left = samples;
      for (std::int64_t k = 0; k < sampler.iterations_per_epoch(); ++k) {
        const std::size_t size = sampler.next().size();
        RC_ASSERT(size == std::min(batch, left));
        left -= size;
      }
      RC_ASSERT(left == 0U);
    }
  }));
}

TEST_CASE("within every epoch, counts of the share's examples differ by at most one") {
  CHECK(rc::check("fair epochs", [] {
    const auto share = share_of(*rc::gen::inRange<std::size_t>(1, 40));
    Sampler sampler(share, *rc::gen::inRange<std::size_t>(1, 90), *rc::gen::inRange<std::size_t>(1, 20), true,
                    *rc::gen::arbitrary<std::uint64_t>());
    for (int epoch = 0; epoch < 6; ++epoch) RC_ASSERT(spread(share, epoch_of(sampler)) <= 1U);
  }));
}

TEST_CASE("short epochs: counts since the beginning differ by at most one") {
  CHECK(rc::check("fair passes", [] {
    const auto n = *rc::gen::inRange<std::size_t>(2, 40);
    const auto share = share_of(n);
    Sampler sampler(share, *rc::gen::inRange<std::size_t>(1, n), *rc::gen::inRange<std::size_t>(1, 20), true,
                    *rc::gen::arbitrary<std::uint64_t>());
    std::vector<std::uint32_t> all;
    for (int epoch = 0; epoch < 12; ++epoch) {
      const auto drawn = epoch_of(sampler);
      all.insert(all.end(), drawn.begin(), drawn.end());
      RC_ASSERT(spread(share, all) <= 1U);
    }
  }));
}

TEST_CASE("every epoch is another permutation, the same for the same seed, of every length") {
  for (const std::size_t samples : {60U, 100U, 130U}) {
    CAPTURE(samples);
    Sampler a(share_of(100), samples, 7, true, 1), b(share_of(100), samples, 7, true, 1);
    Sampler c(share_of(100), samples, 7, true, 2);
    std::vector<std::uint32_t> before;
    for (int epoch = 0; epoch < 5; ++epoch) {
      const auto drawn = epoch_of(a);
      CHECK(drawn == epoch_of(b));
      CHECK(drawn != epoch_of(c));
      CHECK(drawn != before);
      before = drawn;
    }
  }
}

TEST_CASE("every example is equally likely in every position of an epoch") {
  for (const std::size_t samples : {5U, 7U, 9U}) {
    CAPTURE(samples);
    constexpr int trials = 7000;
    std::vector<std::vector<int>> counts(samples, std::vector<int>(7));
    for (int trial = 0; trial < trials; ++trial) {
      Sampler sampler(share_of(7), samples, samples, true, static_cast<std::uint64_t>(trial));
      epoch_of(sampler);
      const auto second = epoch_of(sampler);
      for (std::size_t at = 0; at < samples; ++at) ++counts[at][(second[at] - 5) / 3];
    }
    for (const auto& position : counts)
      for (const int count : position) CHECK(std::abs(count - trials / 7) < 150);  // five standard deviations
  }
}

TEST_CASE("short epochs: examples left to the next epoch come at any position of it") {
  constexpr int trials = 5000;
  std::vector<int> counts(5);  // positions of the two left out of seven
  for (int trial = 0; trial < trials; ++trial) {
    Sampler sampler(share_of(7), 5, 2, true, static_cast<std::uint64_t>(trial));
    const auto first = epoch_of(sampler), second = epoch_of(sampler);
    for (std::size_t at = 0; at < 5; ++at)
      if (std::find(first.begin(), first.end(), second[at]) == first.end()) ++counts[at];
  }
  for (const int count : counts) CHECK(std::abs(count - 2 * trials / 5) < 175);  // five standard deviations
}

TEST_CASE(
    "short epochs: an example that ends one pass over the share is as likely as others to come early in the next") {
  // Three of seven: the pass ends with one example in epoch 3, which begins the next pass with two others; epoch 4 then
  // draws three of the remaining five, that one included.
  constexpr int trials = 5000;
  int again = 0;
  for (int trial = 0; trial < trials; ++trial) {
    Sampler sampler(share_of(7), 3, 3, true, static_cast<std::uint64_t>(trial));
    auto pass = epoch_of(sampler);
    const auto second = epoch_of(sampler), third = epoch_of(sampler), fourth = epoch_of(sampler);
    pass.insert(pass.end(), second.begin(), second.end());
    for (const auto index : third)
      if (std::find(pass.begin(), pass.end(), index) == pass.end())
        again += static_cast<int>(std::count(fourth.begin(), fourth.end(), index));
  }
  CHECK(std::abs(again - 3 * trials / 5) < 175);  // five standard deviations
}

TEST_CASE("without shuffle the share is run through in order, across epochs") {
  Sampler sampler({4, 8, 6}, 4, 3, false, 1);
  CHECK(epoch_of(sampler) == std::vector<std::uint32_t>{4, 8, 6, 4});
  CHECK(epoch_of(sampler) == std::vector<std::uint32_t>{8, 6, 4, 8});
  Sampler longer({4, 8, 6}, 2, 2, false, 1);
  CHECK(epoch_of(longer) == std::vector<std::uint32_t>{4, 8});
  CHECK(epoch_of(longer) == std::vector<std::uint32_t>{6, 4});
}

TEST_CASE("nothing to draw is a bug") {
  CHECK_THROWS_AS(Sampler({}, 1, 1, true, 1), std::logic_error);
  CHECK_THROWS_AS(Sampler({1}, 0, 1, true, 1), std::logic_error);
  CHECK_THROWS_AS(Sampler({1}, 1, 0, true, 1), std::logic_error);
}

}  // namespace sampler_test
