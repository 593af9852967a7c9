// Config: what is read, what is refused and where, and that dump() gives the same run.
#include "base/config/config.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/config/yaml.hpp"
#include "base/error.hpp"

namespace config_test {

using hearsay::Config;
using hearsay::ConfigError;
using hearsay::DataError;
using hearsay::most_yaml_bytes;
using hearsay::Range;

namespace {

/// The message of the error that throw_if_invalid throws, "" if it throws none.
std::string complaint(const Config& config) {
  try {
    config.document().throw_if_invalid();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

/// The message of the ConfigError that `action` must throw.
template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  FAIL("expected a ConfigError");
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string numbered_keys(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "k" + std::to_string(i) + ": 1\n";
  return text;
}

/// Reads a text that may be anything; what is wrong with it is a ConfigError, if something is.
void outcome_of(const std::string& text) {
  try {
    Config::from_text(text).document().throw_if_invalid();
  } catch (const ConfigError&) {
  }
}

std::string one_error(const std::string& line) { return "invalid configuration (1 error)\n  " + line; }

/// A file that is removed with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() / name) {
    std::ofstream(path_) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

double real_of(const std::string& value) {
  Config config = Config::from_text("x: " + value);
  const double x = config.real("x", 0.5, {}, "");
  config.document().throw_if_invalid();
  return x;
}

std::string real_refused(const std::string& value) {
  Config config = Config::from_text("x: " + value, "f");
  CHECK(config.real("x", 0.5, {}, "") == 0.5);
  return complaint(config);
}

std::string integer_refused(const std::string& value) {
  Config config = Config::from_text("n: " + value, "f");
  CHECK(config.integer("n", 3, {}, "") == 3);
  return complaint(config);
}

}  // namespace

TEST_CASE("absent keys take their defaults") {
  Config config;
  CHECK(config.real("a", 0.25, Range::fraction_above_zero(), "") == 0.25);
  CHECK(config.integer("b", -3, {}, "") == -3);
  CHECK(config.flag("c", true, ""));
  CHECK(config.text("d", "word", "") == "word");
  CHECK(config.choice("e", "two", {"one", "two"}, "") == "two");
  CHECK(config.integers("f", {1, 2}, {}, "") == std::vector<std::int64_t>{1, 2});
  CHECK(config.reals("g", {}, {}, "").empty());
  CHECK(config.path("h", "", "").empty());
  CHECK(config.section("s").integer("i", 7, {}, "") == 7);
  CHECK_FALSE(config.has("a"));
  CHECK(complaint(config) == "");
}

TEST_CASE("numbers") {
  CHECK(real_of("3") == 3.0);
  CHECK(real_of("1e-3") == 1e-3);
  CHECK(real_of("+.5") == 0.5);
  CHECK(real_of("-2.") == -2.0);
  CHECK(real_of("-.inf") == -std::numeric_limits<double>::infinity());
  for (const std::string wrong :
       {"ten", "1.0.0", "0x10", "inf", "nan", ".nan", "1e999", "--1", "+-1", "1_000", "1 2", "true"})
    CHECK(real_refused(wrong) == one_error("f:1:4: x: expected a number, got '" + wrong + "'"));
  CHECK(real_refused("\"1\"") == one_error("f:1:4: x: expected a number, got the text '1'"));
  CHECK(real_refused("[1]") == one_error("f:1:4: x: expected a number, got a list"));
  CHECK(real_refused("{a: 1}") == one_error("f:1:4: x: expected a number, got a mapping"));
  CHECK(real_refused("").ends_with("x: expected a number, got nothing"));

  Config config = Config::from_text("n: -9223372036854775808");
  CHECK(config.integer("n", 0, {}, "") == std::numeric_limits<std::int64_t>::min());
  for (const std::string wrong : {"ten", "1e3", "2.0", "9223372036854775808", "0x10", "1,000"})
    CHECK(integer_refused(wrong) == one_error("f:1:4: n: expected an integer, got '" + wrong + "'"));
}

TEST_CASE("a number may be left to the program") {
  const auto read = [](const std::string& yaml) {
    Config config = Config::from_text(yaml);
    const std::optional<double> real = config.real_or_auto("c", Range::between(0, 1), "");
    config.document().throw_if_invalid();
    Config again = Config::from_text(config.document().dump());
    CHECK(again.real_or_auto("c", Range::between(0, 1), "") == real);
    return real;
  };
  CHECK(read("") == std::nullopt);
  CHECK(read("c: auto") == std::nullopt);
  CHECK(read("c: 0") == 0.0);
  CHECK(read("c: 0.25") == 0.25);
  CHECK_THROWS_WITH_AS(read("c: 2"), doctest::Contains("in [0, 1]"), ConfigError);
  CHECK_THROWS_WITH_AS(read("c: automatic"), doctest::Contains("expected a number or auto"), ConfigError);
  CHECK_THROWS_WITH_AS(read("c: [auto]"), doctest::Contains("expected a number or auto"), ConfigError);
}

TEST_CASE("booleans are true and false, nothing else") {
  Config config = Config::from_text("a: true\nb: false\nc: yes\nd: 1\ne: 'true'\n", "f");
  CHECK(config.flag("a", false, ""));
  CHECK_FALSE(config.flag("b", true, ""));
  for (const char* key : {"c", "d", "e"}) CHECK(config.flag(key, true, ""));
  CHECK(complaint(config) ==
        "invalid configuration (3 errors)\n"
        "  f:3:4: c: expected true or false, got 'yes'\n"
        "  f:4:4: d: expected true or false, got '1'\n"
        "  f:5:4: e: expected true or false, got the text 'true'");
}

TEST_CASE("ranges") {
  CHECK(Range::above(0).contains(1e-300));
  CHECK_FALSE(Range::above(0).contains(0));
  CHECK(Range::fraction_above_zero().contains(1));
  CHECK_FALSE(Range::fraction_below_one().contains(1));
  CHECK_FALSE(Range{}.contains(std::nan("")));
  CHECK(Range{}.description() == "");
  CHECK(Range::above(0).description() == "> 0");
  CHECK(Range::at_least(1).description() == ">= 1");
  CHECK(Range{.max = 2}.description() == "<= 2");
  CHECK(Range{.max = 2, .max_excluded = true}.description() == "< 2");
  CHECK(Range::fraction_above_zero().description() == "in (0, 1]");
  CHECK(Range::fraction_below_one().description() == "in [0, 1)");

  Config config = Config::from_text("trigger: {horizon: -1, density: 1.5}", "f");
  Config trigger = config.section("trigger");
  CHECK(trigger.real("horizon", 1, Range::above(0), "") == 1.0);
  CHECK(trigger.real("density", 1, Range::fraction_above_zero(), "") == 1.0);
  CHECK(complaint(config) ==
        "invalid configuration (2 errors)\n"
        "  f:1:20: trigger.horizon: must be > 0, got -1\n"
        "  f:1:33: trigger.density: must be in (0, 1], got 1.5");
}

TEST_CASE("lists complain element by element") {
  Config config = Config::from_text("good: [1, 2]\nbad: [1, two, 3.5]\nlow: [0.5, -1]\nscalar: 3\n", "f");
  CHECK(config.integers("good", {}, {}, "") == std::vector<std::int64_t>{1, 2});
  CHECK(config.integers("bad", {9}, {}, "") == std::vector<std::int64_t>{9});
  CHECK(config.reals("low", {}, Range::at_least(0), "").empty());
  CHECK(config.reals("scalar", {}, {}, "").empty());
  CHECK(complaint(config) ==
        "invalid configuration (4 errors)\n"
        "  f:2:10: bad[1]: expected an integer, got 'two'\n"
        "  f:2:15: bad[2]: expected an integer, got '3.5'\n"
        "  f:3:12: low[1]: must be >= 0, got -1\n"
        "  f:4:9: scalar: expected a list of numbers, got '3'");
}

TEST_CASE("a list of mappings is read mapping by mapping") {
  Config config =
      Config::from_text("deaths:\n  - {rank: 3, at_s: 1.5}\n  - {at_s: -1, rnak: 2}\n  - 7\nscalar: 3\n", "f");
  std::vector<std::pair<std::int64_t, double>> deaths;
  for (Config death : config.sections("deaths", "who dies when"))
    deaths.emplace_back(death.integer("rank", 0, {}, ""), death.real("at_s", 9, Range::at_least(0), ""));
  CHECK(deaths == std::vector<std::pair<std::int64_t, double>>{{3, 1.5}, {0, 9}, {0, 9}});
  CHECK(config.sections("deaths", "who dies when").size() == 3);
  CHECK(config.sections("scalar", "").empty());
  CHECK(config.sections("absent", "").empty());
  CHECK(complaint(config) ==
        "invalid configuration (4 errors)\n"
        "  f:3:12: deaths[1].at_s: must be >= 0, got -1\n"
        "  f:3:16: deaths[1].rnak: unknown key, did you mean 'rank'?\n"
        "  f:4:5: deaths[2]: expected a mapping such as {name: value}, got '7'\n"
        "  f:5:9: scalar: expected a list of mappings, got '3'");
  CHECK_THROWS_AS(config.section("deaths"), std::logic_error);
  CHECK_THROWS_AS(config.integer("deaths", 0, {}, ""), std::logic_error);
}

TEST_CASE("all errors at once, in the order of the file, unknown keys with the nearest known one") {
  Config config = Config::from_text(
      "train:\n"
      "  epochs: ten\n"
      "trigger:\n"
      "  treshold: 2\n"
      "  name: adaptve\n"
      "exchange: ring\n"
      "modle: {name: mlp}\n"
      "colour: red\n",
      "configs/x.yaml");
  Config trigger = config.section("trigger");
  trigger.real("threshold", 1, {}, "");
  CHECK(trigger.choice("name", "adaptive", {"always", "periodic", "adaptive"}, "") == "adaptive");
  CHECK(config.section("train").integer("epochs", 10, {}, "") == 10);
  config.section("exchange");
  config.section("model");
  // The keys of an algorithm that does not exist cannot be judged: `treshold` is not reported.
  CHECK(complaint(config) ==
        "invalid configuration (5 errors)\n"
        "  configs/x.yaml:2:11: train.epochs: expected an integer, got 'ten'\n"
        "  configs/x.yaml:5:9: trigger.name: unknown 'adaptve'; known: always, periodic, adaptive — did you mean "
        "'adaptive'?\n"
        "  configs/x.yaml:6:11: exchange: expected a mapping such as {name: value}, got 'ring'\n"
        "  configs/x.yaml:7:1: modle: unknown key, did you mean 'model'?\n"
        "  configs/x.yaml:8:1: colour: unknown key; known: trigger, train, exchange, model");

  Config named = Config::from_text("trigger:\n  name: adaptive\n  treshold: 2\n", "configs/x.yaml");
  Config section = named.section("trigger");
  section.choice("name", "adaptive", {"adaptive"}, "");
  section.real("threshold", 1, {}, "");
  CHECK(complaint(named) == one_error("configs/x.yaml:3:3: trigger.treshold: unknown key, did you mean 'threshold'?"));
}

TEST_CASE("duplicate keys are errors and the first one counts") {
  Config config = Config::from_text("a: 1\ns: {x: 1, x: 2}\na: 2\n", "f");
  CHECK(config.integer("a", 0, {}, "") == 1);
  CHECK(config.section("s").integer("x", 0, {}, "") == 1);
  CHECK(complaint(config) ==
        "invalid configuration (2 errors)\n"
        "  f:2:11: s.x: duplicate key, first given in line 2\n"
        "  f:3:1: a: duplicate key, first given in line 1");
}

TEST_CASE("require complains at the key, or at the mapping if the key is absent") {
  Config config = Config::from_text("s:\n  x: 1\nt: 2\n", "f");
  Config s = config.section("s");
  s.integer("x", 0, {}, "");
  s.require(true, "x", "fine");
  s.require(false, "x", "too small for y");
  s.require(false, "y", "missing");
  config.integer("t", 0, {}, "");
  CHECK(complaint(config) == "invalid configuration (2 errors)\n  f:1:1: s.y: missing\n  f:2:3: s.x: too small for y");
}

TEST_CASE("values from the command line replace the file's and are named in errors") {
  Config config = Config::from_text("trigger: {horizon: 1.0}\ntrain:\n", "f");
  config.document().override_with("trigger.horizon=-1");
  config.document().override_with("train.epochs=3");
  config.document().override_with("mixing.list=[1, 2]");
  config.document().override_with("data={name: mnist}");
  config.document().override_with("trigger.horzon=2");
  CHECK(config.section("trigger").real("horizon", 1, Range::above(0), "") == 1.0);
  CHECK(config.section("train").integer("epochs", 10, {}, "") == 3);
  CHECK(config.section("mixing").integers("list", {}, {}, "") == std::vector<std::int64_t>{1, 2});
  CHECK(config.section("data").text("name", "", "") == "mnist");
  CHECK(complaint(config) ==
        "invalid configuration (2 errors)\n"
        "  --set trigger.horizon=-1: trigger.horizon: must be > 0, got -1\n"
        "  --set trigger.horzon=2: trigger.horzon: unknown key, did you mean 'horizon'?");
  CHECK_THROWS_AS(config.document().override_with("a=1"), std::logic_error);
}

TEST_CASE("a place of one's own names what is set in errors") {
  Config config = Config::from_text("", "f");
  config.document().override_with("x=-1", "set={'x': -1}");
  config.integer("x", 1, Range::at_least(0), "");
  CHECK(complaint(config) == one_error("set={'x': -1}: x: must be >= 0, got -1"));
  Config wrong = Config::from_text("", "f");
  CHECK(refusal([&] {
          wrong.document().override_with("=1", "set={'': 1}");
        }).starts_with("set={'': 1}: expected key=value"));
}

TEST_CASE("keys for another program are neither judged nor written") {
  Config config = Config::from_text("model: {name: net, hidden: [8]}\ntrain: {epochs: 3}\nseed: 1", "f");
  Config model = config.section("model");
  CHECK(model.text("name", "", "") == "net");
  CHECK(model.unasked() == std::vector<std::string>{"hidden"});
  CHECK(config.unasked() == std::vector<std::string>{"train", "seed"});
  CHECK(config.section("absent").unasked().empty());
  model.disregard("hidden");
  config.disregard("train");
  CHECK(complaint(config) == one_error("f:3:1: seed: unknown key; known: model, absent"));
  CHECK(config.document().dump() == "model:\n  name: net\nabsent: {}\n");
}

TEST_CASE("overrides that cannot be are refused at once") {
  Config config = Config::from_text("a: 1", "f");
  for (const char* wrong : {"a", "=1", "a..b=1", ".a=1", "a.=1", ""})
    CHECK_THROWS_AS(config.document().override_with(wrong), ConfigError);
  CHECK(refusal([&] { config.document().override_with("a.b=1"); }) ==
        "--set a.b=1: 'a' is '1', not a mapping; set 'a' itself or choose another key");
  CHECK(refusal([&] { config.document().override_with("b=[1"); }).starts_with("--set b=[1: not YAML: "));
  CHECK(refusal([&] { config.document().override_with("b={x: 1, x: 2}"); }).find("x: duplicate key") !=
        std::string::npos);
}

TEST_CASE("paths are relative to the file, those of the command line to the working directory") {
  const TemporaryFile file("hearsay_config_test.yaml", "a: ../data/./mnist\nb: /abs/../x\nempty: ''\n");
  Config config = Config::from_file(file.path());
  config.document().override_with("c=runs/x");
  const auto directory = std::filesystem::absolute(file.path()).parent_path();
  const auto here = std::filesystem::current_path();
  CHECK(config.path("a", "", "") == (directory / ".." / "data" / "mnist").lexically_normal());
  CHECK(config.path("b", "", "") == "/x");
  CHECK(config.path("c", "", "") == here / "runs/x");
  CHECK(config.path("d", "runs/y", "") == here / "runs/y");
  CHECK(config.path("empty", "z", "").empty());
  CHECK(complaint(config) == "");

  Config again = Config::from_text(config.document().dump());
  CHECK(again.path("a", "", "") == config.path("a", "", ""));
  CHECK(again.path("empty", "z", "").empty());
}

TEST_CASE("files and documents that cannot be read") {
  CHECK_THROWS_AS(Config::from_file("no/such/file.yaml"), DataError);
  CHECK_THROWS_AS(Config::from_file(std::filesystem::temp_directory_path()), DataError);
  CHECK(refusal([] { Config::from_text("a: [1, 2\nb: 3", "f"); }).starts_with("f:2:"));
  CHECK(refusal([] { Config::from_text("- 1\n- 2\n", "f"); }) == "f:1:1: expected `key: value` lines, got a list");
  CHECK(refusal([] { Config::from_text("word", "f"); }) == "f:1:1: expected `key: value` lines, got 'word'");
  CHECK(refusal([] { Config::from_text("a: 1\n---\nb: 2\n", "f"); }).starts_with("f:2:1: a second document"));
  CHECK_THROWS_AS(Config::from_text("a: &a [*a]"), ConfigError);
  CHECK_THROWS_AS(Config::from_text("a: " + std::string(300, '[') + std::string(300, ']')), ConfigError);
  Config keys = Config::from_text("[1, 2]: 3\n", "f");
  CHECK(complaint(keys) == one_error("f:1:1: a key must be a word"));
  for (const char* empty : {"", "\n", "# nothing\n", "{}", "---\n"}) CHECK(complaint(Config::from_text(empty)) == "");
}

TEST_CASE("no text makes the parser go on for ever: commas in front of everything") {
  for (const char* text :
       {",", ", a", "&a ,", "!t ,", ",\n", "a: 1\n,", "--- ,", "\"a\" ,", "- ,\n- ,", "? ,", "{,}", "[,]"})
    CHECK_NOTHROW(outcome_of(text));
  CHECK(refusal([] { Config::from_text(",\n", "f"); }).starts_with("f:1:1: not YAML"));
  CHECK(refusal([] { Config::from_text("").document().override_with("seed=,"); }).starts_with("--set seed=,: "));
}

TEST_CASE("what a document may have is bounded: bytes, levels, values, aliases") {
  const auto refused = [](const std::string& text) { return refusal([&] { Config::from_text(text, "f"); }); };
  const std::string long_text(most_yaml_bytes - 4, 'x');
  CHECK_NOTHROW(Config::from_text("a: " + long_text));
  CHECK(contains(refused("a: " + long_text + "xx"), "1048576 bytes"));
  for (const auto& [open, close] :
       {std::pair("[", "]"), std::pair("{a: ", "}"), std::pair("- ", ""), std::pair("? ", "")}) {
    CHECK_NOTHROW(outcome_of(repeated(open, 64) + repeated(close, 64)));
    CHECK(contains(refused("a:\n " + repeated(open, 5000) + repeated(close, 5000)), "64 levels"));
  }
  CHECK_NOTHROW(Config::from_text("a: [" + repeated("1,", 99'000) + "]"));
  CHECK(contains(refused("a: [" + repeated("1,", 100'001) + "]"), "100000"));
  // Nine of nine of nine …: a kilobyte that would be 9¹² values.
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'm'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + c + " [" + repeated("*" + before + ", ", 8) + "*" + before + "]\n";
  }
  CHECK(contains(refused(bomb), "with aliases written out"));
  CHECK(contains(refused("a: &a " + std::string(500'000, 'x') + "\nb: [" + repeated("*a, ", 50'000) + "]"),
                 "with aliases written out"));
  CHECK(contains(refused("a: &a [*a]"), "not complete"));
}

TEST_CASE("an alias is a copy of what it names") {
  Config config = Config::from_text("a: &a {x: &x 1, y: &y [2, 3]}\nb: *a\nc: *y\nd: [*x, 5]\n*x : 7\n");
  for (const char* key : {"a", "b"}) {
    CHECK(config.section(key).integer("x", 0, {}, "") == 1);
    CHECK(config.section(key).integers("y", {}, {}, "") == std::vector<std::int64_t>{2, 3});
  }
  CHECK(config.integers("c", {}, {}, "") == std::vector<std::int64_t>{2, 3});
  CHECK(config.integers("d", {}, {}, "") == std::vector<std::int64_t>{1, 5});
  CHECK(config.integer("1", 0, {}, "") == 7);
  CHECK(complaint(config) == "");
}

TEST_CASE("a document of many errors names the first ones, and a long key is cut") {
  const std::string many = complaint(Config::from_text(numbered_keys(5000), "f"));
  CHECK(contains(many, "5000 errors"));
  CHECK(contains(many, "4900 more"));
  CHECK(std::ranges::count(many, '\n') == 101);
  CHECK(refusal([] { Config::from_text(repeated("a: 1\n", 5000), "f"); }).starts_with("f:102:1: a: duplicate key"));
  CHECK(complaint(Config::from_text(std::string(1000, 'k') + ": 1", "f")).size() < 400);
}

TEST_CASE("what is no plain file is refused before it is read") {
  const std::filesystem::path fifo = std::filesystem::temp_directory_path() / "hearsay-config-fifo";
  std::filesystem::remove(fifo);
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(Config::from_file(fifo), doctest::Contains("is a FIFO, a file was expected"), DataError);
  std::filesystem::remove(fifo);
  CHECK_THROWS_WITH_AS(Config::from_file("/dev/zero"), doctest::Contains("is a device"), DataError);
  CHECK_THROWS_WITH_AS(Config::from_file("/"), doctest::Contains("is a folder"), DataError);
  const TemporaryFile large("hearsay-config-large", std::string(most_yaml_bytes + 1, '#'));
  CHECK_THROWS_WITH_AS(Config::from_file(large.path()), doctest::Contains("1048576"), DataError);
}

TEST_CASE("a key has one meaning: asking twice is the same answer, asking differently is a bug") {
  Config config = Config::from_text("a: 5\ns: {}");
  CHECK(config.integer("a", 1, {}, "") == 5);
  CHECK(config.integer("a", 1, {}, "") == 5);
  CHECK(config.keys().size() == 1);
  CHECK_THROWS_AS(config.real("a", 1, {}, ""), std::logic_error);
  CHECK_THROWS_AS(config.integer("a", 2, {}, ""), std::logic_error);
  CHECK_THROWS_AS(config.section("a"), std::logic_error);
  CHECK_THROWS_AS(config.real("default", -1, Range::above(0), ""), std::logic_error);
  CHECK_THROWS_AS(config.choice("default", "c", {"a", "b"}, ""), std::logic_error);
  config.section("s").integer("x", 1, {}, "");
  config.section("s").integer("y", 2, {}, "");
  CHECK(config.document().dump() == "a: 5\ns:\n  x: 1\n  y: 2\n");
}

namespace {

/// A trigger of two choices, and a section that only one of them opens.
void read_trigger(Config root) {
  Config trigger = root.section("trigger");
  if (trigger.choice("name", "adaptive", {"adaptive", "constant"}, "") == "adaptive") {
    trigger.real("horizon", 1.0, {}, "");
    root.section("history").integer("length", 2, {}, "");
  } else {
    trigger.real("threshold", 1.0, {}, "");
  }
  root.document().throw_if_invalid();
}

/// The notes of `text` with these values set on top of it, or its complaint.
std::string read_with(const std::string& text, const std::vector<std::string>& assignments) {
  Config config = Config::from_text(text, "f");
  for (const std::string& assignment : assignments) config.document().override_with(assignment);
  config.document().rehearse(read_trigger);
  try {
    read_trigger(config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  std::string notes;
  for (const std::string& note : config.document().notes()) notes += note + "\n";
  return notes;
}

// A message that holds what looks like a place is still one problem, at its own place.
TEST_CASE("an invalid configuration has its problems as values: file, line, column, message") {
  Config config = Config::from_text("a: -1\nb: {c: 'x:3:4: y'}\n", "f:1:1: g.yaml");
  config.real("a", 1.0, Range::above(0.0), "a");
  config.section("b").real("c", 1.0, {}, "c");
  config.section("b").refuse("c", "b.c and a go together");
  try {
    config.document().throw_if_invalid();
    FAIL("no error");
  } catch (const ConfigError& error) {
    REQUIRE(error.problems.size() == 3);
    CHECK(error.problems[0].source == "f:1:1: g.yaml");
    CHECK(error.problems[0].line == 1);
    CHECK(error.problems[0].column == 4);
    CHECK(error.problems[0].message == "a: must be > 0, got -1");
    CHECK(error.problems[1].message == "b.c and a go together");
    CHECK(error.problems[2].message.starts_with("b.c: expected a number, got "));
  }
}

TEST_CASE("a problem of an argument has the argument, and no line") {
  Config config = Config::from_text("a: 1");
  config.document().override_with("a=much", "set={'a': 'much'}");
  config.real("a", 1.0, {}, "a");
  try {
    config.document().throw_if_invalid();
    FAIL("no error");
  } catch (const ConfigError& error) {
    REQUIRE(error.problems.size() == 1);
    CHECK(error.problems[0].source == "set={'a': 'much'}");
    CHECK(error.problems[0].line == 0);
    CHECK(error.problems[0].message.starts_with("a: expected a number"));
  }
}

}  // namespace

TEST_CASE("a suggestion is a default: the document's word counts, and nothing was given") {
  const auto read = [](const std::string& text, std::string& dumped, std::string& given) {
    Config config = Config::from_text(text);
    config.document().suggest("a.b", "2");
    config.document().suggest("a.b", "3");
    config.document().suggest("a.name", "second");
    Config a = config.section("a");
    CHECK(a.choice("name", "first", {"first", "second"}, "n") == "second");
    const double b = a.real("b", 1.0, {}, "b");
    config.document().throw_if_invalid();
    dumped = config.document().dump(), given = config.document().given();
    return b;
  };
  std::string dumped, given;
  CHECK(read("", dumped, given) == 3.0);
  CHECK(dumped == "a:\n  name: second\n  b: 3\n");
  CHECK(given == "{}\n");
  CHECK(read("a: {b: 4}", dumped, given) == 4.0);
  Config late = Config::from_text("");
  late.section("a").real("b", 1.0, {}, "b");
  CHECK_THROWS_AS(late.document().suggest("a.b", "2"), std::logic_error);
}

TEST_CASE("keys that belonged to a choice that is overridden are left out with a note") {
  const std::string why = " is left out: what was set on top of the configuration does not know it\n";
  CHECK(read_with("trigger: {name: adaptive, horizon: 2}", {"trigger.name=constant"}) ==
        "f:1:27: trigger.horizon" + why);
  CHECK(read_with("trigger: {horizon: 2}", {"trigger.name=constant"}) == "f:1:11: trigger.horizon" + why);
  CHECK(read_with("history: {length: 3}", {"trigger={name: constant}"}) == "f:1:1: history" + why);
  CHECK(read_with("trigger: {name: adaptive, horizon: 2}", {"trigger.horizon=3"}) == "");
}

TEST_CASE("keys that are wrong under the old choice, or were set themselves, stay errors") {
  const auto refused = [](const std::string& text, const std::vector<std::string>& assignments) {
    return read_with(text, assignments).starts_with("invalid configuration (1 error)");
  };
  CHECK(refused("trigger: {name: adaptive, horizen: 2}", {"trigger.name=constant"}));
  CHECK(refused("trigger: {name: adaptive, horizon: 2}", {"trigger.name=constant", "trigger.horizon=3"}));
  CHECK(refused("history: {length: 3}", {"trigger.name=constant", "history.length=4"}));
  CHECK(refused("trigger: {name: constant, horizon: 2}", {}));
  CHECK(refused("trigger: {name: constant, horizon: 2}", {"trigger.threshold=2"}));
}

}  // namespace config_test
