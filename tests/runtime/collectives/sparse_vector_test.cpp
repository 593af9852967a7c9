// Sparse vectors against dense arithmetic; integers stored as floats.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <numeric>

#include "base/random.hpp"
#include "tests/runtime/collectives/support.hpp"

namespace sparse_vector_test {

using namespace hearsay;
using namespace hearsay::test;

TEST_CASE("sums and differences are those of the dense vectors, in canonical form") {
  CHECK(rc::check("sum, difference", [](std::uint64_t seed) {
    Random random(seed);
    const std::size_t n = 1 + random.below(40);
    const SparseVector a = random_vector(random, n, random.below(n + 1));
    const SparseVector b = random_vector(random, n, random.below(n + 1));
    std::vector<float> plus = dense(a, n), minus = dense(a, n);
    const std::vector<float> other = dense(b, n);
    for (std::size_t i = 0; i < n; ++i) plus[i] += other[i], minus[i] -= other[i];
    RC_ASSERT(dense(sum(a, b), n) == plus);
    RC_ASSERT(dense(difference(a, b), n) == minus);
    RC_ASSERT(canonical(sum(a, b)));
    RC_ASSERT(canonical(difference(a, b)));
    RC_ASSERT(difference(a, a).empty());
  }));
}

TEST_CASE("the sum of many is the sum of all") {
  Random random(3);
  std::vector<SparseVector> vectors;
  std::vector<float> expected(30);
  CHECK(sum(std::span<const SparseVector>(vectors)).empty());
  for (int count = 1; count < 9; ++count) {
    vectors.push_back(random_vector(random, 30, 7));
    add_to(expected, vectors.back());
    CHECK(dense(sum(std::span<const SparseVector>(vectors)), 30) == expected);
  }
}

TEST_CASE("a vector is what lies on chosen positions and what does not") {
  Random random(4);
  const SparseVector a = random_vector(random, 50, 20);
  const SparseVector chosen = random_vector(random, 50, 25);
  const SparseVector on = restricted(a, chosen.indices), off = without(a, chosen.indices);
  CHECK(sum(on, off) == a);
  for (const std::uint32_t i : on.indices) CHECK(std::ranges::binary_search(chosen.indices, i));
  for (const std::uint32_t i : off.indices) CHECK_FALSE(std::ranges::binary_search(chosen.indices, i));
  CHECK(mass(on) + mass(off) == mass(a));
}

TEST_CASE("cutting keeps the largest, ties by lower position, and returns the rest") {
  Truncation truncation;
  CHECK(rc::check("keep_largest", [&](std::uint64_t seed) {
    Random random(seed);
    const SparseVector before = random_vector(random, 60, random.below(61));
    const std::size_t k = random.below(70);
    SparseVector kept = before;
    const SparseVector dropped = truncation.keep_largest(kept, k);
    RC_ASSERT(kept.size() == std::min(k, before.size()));
    RC_ASSERT(sum(kept, dropped) == before);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      for (std::size_t j = 0; j < dropped.size(); ++j) {
        const float large = std::abs(kept.values[i]), small = std::abs(dropped.values[j]);
        RC_ASSERT(large > small || (large == small && kept.indices[i] < dropped.indices[j]));
      }
    }
  }));
}

TEST_CASE("a wire's message is exact, or says what it rounded off, and can be passed on") {
  for (const char* quantiser : {"none", "fp16", "int8", "two_bit", "one_bit"}) {
    CAPTURE(quantiser);
    const Codec codec = codec_of("plain", quantiser);
    const SparseWire wire(codec, 100, {});
    Random random(5);
    for (const std::size_t count : {0U, 1U, 2U, 30U, 100U}) {
      const SparseVector v = random_vector(random, 100, count);
      const SparseWire::Sent sent = wire.prepare(v);
      CHECK(sent.message.bytes.size() <= wire.bound(count));
      CHECK(wire.decode(sent.message.bytes) == sent.received);
      CHECK(canonical(sent.received));
      CHECK(sent.rest == difference(v, sent.received));
      if (wire.exact()) CHECK(sent.received == v);
      const auto [read, forwarded] = wire.receive(sent.message.bytes);
      CHECK(read == sent.received);
      CHECK(forwarded.bytes == sent.message.bytes);
      CHECK(forwarded.payload_bytes == sent.message.payload_bytes);
      CHECK(forwarded.index_bytes == sent.message.index_bytes);
    }
  }
}

}  // namespace sparse_vector_test
