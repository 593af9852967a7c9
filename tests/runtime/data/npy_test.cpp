// Arrays of numpy: every kind of number is read as it was written, inputs are scaled by the training rows' own moments,
// and files that are not what they say are refused.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "tests/runtime/data/load.hpp"
#include "tests/runtime/data/temporary_files.hpp"

namespace npy_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

/// As numpy.save writes it, version 1 or 2.
template <class Number>
Bytes npy(const std::string& descr, const std::string& shape, const std::vector<Number>& values, char version = 1,
          const std::string& order = "False") {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  const std::size_t before = version == 1 ? 10 : 12;
  header.resize((before + header.size() + 64) / 64 * 64 - before, ' ');
  header.back() = '\n';
  std::string text = std::string("\x93NUMPY") + version + '\0';
  for (std::size_t i = 0; i < before - 8; ++i) text += static_cast<char>(header.size() >> 8 * i & 0xff);
  text += header;
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number));
  return {text.begin(), text.end()};
}

struct Files {
  TemporaryFolder folder;
  void write(const std::string& name, const Bytes& bytes) const { folder.write(name + ".npy", bytes); }
  std::string yaml(const std::string& more = "") const {
    const std::string path = folder.path().string();
    return "{inputs: " + path + "/x.npy, targets: " + path + "/y.npy" + more + "}";
  }
  DataSet load(const std::string& more = "") const { return load_set("npy", yaml(more)); }
  template <class E>
  std::string error(const std::string& more = "") const {
    return message_of<E>([&] { static_cast<void>(load(more)); });
  }
};

template <class Target>
std::pair<std::vector<float>, std::vector<Target>> row(const DataSet& data, const Examples& examples,
                                                       std::uint32_t index) {
  std::vector<float> in(data.shape.inputs.count());
  std::vector<Target> out(data.shape.targets.count());
  examples.batch(std::vector{index}, std::span(in), std::span(out), nullptr);
  return {in, out};
}

template <class Number>
void check_kind(const Files& files, const std::string& descr) {
  CAPTURE(descr);
  files.write("x", npy<Number>(descr, "(4,)", {1, 0, 100, 7}));
  const DataSet data = files.load(", standardise: false, test_fraction: 0.25");
  CHECK(data.shape.inputs.sizes == std::vector<std::int64_t>{1});
  CHECK(row<float>(data, *data.train, 2).first == std::vector<float>{100});
  CHECK(row<float>(data, *data.test, 0).first == std::vector<float>{7});
}

}  // namespace

TEST_CASE("npy: every kind of number is read as it was written") {
  const Files files;
  files.write("y", npy<float>("<f4", "(4, 2)", {1, 2, 3, 4, 5, 6, 7, 8}, 2));
  check_kind<float>(files, "<f4");
  check_kind<double>(files, "<f8");
  check_kind<std::int8_t>(files, "|i1");
  check_kind<std::int16_t>(files, "<i2");
  check_kind<std::int32_t>(files, "<i4");
  check_kind<std::int64_t>(files, "<i8");
  check_kind<std::uint8_t>(files, "|u1");
  check_kind<std::uint16_t>(files, "<u2");
  check_kind<std::uint32_t>(files, "<u4");
  check_kind<std::uint64_t>(files, "<u8");
  const DataSet data = files.load(", standardise: false, test_fraction: 0.25");
  CHECK(data.shape.targets.sizes == std::vector<std::int64_t>{2});
  CHECK(row<float>(data, *data.train, 1).second == std::vector<float>{3, 4});
  CHECK(data.metrics.front().name == "rmse");
}

TEST_CASE(
    "npy: inputs have mean 0 and deviation 1 over the training rows, column by column; tests are every n-th row") {
  const Files files;
  std::vector<double> x;
  std::vector<std::int32_t> y;
  for (int i = 0; i < 20; ++i) x.insert(x.end(), {1.0 * i, 1.0 * i * i, 5.0, -i / 3.0}), y.push_back(i % 3);
  files.write("x", npy<double>("<f8", "(20, 2, 2)", x));
  files.write("y", npy<std::int32_t>("<i4", "(20,)", y));
  const DataSet data = files.load(", task: classes, test_fraction: 0.25");
  REQUIRE(data.train->size() == 15);
  REQUIRE(data.test->size() == 5);
  CHECK(data.shape.inputs.sizes == std::vector<std::int64_t>{2, 2});
  CHECK(data.shape.targets.classes == 3);
  CHECK(data.shares.count == 3);
  double sums[4]{}, squares[4]{};
  for (std::uint32_t i = 0; i < 15; ++i) {
    const auto [in, out] = row<std::int64_t>(data, *data.train, i);
    const auto whole = i / 3 * 4 + i % 3;  // rows 3, 7, 11, … are tested on
    CHECK(out.front() == whole % 3);
    CHECK(data.shares.groups[i] == whole % 3);
    for (int j = 0; j < 4; ++j) sums[j] += in[j], squares[j] += in[j] * in[j];
  }
  for (int j = 0; j < 4; ++j) {
    CHECK(std::abs(sums[j]) < 1e-5);
    CHECK(squares[j] == doctest::Approx(j == 2 ? 0.0 : 15.0).epsilon(1e-5));
  }
}

TEST_CASE("npy: (N,) is (N, 1), of inputs and of what is tested on") {
  const Files files;
  files.write("x", npy<float>("<f4", "(2,)", {1, 3}));
  files.write("y", npy<float>("<f4", "(2,)", {5, 6}));
  files.write("tx", npy<float>("<f4", "(1, 1)", {9}));
  files.write("ty", npy<float>("<f4", "(1, 1)", {1}));
  const std::string path = files.folder.path().string();
  const DataSet data = files.load(", test_inputs: " + path + "/tx.npy, test_targets: " + path + "/ty.npy");
  CHECK(data.shape.inputs.sizes == std::vector<std::int64_t>{1});
  CHECK(row<float>(data, *data.train, 1) == std::pair(std::vector<float>{1}, std::vector<float>{6}));
  CHECK(row<float>(data, *data.test, 0) == std::pair(std::vector<float>{7}, std::vector<float>{1}));
}

TEST_CASE("npy: rows to test on may lie in files of their own") {
  const Files files;
  files.write("x", npy<float>("<f4", "(2, 1)", {1, 3}));
  files.write("y", npy<float>("<f4", "(2,)", {5, 6}));
  files.write("tx", npy<float>("<f4", "(1, 1)", {9}));
  files.write("ty", npy<float>("<f4", "(1,)", {1}));
  const std::string path = files.folder.path().string();
  const DataSet data = files.load(", test_inputs: " + path + "/tx.npy, test_targets: " + path + "/ty.npy");
  CHECK(data.train->size() == 2);
  CHECK(row<float>(data, *data.test, 0).first == std::vector<float>{7});  // (9 − 2)/1
  CHECK_THROWS_AS(static_cast<void>(files.load(", test_inputs: " + path + "/tx.npy")), ConfigError);
}

TEST_CASE("npy: what is wrong is named by file and row") {
  const Files files;
  const Bytes good = npy<float>("<f4", "(4, 1)", {1, 2, 3, 4});
  const auto refused = [&](const Bytes& x, const std::string& why) {
    files.write("x", x);
    const std::string message = files.error<DataError>(", test_fraction: 0.5");
    CAPTURE(message);
    CHECK(contains(message, "x.npy"));
    CHECK(contains(message, why));
  };
  files.write("y", good);
  const std::string text = "no array, but a text of some length";
  refused({text.begin(), text.end()}, "is no file of numpy.save");
  refused(Bytes(good.begin(), good.begin() + 40), "is truncated: it ends within its header");
  refused(Bytes(good.begin(), good.end() - 1), "its header says 4 rows of 4 bytes, but 15 bytes follow it");
  Bytes longer = good;
  longer.push_back(0);
  refused(longer, "its header says 4 rows of 4 bytes, but 17 bytes follow it");
  refused(npy<float>("<f4", "(5, 1)", {1, 2, 3, 4}), "says 5 rows of 4 bytes, but 16 bytes follow");
  refused(npy<float>("<f4", "(4, 4611686018427387904)", {1, 2, 3, 4}), "its rows are too long");
  refused(npy<float>("<f4", "(4, 4294967296, 4294967296)", {1, 2, 3, 4}), "its rows are too long");
  refused(npy<float>("<f4", "(0, 1)", {}), "has no rows");
  refused(npy<float>("<f4", "(4, 0)", {}), "its rows have no numbers");
  refused(npy<float>("<f4", "()", {1}), "its shape is ()");
  refused(npy<float>("<f4", "(-1, 1)", {1}), "has a shape that is no list of sizes");
  refused(npy<float>(">f4", "(4, 1)", {1, 2, 3, 4}), "says that its numbers are '>f4'");
  Bytes version = good;
  version[6] = 9;
  refused(version, "has version 9 of numpy's format");
  refused(npy<float>("<f4", "(" + std::string(130, '1') + ",)", {1}), "has a shape that is no list of sizes");
  std::string ones = "(4";
  for (int i = 0; i < 64; ++i) ones += ", 1";
  refused(npy<float>("<f4", ones + ")", {1, 2, 3, 4}), "a shape of more than 64 sizes");
  Bytes records = npy<float>("<f4", "(4, 1)", {1, 2, 3, 4});
  const std::string plain = "'<f4'", structured = "[('a', '<f4')]";
  std::string of_records(records.begin(), records.end());
  of_records.replace(of_records.find(plain), plain.size() + structured.size() - plain.size(), structured);
  refused({of_records.begin(), of_records.end()}, "its rows are records (a structured array)");
  refused(npy<float>("|O", "(4, 1)", {1, 2, 3, 4}), "says that its numbers are '|O'");
  refused(npy<float>("<f4", "(2, 2)", {1, 2, 3, 4}, 1, "True"), "is in Fortran's order");
  refused(npy<float>("<f4", "(4, 1)", {1, 2, 3, 4}, 1, "Maybe"), "neither True nor False");
  refused(npy<float>("<f4", "(2, 1)", {1, 2}), "x.npy has 2 rows, and ");
  refused(npy<float>("<f4", "(4, 1)", {1, 2, NAN, 4}), "row 2 has a number that is not finite");
  files.write("x", good);
  files.write("y", npy<double>("<f8", "(4, 2)", {1, 2, 3, 4, 5, 1e300, 7, 8}));
  const DataSet large = files.load(", test_fraction: 0.25");
  CHECK_NOTHROW(row<float>(large, *large.train, 1));
  CHECK(contains(message_of<DataError>([&] { row<float>(large, *large.train, 2); }),
                 "y.npy: row 2, column 1: 1.0e+300 is too large for a target"));
  files.write("y", good);
  CHECK(contains(files.error<DataError>(", test_fraction: 0.01"), "too few to train on some and test on others"));
  files.write("y", npy<float>("<f4", "(4,)", {0, 1.5, 1, 0}));
  CHECK(contains(files.error<DataError>(", task: classes, test_fraction: 0.25"),
                 "y.npy: row 1 is no class: 1.5 is no whole number from 0 to 999999"));
  files.write("y", npy<float>("<f4", "(4,)", {0, 2e8F, 1, 0}));
  CHECK(contains(files.error<DataError>(", task: classes, test_fraction: 0.25"), "row 1 is no class"));
  files.write("y", npy<float>("<f4", "(4, 2)", {1, 0, 0, 1, 1, 0, 1, 0}));
  CHECK(
      contains(files.error<DataError>(", task: classes, test_fraction: 0.25"), "row 0 is no class: it has 2 numbers"));
  files.write("y", npy<float>("<f4", "(4,)", {0, 1, 1, 7}));
  CHECK(contains(files.error<DataError>(", task: classes, test_fraction: 0.25"), "row 3: this class does not occur"));
  CHECK(contains(message_of<ConfigError>([] { load_set("npy", "{}"); }), "data.inputs is empty"));
}

}  // namespace npy_test
