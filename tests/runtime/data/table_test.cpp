// Rows of numbers: examples are the file's rows, scaled by the training rows' own moments; images that are drawn when
// they are wanted.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "base/error.hpp"
#include "runtime/data/classes.hpp"
#include "tests/runtime/data/load.hpp"
#include "tests/runtime/data/temporary_files.hpp"

namespace table_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

struct Row {
  std::vector<float> inputs;
  float number = 0.0F;
  std::int64_t label = 0;
};

Row row(const DataSet& data, const Examples& examples, std::uint32_t index) {
  Row made;
  made.inputs.resize(data.shape.inputs.count());
  if (data.shape.targets.element == TensorShape::Element::numbers)
    examples.batch(std::vector{index}, std::span(made.inputs), std::span(&made.number, 1), nullptr);
  else
    examples.batch(std::vector{index}, std::span(made.inputs), std::span(&made.label, 1), nullptr);
  return made;
}

struct Csv {
  TemporaryFolder folder;
  DataSet load(const std::string& text, const std::string& more = "") {
    const auto file = folder.write("rows.csv", bytes_of(text));
    return load_set("csv", "{path: " + file.string() + (more.empty() ? "" : ", " + more) + "}");
  }
  template <class E>
  std::string error(const std::string& text, const std::string& more = "") {
    return message_of<E>([&] { load(text, more); });
  }
};

}  // namespace

TEST_CASE("csv: every column but the target's is an input of mean 0 and deviation 1 over the training rows") {
  Csv csv;
  std::string text = "a,b,same,y\n";
  for (int i = 0; i < 20; ++i)
    text += std::to_string(i) + "," + std::to_string(i * i) + ",7," + std::to_string(0.5 * i) + "\n";
  const DataSet data = csv.load(text, "test_fraction: 0.25");
  REQUIRE(data.train->size() == 15);
  REQUIRE(data.test->size() == 5);
  CHECK(data.metrics.front().name == "rmse");
  CHECK(data.shares.groups.empty());
  double sums[3]{}, squares[3]{};
  for (std::uint32_t i = 0; i < 15; ++i) {
    const Row r = row(data, *data.train, i);
    REQUIRE(r.inputs.size() == 3);
    for (int j = 0; j < 3; ++j) sums[j] += r.inputs[j], squares[j] += r.inputs[j] * r.inputs[j];
    CHECK(r.number == 0.5F * static_cast<float>(i / 3 * 4 + i % 3));  // rows 3, 7, 11, … are tested on
  }
  for (int j = 0; j < 3; ++j) {
    CHECK(sums[j] == doctest::Approx(0.0).epsilon(1e-5));
    CHECK(squares[j] == doctest::Approx(j < 2 ? 15.0 : 0.0).epsilon(1e-5));
  }
  for (std::uint32_t i = 0; i < 5; ++i) CHECK(row(data, *data.test, i).number == 0.5F * (3.0F + 4.0F * i));
}

TEST_CASE("csv: classes are targets and groups; columns can be named, separated otherwise, and have no header") {
  Csv csv;
  const std::string text = "0; 1.5;2\n1;-2e3;0\n2; \"4\";1\n1;0;0\n";
  const DataSet last = csv.load(text, "separator: ';', header: false, task: classes, test_fraction: 0.25");
  CHECK(last.shape.targets.classes == 3);
  CHECK(last.shares.groups == std::vector<std::uint32_t>{2, 0, 1});
  CHECK(row(last, *last.test, 0).label == 0);
  const DataSet first =
      csv.load(text, "separator: ';', header: false, task: classes, test_fraction: 0.25, target: '2', group: '0'");
  CHECK(first.shares.groups == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(first.shape.inputs.count() == 1);
  CHECK(first.metrics.front().name == "accuracy");
}

TEST_CASE("csv: rows to test on may lie in a file of their own") {
  Csv csv;
  const auto test = csv.folder.write("test.csv", bytes_of("x,y\n9,1\n"));
  const DataSet data = csv.load("x,y\n1,5\n3,6\n", "test_path: " + test.string());
  CHECK(data.train->size() == 2);
  CHECK(data.test->size() == 1);
  CHECK(row(data, *data.test, 0).inputs.front() == 7.0F);  // (9 − 2)/1
}

TEST_CASE("csv: a column is scaled alike wherever its zero is, and however large its numbers are") {
  Csv csv;
  const auto inputs = [&](double zero, double unit) {
    std::string text = "x,y\n";
    for (int i = 0; i < 8; ++i) text += std::to_string(zero + unit * (i * i % 5)) + ",1\n";
    const DataSet data = csv.load(text, "test_fraction: 0.25");
    std::vector<float> all;
    for (std::uint32_t i = 0; i < data.train->size(); ++i) all.push_back(row(data, *data.train, i).inputs.front());
    return all;
  };
  const auto plain = inputs(0, 1);
  for (const float x : plain) CHECK(std::abs(x) < 3);
  const auto as_plain = [&](const std::vector<float>& others) {
    for (std::size_t i = 0; i < plain.size(); ++i) CHECK(others[i] == doctest::Approx(plain[i]).epsilon(1e-6));
  };
  as_plain(inputs(1'700'000'000, 1));
  as_plain(inputs(1e12, 1));
  as_plain(inputs(0, 1e200));  // whose squares are no numbers
  CHECK(inputs(1'700'000'000, 0) == std::vector<float>(plain.size(), 0.0F));
  // Times in nanoseconds, which are 256 apart as doubles.
  const auto nanoseconds = inputs(1.7e18, 20 * 256);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(nanoseconds[i] == doctest::Approx(plain[i]).epsilon(1e-3));
  // One number, rounded in two ways.
  const DataSet rounded = csv.load("x,y\n0.3,1\n0.30000000000000004,1\n0.3,1\n0.3,1\n", "test_fraction: 0.25");
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(std::abs(row(rounded, *rounded.train, i).inputs.front()) < 1e-15F);
}

TEST_CASE("csv: a byte order mark, CRLF line ends and blank lines at the end change nothing") {
  Csv csv;
  const std::string text = "a,b,y\n1,2,3\n4,6,5\n7,8,9\n1,1,1\n";
  std::string of_windows = "\xef\xbb\xbf";
  for (const char c : text) of_windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const DataSet plain = csv.load(text, "target: a, test_fraction: 0.25");
  const std::vector<float> expected = row(plain, *plain.train, 1).inputs;
  for (const std::string& other : {of_windows, text + "\n \n\r\n", of_windows + "\r\n"}) {
    const DataSet same = csv.load(other, "target: a, test_fraction: 0.25");
    CHECK(same.train->size() == 3);
    CHECK(row(same, *same.train, 1).inputs == expected);
  }
  CHECK(contains(csv.error<DataError>("\xff\xfe" + std::string("a\0,\0", 4)), "rows.csv: is UTF-16"));
  CHECK(contains(csv.error<DataError>(std::string("a\0,\0y\0\n\0", 8)), "rows.csv: has a NUL byte at byte 1"));
}

TEST_CASE("csv: header and lines have equally many fields, and columns names of their own") {
  Csv csv;
  CHECK(contains(csv.error<DataError>("a,b,y\n1,2,3,4\n2,2,3,4\n"),
                 "rows.csv: the header has 3 names, line 2 has 4 fields; if the first field is a row's name, as R"));
  CHECK(contains(csv.error<DataError>("a,b,y\n1,2\n2,2\n"), "the header has 3 names, line 2 has 2 fields"));
  CHECK(contains(csv.error<DataError>("a,b,a\n1,2,3\n2,2,3\n"), "has the name 'a' twice"));
  const auto swapped = csv.folder.write("test.csv", bytes_of("b,a\n9,1\n"));
  CHECK(contains(csv.error<DataError>("a,b\n1,2\n3,4\n", "test_path: " + swapped.string()),
                 "test.csv: column 1 is 'b', but in "));
}

TEST_CASE("classes and groups: at most a million, whoever says them") {
  Csv csv;
  CHECK(contains(csv.error<DataError>("a,y\n1,0\n2,199999999\n3,1\n4,0\n", "task: classes, test_fraction: 0.25"),
                 "line 3: the class 199999999 is no whole number from 0 to 999999"));
  CHECK(contains(csv.error<DataError>("a,g,y\n1,0,2\n2,1e6,3\n3,1,1\n4,0,4\n", "group: g, test_fraction: 0.25"),
                 "line 3: the group 1.0e+06 is no whole number"));
  DataSet data{.name = "own"};
  data.shape.targets.classes = most_classes;
  CHECK_NOTHROW(require_few_classes(data));
  data.shape.inputs.classes = most_classes + 1;
  CHECK(contains(message_of<DataError>([&] { require_few_classes(data); }), "data 'own': 1000001 tokens"));
  data.shape.inputs.classes = 0, data.shape.targets.classes = 2'000'000;
  CHECK_THROWS_AS(require_few_classes(data), DataError);
  data.shape.targets.classes = 2, data.shares.count = 2'000'000;
  CHECK_THROWS_AS(require_few_classes(data), DataError);
}

TEST_CASE("csv: what is wrong is named by file, line and column") {
  Csv csv;
  CHECK(
      contains(csv.error<DataError>("a,b\n1,2\n3\n", "test_fraction: 0.5"), "rows.csv: line 3: 1 fields, expected 2"));
  CHECK(contains(csv.error<DataError>("a,b\n1,2\n3,x4\n5,6\n", "test_fraction: 0.4"),
                 "line 3, column 'b': 'x4' is no finite number"));
  CHECK(contains(csv.error<DataError>("a,b\n1,2\n3,nan\n", "test_fraction: 0.5"), "'nan' is no finite number"));
  CHECK(contains(csv.error<DataError>("a,b\n1,2\n\n3,4\n"), "line 3 is empty"));
  CHECK(contains(csv.error<DataError>("a,b\n"), "has no rows"));
  CHECK(contains(csv.error<DataError>("a,b\n1,2\n"), "too few to train on some and test on others"));
  CHECK(contains(csv.error<DataError>("a,b\n1,0\n2,1.5\n3,1\n4,0\n", "task: classes, test_fraction: 0.25"),
                 "line 3: the class 1.5"));
  CHECK(contains(csv.error<DataError>("a,b\n1,0\n2,1\n3,1\n4,7\n", "task: classes, test_fraction: 0.25"),
                 "line 5: this class does not occur"));
  CHECK(contains(csv.error<ConfigError>("a,b\n1,2\n3,4\n", "target: c, test_fraction: 0.5"),
                 "has no column 'c'; it has a, b"));
  CHECK(contains(csv.error<DataError>("a,b\n1,2\n3,-1e300\n4,5\n5,6\n", "test_fraction: 0.25"),
                 "rows.csv: line 3, column 'b': -1.0e+300 is too large for a target"));
  CHECK(contains(csv.error<DataError>("a,b\n1,2\n3,4\n4,5\n5,1e39\n", "test_fraction: 0.25"), "line 5, column 'b': "));
  CHECK_NOTHROW(csv.load("a,b\n1e300,2\n3,3e38\n4,5\n5,6\n", "test_fraction: 0.25"));
  CHECK_THROWS_AS(csv.load("a,b\n1,2\n", "separator: ab"), ConfigError);
  CHECK(contains(message_of<ConfigError>([] { load_set("csv", "{}"); }), "data.path is empty"));
}

TEST_CASE("synthetic images: drawn by index, the same for every batch, of the class that the index says") {
  const DataSet data = load_set("synthetic_images", "{side: 8, classes: 3, train_size: 4000000, test_size: 5}");
  CHECK(data.train->size() == 4'000'000);
  CHECK(data.shape.inputs.sizes == std::vector<std::int64_t>{3, 8, 8});
  const Row far = row(data, *data.train, 3'999'999), again = row(data, *data.train, 3'999'999);
  CHECK(far.inputs == again.inputs);
  CHECK(far.label == 3'999'999 % 3);
  CHECK(data.shares.groups[3'999'999] == 3'999'999 % 3);
  CHECK(row(data, *data.train, 3).inputs != row(data, *data.train, 0).inputs);
  CHECK(row(data, *data.train, 0).inputs != row(data, *data.test, 0).inputs);

  // Without noise and up to the phase, images of a class are one: their energy is the class's.
  const DataSet clean = load_set("synthetic_images", "{side: 64, classes: 2, noise: 0, train_size: 40, test_size: 1}");
  const auto energy = [&](std::uint32_t i) {
    double sum = 0.0;
    for (const float v : row(clean, *clean.train, i).inputs) sum += double{v} * double{v};
    return sum / (64 * 64 * 3);
  };
  for (std::uint32_t i = 2; i < 40; ++i) CHECK(energy(i) == doctest::Approx(energy(i % 2)).epsilon(0.2));
  CHECK_THROWS_AS(load_set("synthetic_images", "{side: 7}"), ConfigError);
  CHECK(contains(message_of<ConfigError>([] { load_set("synthetic_images", "{train_size: 4000000000}"); }),
                 "train_size: must be in [1, "));
}

}  // namespace table_test
