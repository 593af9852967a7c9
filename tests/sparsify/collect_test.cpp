// The streaming passes of selection: the same entries with and without AVX2, and those that a plain loop finds.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <limits>

#include "sparsify/magnitude.hpp"
#include "sparsify/search/candidates.hpp"
#include "sparsify/search/collect.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::collect_test {
namespace {

using namespace test;

/// Entries in arrays that end where the slack ends, so that a sanitizer sees what goes beyond.
struct Entries {
  std::vector<std::uint32_t> positions;
  std::vector<std::int32_t> magnitudes;
  EntryRoom room;
  std::size_t count = 0;

  explicit Entries(std::size_t capacity)
      : positions(capacity + EntryRoom::slack),
        magnitudes(capacity + EntryRoom::slack),
        room{positions.data(), magnitudes.data(), capacity} {}
  void keep(std::size_t stored) {
    count = stored;
    positions.resize(std::min(count, room.capacity));
    magnitudes.resize(std::min(count, room.capacity));
  }
  bool operator==(const Entries& other) const {
    if (count > room.capacity || other.count > other.room.capacity)
      return count > room.capacity && other.count > other.room.capacity;
    return positions == other.positions && magnitudes == other.magnitudes;
  }
};

Entries by_hand(std::span<const float> values, std::int32_t least) {
  Entries expected(0);
  expected.keep(0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (magnitude_bits(values[i]) < least) continue;
    expected.positions.push_back(static_cast<std::uint32_t>(i));
    expected.magnitudes.push_back(magnitude_bits(values[i]));
  }
  expected.room.capacity = expected.count = expected.positions.size();
  return expected;
}

/// A run of values with sudden large ones, and now and then one that is not finite.
std::vector<float> rough_values(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<float> values = normal_values(seed, n);
  for (float& value : values) {
    if (random.below(50) == 0) value *= 100.0F;
    if (random.below(500) == 0) value = std::numeric_limits<float>::quiet_NaN();
  }
  return values;
}

TEST_CASE("collecting finds the entries that a plain loop finds, with and without AVX2") {
  CHECK(rc::check([](std::uint64_t seed) {
    const std::size_t n = *rc::gen::element<std::size_t>(0, 1, 7, 31, 32, 33, 63, 64, 65, 200, 1000, 4099);
    const float least = *rc::gen::element(0.0F, 1e-3F, 0.5F, 3.0F, 1e30F);
    const std::vector<float> values = rough_values(seed, n);
    const Entries expected = by_hand(values, magnitude_bits(least));
    const std::size_t capacity = *rc::gen::element(n, expected.count, expected.count / 2);
    Entries found(capacity), plainly(capacity);
    found.keep(collect(values, magnitude_bits(least), found.room));
    plainly.keep(portable::collect(values, magnitude_bits(least), plainly.room));
    RC_ASSERT((found.count > capacity) == (expected.count > capacity));
    RC_ASSERT((plainly.count > capacity) == (expected.count > capacity));
    if (expected.count > capacity) return;
    RC_ASSERT(found == expected);
    RC_ASSERT(plainly == expected);
  }));
}

TEST_CASE("adding and collecting adds everything, also when the entries do not fit") {
  CHECK(rc::check([](std::uint64_t seed) {
    const std::size_t n = *rc::gen::element<std::size_t>(0, 1, 31, 32, 33, 65, 1000, 4099);
    const std::size_t capacity = *rc::gen::element<std::size_t>(0, 10, n);
    const std::vector<float> addend = normal_values(seed + 1, n);
    std::vector<float> sums = normal_values(seed, n), same = sums, expected = sums;
    for (std::size_t i = 0; i < n; ++i) expected[i] += 0.3F * addend[i];
    Entries found(capacity), plainly(capacity);
    found.keep(add_and_collect(sums, addend, 0.3F, magnitude_bits(0.7F), found.room));
    plainly.keep(portable::add_and_collect(same, addend, 0.3F, magnitude_bits(0.7F), plainly.room));
    RC_ASSERT(sums == expected);
    RC_ASSERT(same == expected);
    RC_ASSERT(found == plainly);
    const Entries wanted = by_hand(expected, magnitude_bits(0.7F));
    RC_ASSERT((found.count > capacity) == (wanted.count > capacity));
    if (found.count <= capacity) RC_ASSERT(found == wanted);
  }));
}

TEST_CASE("keeping from a magnitude on is collecting from it on") {
  CHECK(rc::check([](std::uint64_t seed) {
    const std::size_t n = *rc::gen::element<std::size_t>(0, 1, 7, 8, 9, 31, 64, 1003);
    const std::vector<float> values = rough_values(seed, n);
    Entries all(n), same(n);
    const std::size_t count = collect(values, magnitude_bits(0.2F), all.room);
    collect(values, magnitude_bits(0.2F), same.room);
    const Entries expected = by_hand(values, magnitude_bits(1.0F));
    all.keep(keep_from(magnitude_bits(1.0F), all.room, count));
    same.keep(portable::keep_from(magnitude_bits(1.0F), same.room, count));
    RC_ASSERT(all == expected);
    RC_ASSERT(same == expected);
  }));
}

TEST_CASE("what is rare is found by its place") {
  CHECK(rc::check([](std::uint64_t seed) {
    const std::size_t n = *rc::gen::element<std::size_t>(0, 1, 63, 64, 65, 1000);
    Random random(seed);
    std::vector<std::int32_t> magnitudes(n);
    std::vector<std::uint32_t> expected, found{7, 7, 7};
    for (std::size_t i = 0; i < n; ++i) {
      magnitudes[i] = random.below(40) == 0 ? 3 : 1000;
      if (magnitudes[i] < 1000) expected.push_back(static_cast<std::uint32_t>(i));
    }
    find_below(1000, magnitudes, found);
    RC_ASSERT(found == expected);
  }));
}

TEST_CASE("candidates are cut to the k largest, ties by position, and tell a level that enough of them reach") {
  CHECK(rc::check([](std::uint64_t seed) {
    const std::size_t n = *rc::gen::element<std::size_t>(2, 100, 600, 4097, 20000);
    std::vector<float> values = normal_values(seed, n);
    if (*rc::gen::arbitrary<bool>())  // many equal magnitudes
      for (float& value : values) value = std::round(4.0F * value) / 4.0F;
    Candidates candidates;
    RC_ASSERT(candidates.collect(values, magnitude_bits(0.1F), n));
    const std::size_t size = candidates.size();
    if (size == 0) return;
    Random random(seed);
    const std::size_t k = 1 + random.below(size), wanted = k + random.below(size - k + 1);
    const Cut cut = candidates.keep_largest(k, wanted);
    const Indices expected = largest(values, k);
    RC_ASSERT(Indices(candidates.positions().begin(), candidates.positions().end()) == expected);
    std::int32_t kth = cut.largest;
    for (const std::uint32_t i : expected) kth = std::min(kth, magnitude_bits(values[i]));
    RC_ASSERT(cut.kth == kth);
    RC_ASSERT(by_hand(values, cut.level).count >= wanted);
    RC_ASSERT(cut.level <= cut.kth);
  }));
}

}  // namespace
}  // namespace hearsay::collect_test
