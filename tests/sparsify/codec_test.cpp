// Positions and values together, for every pair of coder and quantiser.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <stdexcept>

#include "base/error.hpp"
#include "tests/sparsify/quantised.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::codec_test {
namespace {

using namespace test;

struct Pair {
  std::string name;
  std::shared_ptr<const Codec> codec;
};
std::shared_ptr<const Codec> make_codec(const std::string& coder, const std::string& quantiser) {
  Config sparsify =
      Config::from_text("{selector: {name: dense}, codec: {name: " + coder + "}, quantiser: " + quantiser + "}");
  return read_sparsifier(sparsify, {}).codec;
}
std::vector<Pair> pairs() {
  std::vector<Pair> all;
  for (const PositionCoderEntry& coder : position_coders()) {
    for (const std::string& quantiser : quantiser_choices())
      all.push_back({std::string(coder.name) + " " + quantiser, make_codec(std::string(coder.name), quantiser)});
  }
  return all;
}

/// Rows of unequal lengths, one of them empty.
std::vector<std::uint32_t> rows_of(std::size_t n) {
  const auto end = static_cast<std::uint32_t>(n);
  return {end / 7, end / 7, end / 3, end / 2, end};
}

struct Message {
  Bytes bytes;
  EncodedSize size;
};
Message encoded(const Codec& codec, const Indices& indices, std::span<const float> values, std::size_t n) {
  Message message;
  message.bytes = written(codec.bound(indices.size(), n), [&](auto out) {
    message.size = codec.encode(indices, values, n, rows_of(n), out);
    return message.size.total();
  });
  REQUIRE(message.bytes.size() == message.size.total());
  return message;
}

struct Decoded {
  Indices indices{7, 7, 7};  // what was there before must go
  std::vector<float> values{1.0F};
};
Decoded decoded(const Codec& codec, std::span<const std::byte> bytes, std::size_t count, std::size_t n) {
  Decoded back;
  codec.decode(bytes, count, n, rows_of(n), back.indices, back.values);
  return back;
}

TEST_CASE("positions come back, values as the quantiser makes them, within the bound for any smaller count") {
  for (const auto& [name, shared] : pairs()) {
    const Codec& codec = *shared;
    CAPTURE(name);
    for (const std::size_t n : {0U, 1U, 2U, 9U, 60U}) {
      std::size_t longest = 0;
      for (std::size_t k = 0; k <= n; ++k) {
        const Indices indices = random_positions(n + k, k, n);
        const auto values = normal_values(k, k);
        const Message message = encoded(codec, indices, values, n);
        const Decoded back = decoded(codec, message.bytes, k, n);
        REQUIRE(back.indices == indices);
        REQUIRE(back.values.size() == k);
        if (codec.exact()) REQUIRE(back.values == values);
        longest = std::max(longest, message.bytes.size());
        REQUIRE(longest <= codec.bound(k, n));
      }
    }
  }
}

TEST_CASE("nobody needs positions of nothing or of everything") {
  for (const auto& [name, shared] : pairs()) {
    const Codec& codec = *shared;
    CAPTURE(name);
    CHECK(encoded(codec, {}, {}, 100).bytes.empty());
    const auto values = normal_values(1, 100);
    CHECK(encoded(codec, random_positions(1, 100, 100), values, 100).size.index_bytes == 0);
    CHECK(encoded(codec, random_positions(1, 50, 100), std::span(values).first(50), 100).size.index_bytes > 0);
  }
}

TEST_CASE("bytes that are no encoding are refused, never believed") {
  for (const auto& [name, shared] : pairs()) {
    const Codec& codec = *shared;
    CAPTURE(name);
    CHECK(rc::check(name, [&codec](std::uint64_t seed) {
      Random random(seed);
      const std::size_t n = random.below(20);
      const std::size_t count = random.below(random.below(4) == 0 ? 24 : n + 1);
      Bytes bytes = random_bytes(random, random.below(60));
      if (count <= n && random.below(2) == 0)
        bytes = damaged(random, encoded(codec, random_positions(seed, count, n), normal_values(seed, count), n).bytes);
      try {
        const Decoded back = decoded(codec, bytes, count, n);
        RC_CLASSIFY(true, "taken");
        RC_ASSERT(back.indices.size() == count);
        RC_ASSERT(back.values.size() == count);
        RC_ASSERT(ascending(back.indices));
        RC_ASSERT((back.indices.empty() || back.indices.back() < n));
      } catch (const CommunicationError&) {
      }
    }));
  }
}

TEST_CASE("a damaged length is refused") {
  for (const auto& [name, shared] : pairs()) {
    const Codec& codec = *shared;
    CAPTURE(name);
    for (const std::size_t k : {10U, 100U}) {
      const Bytes bytes = encoded(codec, random_positions(1, k, 100), normal_values(1, k), 100).bytes;
      Bytes longer = bytes;
      longer.push_back(std::byte{0});
      CHECK_THROWS_AS(decoded(codec, longer, k, 100), CommunicationError);
      CHECK_THROWS_AS(decoded(codec, std::span(bytes).first(bytes.size() - 1), k, 100), CommunicationError);
      CHECK_THROWS_AS(decoded(codec, {}, k, 100), CommunicationError);
      CHECK_THROWS_AS(decoded(codec, bytes, k, 9), CommunicationError);
      CHECK_THROWS_AS(decoded(codec, bytes, std::size_t{1} << 62, 100), CommunicationError);
    }
  }
}

TEST_CASE("plain and none: positions, then values, little endian, never longer than the whole segment") {
  const std::shared_ptr<const Codec> shared = make_codec("plain", "{name: none}");
  const Codec& codec = *shared;
  const std::vector<float> values{1.0F, -2.0F};
  const Message few = encoded(codec, {3, 258}, values, 1000);
  CHECK(few.bytes == bytes_of({3, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}));
  CHECK(few.size.index_bytes == 8);
  CHECK(few.size.payload_bytes == 8);
  for (const std::size_t n : {1U, 2U, 9U, 60U}) {
    for (std::size_t k = 0; k <= n; ++k)
      CHECK(encoded(codec, random_positions(k, k, n), normal_values(k, k), n).size.total() == std::min(8 * k, 4 * n));
  }
}

TEST_CASE("rows share a mean where the quantiser goes by rows, else all values do") {
  const Indices indices{0, 2, 3, 7, 8};
  const std::vector<float> values{1, 3, 5, 10, 16};
  const std::vector<std::uint32_t> rows{3, 6, 9};
  const auto means = [&](const std::string& centre, std::span<const std::uint32_t> row_ends) {
    const std::shared_ptr<const Codec> shared = make_codec("plain", "{name: one_bit, centre: " + centre + "}");
    const Codec& codec = *shared;
    Bytes bytes(codec.bound(5, 9));
    bytes.resize(codec.encode(indices, values, 9, row_ends, bytes).total());
    Decoded back;
    codec.decode(bytes, 5, 9, row_ends, back.indices, back.values);
    return back.values;
  };
  CHECK(means("row_mean", rows) == std::vector<float>{2, 2, 5, 13, 13});
  CHECK(means("mean", rows) == std::vector<float>{7, 7, 7, 7, 7});
  CHECK(means("row_mean", {}) == means("mean", {}));
}

TEST_CASE("wrong arguments are a bug and found") {
  const std::shared_ptr<const Codec> shared = make_codec("plain", "{name: none}");
  const Codec& codec = *shared;
  const std::shared_ptr<const Codec> shared_by_rows = make_codec("plain", "{name: one_bit, centre: row_mean}");
  const Codec& by_rows = *shared_by_rows;
  const Indices indices{0, 1, 2};
  const std::vector<float> values{1, 2, 3};
  Bytes out(codec.bound(3, 10));
  CHECK_NOTHROW(codec.encode(indices, values, 10, {}, out));
  CHECK_THROWS_AS(codec.encode(indices, std::span(values).first(2), 10, {}, out), std::logic_error);
  CHECK_THROWS_AS(codec.encode(indices, values, 2, {}, out), std::logic_error);
  CHECK_THROWS_AS(codec.encode(Indices{0, 1, 10}, values, 10, {}, out), std::logic_error);
  CHECK_THROWS_AS(codec.encode(indices, values, 10, {}, std::span(out).first(23)), std::logic_error);
  Bytes room(by_rows.bound(3, 10));
  CHECK_THROWS_AS(by_rows.encode(indices, values, 10, Indices{4, 9}, room), std::logic_error);
}

}  // namespace
}  // namespace hearsay::codec_test
