// A file of numpy.save as inputs and as targets: a DataError or ConfigError, or as many rows of finite numbers as it
// says.
//   the input: a byte that says what targets are; then the file
#include <cmath>
#include <memory>

#include "apps/datasets/datasets.hpp"
#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

std::string file(const std::string& descr, const std::string& shape, std::size_t bytes) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  std::string text("\x93NUMPY\1\0", 8);
  text += static_cast<char>(header.size());
  text += '\0';
  return text + header + std::string(bytes, '\1');
}

std::unique_ptr<DatasetSource> arrays(const std::string& path, const std::string& task) {
  Config config =
      Config::from_text("{inputs: " + path + ", targets: " + path + ", test_fraction: 0.5, task: " + task + "}");
  return chosen_entry(datasets(), config, "npy", "").make(config, 1);
}

void load(const DatasetSource& source, bool classes) {
  try {
    const DataSet data = source.load();
    for (const auto& examples : {data.train, data.test}) {
      std::vector<float> in(data.shape.inputs.count()), numbers(data.shape.targets.count());
      std::vector<std::int64_t> label(1);
      for (std::uint32_t i = 0; i < examples->size(); ++i) {
        if (classes)
          examples->batch({&i, 1}, std::span(in), std::span(label), nullptr);
        else
          examples->batch({&i, 1}, std::span(in), std::span(numbers), nullptr);
        for (const float number : numbers) require(std::isfinite(number) || number != 0.0F, "numbers are read");
        require(!classes || (label[0] >= 0 && label[0] < data.shape.targets.classes), "a label is a class");
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace

std::vector<std::string> seeds() {
  return {'\0' + file("<f4", "(4, 2)", 32), '\1' + file("|u1", "(3,)", 3), '\0' + file("<f8", "(2, 1, 2)", 32),
          '\1' + file("<i2", "(5, 1)", 10), '\0' + file("<f4", "(4,)", 16)};
}

std::vector<std::string> words() {
  return {"'descr'", "'shape'", "(2,)",  "18446744073709551615", "4294967296",  "True", "<i8",
          "<f4",     "{",       "(0,1)", "\x93NUMPY\2",          "\x93NUMPY\3", "()",   "|b1"};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  static fuzz::MemoryFile file;
  fuzz::Reader reader({data, size});
  const bool classes = reader.take<std::uint8_t>() % 2 == 1;
  file.fill(reader.rest());
  static const auto numbers = fuzz::arrays(file.path().string(), "numbers");
  static const auto labelled = fuzz::arrays(file.path().string(), "classes");
  fuzz::load(classes ? *labelled : *numbers, classes);
  return 0;
}
