// dump() read back by the same reader gives the same values and the same dump, whatever the values are.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "base/config/config.hpp"
#include "base/config/nearest.hpp"

namespace config_dump_test {
namespace {

/// What a reader reads: every type that Config knows, at two levels.
struct Values {
  double real;
  std::int64_t integer;
  bool flag;
  std::string text;
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  bool operator==(const Values&) const = default;
};

Values read(hearsay::Config& config, const Values& fallback) {
  hearsay::Config inner = config.section("inner").section("most");
  Values v;
  v.real = config.real("real", fallback.real, {}, "");
  v.integer = inner.integer("integer", fallback.integer, {}, "");
  v.flag = inner.flag("flag", fallback.flag, "");
  v.text = config.text("text", fallback.text, "");
  v.reals = inner.reals("reals", fallback.reals, {}, "");
  v.integers = config.integers("integers", fallback.integers, {}, "");
  return v;
}

/// Any double but NaN, subnormals and infinities included.
double any_real() {
  const auto bits = *rc::gen::arbitrary<std::uint64_t>();
  const double x = std::bit_cast<double>(bits);
  return std::isnan(x) ? 0.1 : x;
}

/// Code points 1 to 0x2fff, as UTF-8, many of them ASCII.
std::string any_text() {
  std::string text;
  for (const int draw : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 0x4000))) {
    const int c = draw >= 0x3000 ? 1 + draw % 127 : std::max(draw, 1);
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xc0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3f))};
    } else {
      text += {static_cast<char>(0xe0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 0x3f)),
               static_cast<char>(0x80 | (c & 0x3f))};
    }
  }
  return text;
}

void round_trip(const Values& values) {
  const Values other{.real = 1, .integer = 2, .flag = !values.flag, .text = "other", .reals = {3}, .integers = {4, 5}};
  hearsay::Config first;
  RC_ASSERT(read(first, values) == values);
  hearsay::Config second = hearsay::Config::from_text(first.document().dump());
  RC_ASSERT(read(second, other) == values);
  second.document().throw_if_invalid();
  RC_ASSERT(second.document().dump() == first.document().dump());
}

}  // namespace

TEST_CASE("dump round trip") {
  CHECK(rc::check("any values", [] {
    Values values;
    values.real = any_real();
    values.integer = *rc::gen::arbitrary<std::int64_t>();
    values.flag = *rc::gen::arbitrary<bool>();
    values.text = any_text();
    for (int n = *rc::gen::inRange(0, 4); n > 0; --n) values.reals.push_back(any_real());
    values.integers = *rc::gen::arbitrary<std::vector<std::int64_t>>();
    round_trip(values);
  }));
  for (const char* word : {"",
                           " ",
                           "~",
                           "null",
                           "Yes",
                           "1",
                           "-1.5",
                           ".inf",
                           "a: b",
                           "#x",
                           "- x",
                           "a b",
                           "{",
                           "'",
                           "\"",
                           "\\",
                           "&a",
                           "*a",
                           "!t",
                           "|",
                           "é",
                           "runs/x-1_2.yaml",
                           "/a b/c",
                           "<<",
                           "line\nline\n",
                           "\t"})
    round_trip({.real = -0.0, .integer = 0, .flag = true, .text = word, .reals = {}, .integers = {}});
}

TEST_CASE("keys describe what was asked for, in order, those of sections with their path") {
  hearsay::Config config = hearsay::Config::from_text("horizon: 2");
  config.real("horizon", 0.5, hearsay::Range::above(0), "how far ahead");
  config.section("inner").flag("x", true, "");
  config.choice("kind", "a", {"a", "b"}, "which");
  const auto keys = config.keys();
  REQUIRE(keys.size() == 3);
  CHECK(keys[0].key == "horizon");
  CHECK(keys[0].type == "number");
  CHECK(keys[0].fallback == "0.5");
  CHECK(keys[0].range == "> 0");
  CHECK(keys[0].meaning == "how far ahead");
  CHECK(keys[1].key == "inner.x");
  CHECK(keys[2].range == "one of a, b");
  CHECK(config.section("inner").keys()[0].key == "x");
}

TEST_CASE("dump writes the defaults too, in the order of asking") {
  hearsay::Config config = hearsay::Config::from_text("b: {y: 2}\na: 1e-7\n");
  config.real("a", 0, {}, "");
  hearsay::Config b = config.section("b");
  b.integer("x", 1, {}, "");
  b.section("empty");
  b.integers("y_list", {1, 2}, {}, "");
  config.text("t", "true", "");
  CHECK(config.document().dump() == "a: 1.0e-07\nb:\n  x: 1\n  empty: {}\n  y_list: [1, 2]\nt: \"true\"\n");
  CHECK(hearsay::Config().document().dump() == "{}\n");
}

TEST_CASE("a list of mappings is written as one, and read back") {
  const auto read_all = [](hearsay::Config root) {
    for (hearsay::Config item : root.section("a").sections("list", "what it is")) {
      item.integer("x", 1, {}, "");
      item.text("t", "no", "");
      for (hearsay::Config inner : item.sections("inner", "")) inner.flag("f", false, "");
    }
    root.sections("none", "");
    root.document().throw_if_invalid();
  };
  hearsay::Config config = hearsay::Config::from_text("a: {list: [{x: 2}, {}, {t: b, inner: [{f: true}, {}]}]}");
  read_all(config);
  CHECK(config.document().dump() ==
        "a:\n  list:\n    - x: 2\n      t: \"no\"\n      inner: []\n    - x: 1\n      t: \"no\"\n      inner: []\n"
        "    - x: 1\n      t: b\n      inner:\n        - f: true\n        - f: false\nnone: []\n");
  CHECK(config.document().given() ==
        "a:\n  list:\n    - x: 2\n    - {}\n    - t: b\n      inner:\n        - f: true\n        - {}\n");
  for (const std::string& text : {config.document().dump(), config.document().given()}) {
    hearsay::Config again = hearsay::Config::from_text(text);
    read_all(again);
    CHECK(again.document().dump() == config.document().dump());
  }
  CHECK(config.section("a").keys().front().type == "list of mappings");
}

TEST_CASE("what was given is the dump without the defaults") {
  hearsay::Config config = hearsay::Config::from_text("b: {y: 2, deep: {z: [1]}}\na: 1e-7\nnone: {}\n");
  config.document().override_with("b.set=no");
  config.document().override_with("c={d: 3}");
  const auto read_all = [](hearsay::Config root) {
    root.real("a", 0, {}, "");
    hearsay::Config b = root.section("b");
    b.integer("x", 1, {}, "");
    b.integer("y", 1, {}, "");
    b.text("set", "yes", "");
    b.section("deep").integers("z", {}, {}, "");
    b.section("default").integer("w", 1, {}, "");
    root.section("none").integer("v", 1, {}, "");
    root.section("c").integer("d", 1, {}, "");
    root.document().throw_if_invalid();
  };
  read_all(config);
  CHECK(config.document().given() == "a: 1.0e-07\nb:\n  y: 2\n  set: \"no\"\n  deep:\n    z: [1]\nc:\n  d: 3\n");
  hearsay::Config again = hearsay::Config::from_text(config.document().given());
  read_all(again);
  CHECK(again.document().dump() == config.document().dump());
  CHECK(hearsay::Config().document().given() == "{}\n");
}

TEST_CASE("edit distance") {
  using hearsay::edit_distance;
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("treshold", "threshold") == 1);
  CHECK(edit_distance("modle", "model") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(rc::check("a metric: symmetric, zero only for equals, at most the longer length",
                  [](const std::string& a, const std::string& b) {
                    const std::size_t distance = edit_distance(a, b);
                    RC_ASSERT(distance == edit_distance(b, a));
                    RC_ASSERT((distance == 0) == (a == b));
                    RC_ASSERT(distance <= std::max(a.size(), b.size()));
                  }));
  const std::vector<std::string> known{"threshold", "horizon", "k"};
  CHECK(hearsay::nearest("tresholdd", known) == "threshold");
  CHECK(hearsay::nearest("x", known) == "");
  CHECK(hearsay::nearest("colour", known) == "");
}

}  // namespace config_dump_test
