// Rows of numbers in a text file, foretold as numbers or as classes, with and without a header: an Error, or as many
// rows of numbers as the file has.
//   the input: a byte that says what the target is, and whether there is a header; then the file
#include <cmath>
#include <memory>

#include "apps/datasets/datasets.hpp"
#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

std::unique_ptr<DatasetSource> rows(const std::string& path, bool classes, bool header) {
  Config config =
      Config::from_text("{path: " + path + ", test_fraction: 0.4, task: " + (classes ? "classes" : "numbers") +
                        ", header: " + (header ? "true" : "false") + "}");
  return chosen_entry(datasets(), config, "csv", "").make(config, 1);
}

void load(const DatasetSource& source, bool classes) {
  try {
    const DataSet data = source.load();
    for (const auto& examples : {data.train, data.test}) {
      std::vector<float> in(data.shape.inputs.count()), number(1);
      std::vector<std::int64_t> label(1);
      for (std::uint32_t i = 0; i < examples->size(); ++i) {
        if (classes)
          examples->batch({&i, 1}, std::span(in), std::span(label), nullptr);
        else
          examples->batch({&i, 1}, std::span(in), std::span(number), nullptr);
        require(!classes || (label[0] >= 0 && label[0] < data.shape.targets.classes), "a label is a class");
        // Rows to test on may lie far from those that were trained on.
        for (const float x : in) require(std::isfinite(x) || examples == data.test, "inputs are scaled");
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace

std::vector<std::string> seeds() {
  return {"\1x,y\n1,2\n3,4.5\n-1e3,0\n", "\3\xef\xbb\xbfx,y\r\n1,0\r\n3,1\r\n2,1\r\n\r\n",
          std::string("\0", 1) + "1,2,3\n4,5,6\n7,8,9\n", "\2\"1\",\"0\"\n\"2\",\"1\"\n\"2\",\"1\"\n",
          "\1t,y\n1700000001,1\n1700000002,2\n1700000003,1\n"};
}

std::vector<std::string> words() {
  return {",",   "\n",        "\r\n",     "\"",           "1e308", "-1e308", "5e-324",
          "nan", "199999999", "\xff\xfe", "\xef\xbb\xbf", "\n\n",  " "};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  static fuzz::MemoryFile file;
  fuzz::Reader reader({data, size});
  const auto kind = reader.take<std::uint8_t>();
  file.fill(reader.rest());
  static const std::string path = file.path().string();
  static const std::unique_ptr<DatasetSource> sources[]{fuzz::rows(path, false, false), fuzz::rows(path, false, true),
                                                        fuzz::rows(path, true, false), fuzz::rows(path, true, true)};
  fuzz::load(*sources[kind % 4], kind % 4 >= 2);
  return 0;
}
