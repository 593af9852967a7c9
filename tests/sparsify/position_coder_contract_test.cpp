// Laws that every position coder keeps, and the bytes of each.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <set>
#include <stdexcept>

#include "base/error.hpp"
#include "tests/sparsify/bytes.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::position_coder_contract_test {
namespace {

using namespace test;

std::unique_ptr<PositionCoder> made(const std::string& name) {
  Config config = Config::from_text("name: " + name);
  auto coder = chosen_entry(position_coders(), config, "plain", "how positions are written").make(config);
  config.document().throw_if_invalid();
  return coder;
}
std::unique_ptr<PositionCoder> made(const PositionCoderEntry& entry) { return made(std::string(entry.name)); }

Bytes encoded(const PositionCoder& coder, const Indices& indices, std::size_t n) {
  return written(coder.bytes(indices, n), [&](auto out) { return coder.encode(indices, n, out); });
}

/// Decodes all of `bytes`.
Indices decoded(const PositionCoder& coder, const Bytes& bytes, std::size_t count, std::size_t n) {
  Indices indices{7, 7, 7};  // what was there before must go
  const std::size_t used = coder.decode(bytes, count, n, indices);
  REQUIRE(used == bytes.size());
  return indices;
}

void check_round_trip(const PositionCoder& coder, const Indices& indices, std::size_t n) {
  const Bytes bytes = encoded(coder, indices, n);
  REQUIRE(bytes.size() == coder.bytes(indices, n));
  REQUIRE(bytes.size() <= coder.bound(indices.size(), n));
  REQUIRE(decoded(coder, bytes, indices.size(), n) == indices);
  Bytes longer = bytes;
  longer.push_back(std::byte{0xff});  // the values follow
  Indices again;
  REQUIRE(coder.decode(longer, indices.size(), n, again) == bytes.size());
  REQUIRE(again == indices);
}

constexpr std::size_t sizes[]{0, 1, 2, 3, 7, 8, 9, 100, 1001};

TEST_CASE("every position coder says what it is, under a name of its own, and builds from that name") {
  std::set<std::string_view> names;
  for (const PositionCoderEntry& entry : position_coders()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    for (const auto text : {entry.name, entry.summary, entry.equation, entry.cost, entry.citation})
      CHECK_FALSE(text.empty());
    CHECK_NOTHROW(made(entry));
  }
  CHECK(names.size() >= 4);
}

TEST_CASE("positions come back as they were, within the bound, whatever follows them") {
  for (const PositionCoderEntry& entry : position_coders()) {
    CAPTURE(entry.name);
    const auto coder = made(entry);
    for (const std::size_t n : sizes) {
      for (std::size_t k = 0; k <= n; ++k) {
        check_round_trip(*coder, random_positions(n + k, k, n), n);
        check_round_trip(*coder, random_positions(n + k, k, n, true), n);
        if (k > 0) REQUIRE(coder->bound(k - 1, n) <= coder->bound(k, n));
      }
    }
    check_round_trip(*coder, random_positions(1, 1000, 1000000), 1000000);
    check_round_trip(*coder, random_positions(2, 100000, 1000000), 1000000);
    check_round_trip(*coder, random_positions(3, 5, 1000000), 1000000);
  }
}

TEST_CASE("bytes that are no encoding are refused, never believed") {
  for (const PositionCoderEntry& entry : position_coders()) {
    CAPTURE(entry.name);
    const auto coder = made(entry);
    CHECK(rc::check(std::string(entry.name), [&](std::uint64_t seed) {
      Random random(seed);
      const std::size_t n = random.below(20);
      const std::size_t count = random.below(random.below(4) == 0 ? 24 : n + 1);
      Bytes bytes = random_bytes(random, random.below(100));
      if (count <= n && random.below(2) == 0)
        bytes = damaged(random, encoded(*coder, random_positions(seed, count, n), n));
      try {
        Indices indices;
        RC_ASSERT(coder->decode(bytes, count, n, indices) <= bytes.size());
        RC_ASSERT(indices.size() == count);
        RC_ASSERT(ascending(indices));
        RC_ASSERT((indices.empty() || indices.back() < n));
        RC_CLASSIFY(true, "taken");
      } catch (const CommunicationError&) {
      }
    }));
  }
}

TEST_CASE("bytes that are missing, and more values than there are, are refused") {
  for (const PositionCoderEntry& entry : position_coders()) {
    CAPTURE(entry.name);
    const auto coder = made(entry);
    for (const std::size_t k : {10U, 90U}) {
      Bytes bytes = encoded(*coder, random_positions(1, k, 100), 100);
      Indices indices;
      CHECK_THROWS_AS(coder->decode(bytes, 101, 100, indices), CommunicationError);
      CHECK_THROWS_AS(coder->decode(bytes, std::size_t{1} << 62, 100, indices), CommunicationError);
      CHECK_THROWS_AS(coder->decode({}, std::size_t{1} << 62, 100, indices), CommunicationError);
      CHECK_THROWS_AS(coder->decode(bytes, k, 9, indices), CommunicationError);
      while (!bytes.empty()) {
        bytes.pop_back();
        CHECK_THROWS_AS(coder->decode(bytes, k, 100, indices), CommunicationError);
      }
    }
  }
}

TEST_CASE("a segment of no values needs no bytes, and no address of them, beyond what the coder writes") {
  for (const PositionCoderEntry& entry : position_coders()) {
    CAPTURE(entry.name);
    const auto coder = made(entry);
    Indices indices{7};
    if (coder->bytes({}, 0) > 0) {
      CHECK_THROWS_AS(coder->decode({}, 0, 0, indices), CommunicationError);
    } else {
      CHECK(coder->decode({}, 0, 0, indices) == 0);
      CHECK(indices.empty());
    }
  }
}

TEST_CASE("too little room is a bug and found") {
  for (const PositionCoderEntry& entry : position_coders()) {
    CAPTURE(entry.name);
    const auto coder = made(entry);
    const Indices indices = random_positions(1, 10, 100);
    Bytes out(coder->bytes(indices, 100) - 1);
    CHECK_THROWS_AS(coder->encode(indices, 100, out), std::logic_error);
  }
}

TEST_CASE("smallest is at most a byte longer than any other") {
  const auto smallest = made("smallest");
  for (const PositionCoderEntry& entry : position_coders()) {
    CAPTURE(entry.name);
    const auto other = made(entry);
    for (const std::size_t n : {1U, 40U, 1001U, 50000U}) {
      for (const double density : {0.0, 0.001, 0.01, 0.1, 0.2, 0.5, 0.9, 0.999, 1.0}) {
        for (const bool clustered : {false, true}) {
          const Indices indices = random_positions(n, kept_count(density, n), n, clustered);
          CHECK(smallest->bytes(indices, n) <= other->bytes(indices, n) + 1);
          CHECK(smallest->bound(indices.size(), n) <= other->bound(indices.size(), n) + 1);
        }
      }
    }
  }
}

TEST_CASE("plain: 32-bit positions, or those left out") {
  const auto plain = made("plain");
  CHECK(encoded(*plain, {3, 258}, 1000) == bytes_of({3, 0, 0, 0, 2, 1, 0, 0}));
  CHECK(encoded(*plain, {0, 2}, 3) == bytes_of({1, 0, 0, 0}));
  CHECK(encoded(*plain, {0, 1}, 2).empty());
  for (const std::size_t n : sizes) {
    for (std::size_t k = 0; k <= n; ++k) CHECK(plain->bytes(random_positions(k, k, n), n) == 4 * std::min(k, n - k));
  }
}

TEST_CASE("plain: positions that repeat, fall or lie outside are refused, in either form") {
  const auto plain = made("plain");
  const auto listed = [](std::initializer_list<int> positions) {
    Bytes bytes;
    for (const int position : positions)
      for (const int b : {position, 0, 0, 0}) bytes.push_back(static_cast<std::byte>(b));
    return bytes;
  };
  CHECK(decoded(*plain, listed({3, 8}), 2, 9) == Indices{3, 8});
  for (const auto& bad : {listed({3, 9}), listed({3, 3}), listed({3, 2})})
    CHECK_THROWS_AS(decoded(*plain, bad, 2, 9), CommunicationError);
  CHECK(decoded(*plain, listed({1, 4}), 3, 5) == Indices{0, 2, 3});
  for (const auto& bad : {listed({1, 5}), listed({1, 1}), listed({4, 1})})
    CHECK_THROWS_AS(decoded(*plain, bad, 3, 5), CommunicationError);
}

TEST_CASE("delta: gaps in 7 bits a byte, or in 16 bits with escapes, whichever is shorter") {
  const auto delta = made("delta");
  const std::size_t n = 4000000000;
  CHECK(encoded(*delta, {0, 1, 130, 259}, n) == bytes_of({0, 0, 0, 0x80, 1, 0x80, 1}));
  CHECK(encoded(*delta, {3999999999}, n) == bytes_of({0, 0xff, 0xcf, 0xac, 0xf3, 0x0e}));
  CHECK(encoded(*delta, {16384, 49152, 114687}, n) ==
        bytes_of({1, 0x00, 0x40, 0xff, 0x7f, 0xfe, 0xff}));  // gaps 16384, 32767, 65534: three bytes each, or two
  const Indices mixed{20000, 40001, 60002, 80003, 100004, 165540};  // the last gap is 65535
  CHECK(encoded(*delta, mixed, n).size() == 1 + 5 * 2 + 6);
  for (const Indices& indices : {Indices{0}, Indices{3999999999}, Indices{127, 65662, 65663}, mixed}) {
    check_round_trip(*delta, indices, n);
    check_round_trip(*delta, indices, std::size_t{indices.back()} + 1);
  }
}

TEST_CASE("delta: about a byte a position at density 0.1, two at 0.001") {
  const auto delta = made("delta");
  CHECK(delta->bytes(random_positions(1, 100000, 1000000), 1000000) <= 101000);
  CHECK(delta->bytes(random_positions(1, 1000, 1000000), 1000000) <= 2001);
}

TEST_CASE("delta: forms, gaps and positions that cannot be are refused") {
  const auto delta = made("delta");
  Indices indices;
  for (const Bytes& bad : {bytes_of({2, 0}), bytes_of({0, 9}), bytes_of({0, 0x80, 0x80, 0x80, 0x80, 0x80, 0}),
                           bytes_of({0, 0xff, 0xff, 0xff, 0xff, 0x7f}), bytes_of({1, 9, 0}),
                           bytes_of({1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), bytes_of({1, 0xff, 0xff, 0, 0})})
    CHECK_THROWS_AS(delta->decode(bad, 1, 9, indices), CommunicationError);
  CHECK_THROWS_AS(delta->decode(bytes_of({0, 4, 4}), 2, 9, indices), CommunicationError);  // 4 and 9
  const Bytes cut_short = bytes_of({1, 0xff, 0xff, 0, 0, 0, 0});
  CHECK_THROWS_AS(delta->decode(std::span(cut_short).first(5), 1, 9, indices), CommunicationError);
  CHECK(decoded(*delta, bytes_of({0, 4, 3}), 2, 9) == Indices{4, 8});
}

TEST_CASE("bitmap: a bit a value, none beyond the last") {
  const auto bitmap = made("bitmap");
  CHECK(encoded(*bitmap, {0, 3, 8}, 10) == bytes_of({0b1001, 1}));
  Indices indices;
  CHECK_THROWS_AS(bitmap->decode(bytes_of({0b1001, 4}), 3, 10, indices), CommunicationError);
  CHECK_THROWS_AS(bitmap->decode(bytes_of({0b1001, 1}), 2, 10, indices), CommunicationError);
  CHECK_THROWS_AS(bitmap->decode(bytes_of({0b1001, 1}), 4, 10, indices), CommunicationError);
}

}  // namespace
}  // namespace hearsay::position_coder_contract_test
