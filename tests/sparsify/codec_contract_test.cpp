// Laws that every codec keeps, and the bytes of the plain one.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/random.hpp"
#include "sparsify/sparsify.hpp"

using namespace hearsay;

namespace {

using Bytes = std::vector<std::byte>;

/// k values of a segment of n.
struct Message {
  std::size_t n = 0;
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

std::unique_ptr<Codec> made(const std::string& name) {
  Config config = Config::from_text("name: " + name);
  const CodecEntry& entry = chosen_entry(codecs(), config, "plain", "how values are written");
  auto codec = entry.make(config);
  config.throw_if_invalid();
  return codec;
}

std::unique_ptr<Codec> made(const CodecEntry& entry) { return made(std::string(entry.name)); }

Message random_message(std::uint64_t seed, std::size_t k, std::size_t n) {
  Random random(seed);
  Message message{.n = n, .indices = std::vector<std::uint32_t>(n), .values = std::vector<float>(k)};
  std::iota(message.indices.begin(), message.indices.end(), 0U);
  random.shuffle(std::span(message.indices));
  message.indices.resize(k);
  std::sort(message.indices.begin(), message.indices.end());
  for (float& value : message.values) value = static_cast<float>(random.normal());
  return message;
}

/// Encodes into exactly the room that the codec asks for. What lies behind must not be touched.
std::pair<Bytes, EncodedSize> encoded(const Codec& codec, const Message& message) {
  const std::size_t room = codec.bound(message.indices.size(), message.n);
  Bytes bytes(room + 16, std::byte{0xa5});
  const EncodedSize size = codec.encode(message.indices, message.values, message.n, std::span(bytes).first(room));
  REQUIRE(size.total() <= room);
  REQUIRE(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(room), bytes.end(),
                      [](std::byte b) { return b == std::byte{0xa5}; }));
  bytes.resize(size.total());
  return {bytes, size};
}

Message decoded(const Codec& codec, std::span<const std::byte> bytes, std::size_t count, std::size_t n) {
  Message message{.n = n, .indices = {7, 7, 7}, .values = {1.0F}};  // what was there before must go
  codec.decode(bytes, count, n, message.indices, message.values);
  return message;
}

bool well_formed(const Message& message, std::size_t count) {
  const auto& indices = message.indices;
  return indices.size() == count && message.values.size() == count &&
         std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) == indices.end() &&
         (indices.empty() || indices.back() < message.n);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

Bytes bytes_of(std::initializer_list<int> numbers) {
  Bytes bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

constexpr std::size_t sizes[]{0, 1, 2, 3, 4, 5, 100, 1001};

}  // namespace

TEST_CASE("every codec says what it is, under a name of its own, and builds from that name") {
  std::set<std::string_view> names;
  for (const CodecEntry& entry : codecs()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    for (const auto text : {entry.name, entry.summary, entry.equation, entry.cost, entry.citation})
      CHECK_FALSE(text.empty());
    CHECK_NOTHROW(made(entry));
  }
  CHECK(names.size() >= 1);
}

TEST_CASE("positions come back as they were, and so many values, within the declared bound") {
  for (const CodecEntry& entry : codecs()) {
    CAPTURE(entry.name);
    const auto codec = made(entry);
    for (const std::size_t n : sizes) {
      std::size_t longest = 0;
      for (std::size_t k = 0; k <= n; ++k) {
        const Message message = random_message(n + k, k, n);
        const auto [bytes, size] = encoded(*codec, message);
        const Message back = decoded(*codec, bytes, k, n);
        REQUIRE(back.indices == message.indices);
        REQUIRE(back.values.size() == k);
        longest = std::max(longest, bytes.size());
        REQUIRE(longest <= codec->bound(k, n));  // also for fewer values than k
      }
    }
  }
}

TEST_CASE("bytes that are no encoding are refused, never believed") {
  for (const CodecEntry& entry : codecs()) {
    CAPTURE(entry.name);
    const auto codec = made(entry);
    CHECK(rc::check(std::string(entry.name), [&](std::uint64_t seed) {
      Random random(seed);
      const std::size_t n = random.below(20);
      const std::size_t count = random.below(24);
      const bool right_length = count <= n && random.below(2) == 0;
      Bytes bytes(right_length ? codec->bound(count, n) : random.below(200));
      // Small numbers now and then, so that some of it looks like positions.
      for (std::byte& b : bytes) b = static_cast<std::byte>(random.below(4) == 0 ? random.below(256) : 0);
      try {
        RC_ASSERT(well_formed(decoded(*codec, bytes, count, n), count));
      } catch (const CommunicationError&) {
      }
    }));
  }
}

TEST_CASE("a damaged length is refused") {
  for (const CodecEntry& entry : codecs()) {
    CAPTURE(entry.name);
    const auto codec = made(entry);
    const auto [bytes, size] = encoded(*codec, random_message(1, 10, 100));
    Bytes longer = bytes;
    longer.push_back(std::byte{0});
    CHECK_THROWS_AS(decoded(*codec, longer, 10, 100), CommunicationError);
    CHECK_THROWS_AS(decoded(*codec, std::span(bytes).first(bytes.size() - 1), 10, 100), CommunicationError);
    CHECK_THROWS_AS(decoded(*codec, {}, 10, 100), CommunicationError);
    CHECK_THROWS_AS(decoded(*codec, bytes, 10, 9), CommunicationError);
    CHECK_THROWS_AS(decoded(*codec, bytes, std::size_t{1} << 62, 100), CommunicationError);
    CHECK_THROWS_AS(decoded(*codec, {}, std::size_t{1} << 62, 100), CommunicationError);
  }
}

TEST_CASE("lossless codecs keep every bit of a value") {
  for (const std::string name : {"plain"}) {
    const auto codec = made(name);
    CHECK(rc::check(name, [&](std::uint64_t seed) {
      Random random(seed);
      const std::size_t n = random.below(300);
      Message message = random_message(seed, random.below(n + 1), n);
      for (float& value : message.values) value = std::bit_cast<float>(static_cast<std::uint32_t>(random.engine()()));
      const auto [bytes, size] = encoded(*codec, message);
      const Message back = decoded(*codec, bytes, message.indices.size(), n);
      RC_ASSERT(back.indices == message.indices);
      RC_ASSERT(same_bits(back.values, message.values));
    }));
  }
}

TEST_CASE("plain: values, then positions, little endian") {
  const auto codec = made("plain");
  const auto [few, few_size] = encoded(*codec, {.n = 1000, .indices = {3, 258}, .values = {1.0F, -2.0F}});
  CHECK(few == bytes_of({0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 3, 0, 0, 0, 2, 1, 0, 0}));
  CHECK(few_size.payload_bytes == 8);
  CHECK(few_size.index_bytes == 8);
  // Most of the segment: the position left out is shorter to tell.
  const auto [most, most_size] = encoded(*codec, {.n = 3, .indices = {0, 2}, .values = {1.0F, -2.0F}});
  CHECK(most == bytes_of({0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 1, 0, 0, 0}));
  CHECK(most_size.index_bytes == 4);
  // All of it: nothing to tell.
  const auto [all, all_size] = encoded(*codec, {.n = 2, .indices = {0, 1}, .values = {1.0F, -2.0F}});
  CHECK(all == bytes_of({0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}));
  CHECK(all_size.index_bytes == 0);
}

TEST_CASE("plain: 8 bytes a value, but never more than the whole segment") {
  const auto codec = made("plain");
  for (const std::size_t n : sizes) {
    for (std::size_t k = 0; k <= n; ++k) {
      const auto [bytes, size] = encoded(*codec, random_message(k, k, n));
      REQUIRE(size.payload_bytes == 4 * k);
      REQUIRE(size.total() == std::min(8 * k, 4 * n));
    }
    CHECK(codec->bound(n, n) == 4 * n);
  }
}

TEST_CASE("plain: positions that repeat, fall or lie outside are refused, in either form") {
  const auto codec = made("plain");
  const auto value = [](int k) { return Bytes(static_cast<std::size_t>(4 * k)); };
  const auto with = [&](int k, std::initializer_list<int> positions) {
    Bytes bytes = value(k);
    for (const int position : positions)
      for (const int b : {position, 0, 0, 0}) bytes.push_back(static_cast<std::byte>(b));
    return bytes;
  };
  CHECK_NOTHROW(decoded(*codec, with(2, {3, 8}), 2, 9));
  CHECK_THROWS_AS(decoded(*codec, with(2, {3, 9}), 2, 9), CommunicationError);
  CHECK_THROWS_AS(decoded(*codec, with(2, {3, 3}), 2, 9), CommunicationError);
  CHECK_THROWS_AS(decoded(*codec, with(2, {3, 2}), 2, 9), CommunicationError);
  CHECK(decoded(*codec, with(3, {1, 4}), 3, 5).indices == std::vector<std::uint32_t>{0, 2, 3});
  CHECK_THROWS_AS(decoded(*codec, with(3, {1, 5}), 3, 5), CommunicationError);
  CHECK_THROWS_AS(decoded(*codec, with(3, {1, 1}), 3, 5), CommunicationError);
  CHECK_THROWS_AS(decoded(*codec, with(3, {4, 1}), 3, 5), CommunicationError);
}

TEST_CASE("plain: wrong arguments are a bug and found") {
  const auto codec = made("plain");
  const std::vector<std::uint32_t> indices{0, 1, 2};
  const std::vector<float> values{1, 2, 3};
  Bytes out(24);
  CHECK_THROWS_AS(codec->encode(indices, std::span(values).first(2), 10, out), std::logic_error);
  CHECK_THROWS_AS(codec->encode(indices, values, 2, out), std::logic_error);
  CHECK_THROWS_AS(codec->encode(indices, values, 10, std::span(out).first(23)), std::logic_error);
}
