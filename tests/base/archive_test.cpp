// What is saved is what is loaded, and what is not an archive is refused, whatever it is.
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/state/archive.hpp"
#include "base/state/random_state.hpp"

namespace hearsay::archive_test {
namespace {

enum class Colour : std::uint8_t { red, green };

struct Thing {
  double number = 0.0;
  bool flag = false;
  Colour colour = Colour::red;
  std::vector<float> three = std::vector<float>(3);
  std::vector<std::uint32_t> some{};
  std::string name{};
  std::optional<std::int64_t> perhaps{};
  bool operator==(const Thing&) const = default;

  void state(Archive& archive) {
    archive.value("number", number);
    archive.value("flag", flag);
    archive.value("colour", colour);
    archive.values("three", std::span(three));
    archive.list("some", some, 10);
    archive.text("name", name, 20);
    archive.optional("perhaps", perhaps);
  }
};

const Thing thing{.number = -0.1,
                  .flag = true,
                  .colour = Colour::green,
                  .three = {1.0F, std::numeric_limits<float>::infinity(), -0.0F},
                  .some = {4, 2},
                  .name = "layer.weight",
                  .perhaps = -7};

RawBytes saved(Thing of) {
  RawBytes bytes;
  Archive archive = Archive::saving(bytes);
  of.state(archive);
  return bytes;
}

std::string refusal(const RawBytes& bytes, const std::function<void(Archive&)>& load) {
  try {
    Archive archive = Archive::loading(bytes, "FILE");
    load(archive);
    return "";
  } catch (const DataError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("what is saved is what is loaded") {
  for (const Thing& of : {thing, Thing{}}) {
    const RawBytes bytes = saved(of);
    Archive archive = Archive::loading(bytes, "FILE");
    Thing loaded;
    loaded.state(archive);
    CHECK(loaded == of);
    CHECK(archive.left() == 0);
  }
}

TEST_CASE("an archive that ends anywhere, or in which any byte is another, is refused or loaded, never more") {
  const RawBytes whole = saved(thing);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const RawBytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const std::string words = refusal(cut, [](Archive& archive) { Thing().state(archive); });
    CHECK(words.find("FILE: '") == 0);
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int bit : {0, 5, 7}) {
      RawBytes changed = whole;
      changed[i] ^= static_cast<std::byte>(1 << bit);
      Thing loaded;
      static_cast<void>(refusal(changed, [&](Archive& archive) { loaded.state(archive); }));
      CHECK(loaded.some.size() <= 10);
      CHECK(loaded.three.size() == 3);
    }
  }
}

TEST_CASE("a message says what is wrong with what") {
  const RawBytes bytes = saved(thing);
  const auto says = [&](const std::function<void(Archive&)>& load) { return refusal(bytes, load); };
  double number = 0.0;
  float small = 0.0F;
  CHECK(says([&](Archive& a) { a.value("another", number); }).find("'another' is missing") != std::string::npos);
  CHECK(says([&](Archive& a) { a.value("number", small); }).find("8 bytes instead of 4") != std::string::npos);
  std::vector<double> two(2);
  CHECK(says([&](Archive& a) { a.values("number", std::span(two)); }).find("1 values instead of 2") !=
        std::string::npos);
  CHECK(says([&](Archive& a) { a.list("number", two, 0); }).find("there can be 0") != std::string::npos);
}

TEST_CASE("a part is found by its name and must be read whole") {
  RawBytes bytes;
  Archive out = Archive::saving(bytes);
  Thing first = thing, second;
  out.part("first", [&](Archive& part) { first.state(part); });
  out.part("second", [&](Archive& part) { second.state(part); });
  auto found = Archive::find_part(bytes, "second", "FILE");
  REQUIRE(found.has_value());
  Thing loaded = thing;
  loaded.state(*found);
  CHECK(loaded == second);
  CHECK(found->left() == 0);
  CHECK(!Archive::find_part(bytes, "third", "FILE").has_value());
  double number = 0.0;
  const std::string words =
      refusal(bytes, [&](Archive& all) { all.part("first", [&](Archive& part) { part.value("number", number); }); });
  CHECK(words.find("more than there should be") != std::string::npos);
  bytes.resize(bytes.size() - 1);
  CHECK_THROWS_AS(Archive::find_part(bytes, "second", "FILE"), DataError);
}

TEST_CASE("positions are ascending and below n") {
  const RawBytes none;
  const Archive archive = Archive::loading(none, "FILE");
  require_ascending(archive, "p", std::vector<std::uint32_t>{0, 3, 9}, 10);
  CHECK_THROWS_AS(require_ascending(archive, "p", std::vector<std::uint32_t>{0, 3, 10}, 10), DataError);
  CHECK_THROWS_AS(require_ascending(archive, "p", std::vector<std::uint32_t>{3, 3}, 10), DataError);
}

TEST_CASE("random numbers go on where they were, and nowhere else") {
  Random one(5);
  for (int i = 0; i < 1000; ++i) static_cast<void>(one.normal());
  RawBytes bytes;
  Archive out = Archive::saving(bytes);
  random_state(out, one);
  Random other(6);
  Archive in = Archive::loading(bytes, "FILE");
  random_state(in, other);
  for (int i = 0; i < 1000; ++i) CHECK(one.below(1000) == other.below(1000));
  const std::uint64_t beyond = 313;
  std::memcpy(bytes.data() + bytes.size() - sizeof beyond, &beyond, sizeof beyond);
  CHECK(refusal(bytes, [&](Archive& archive) { random_state(archive, other); }).find("beyond their end") !=
        std::string::npos);
}

}  // namespace hearsay::archive_test
