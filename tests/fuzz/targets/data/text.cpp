// A text as characters or bytes, in blocks: a DataError or ConfigError, or sequences of tokens that there are, each
// token of the targets being the next one's input.
//   the input: a byte that says what a token is and how long a sequence; then the file
#include <array>
#include <memory>

#include "apps/datasets/datasets.hpp"
#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

void require_sequences(const Examples& examples, const ExampleShape& shape) {
  const std::size_t length = shape.inputs.count();
  require(shape.targets.count() == length, "a target a token");
  std::vector<std::int64_t> in(length), out(length);
  for (std::uint32_t i = 0; i < examples.size(); ++i) {
    examples.batch({&i, 1}, std::span(in), std::span(out), nullptr);
    for (std::size_t t = 0; t < length; ++t) {
      require(in[t] >= 0 && in[t] < shape.inputs.classes, "a token is one");
      require(out[t] >= 0 && out[t] < shape.targets.classes, "what is foretold is a token");
      require(t + 1 == length || out[t] == in[t + 1], "the target is the next token");
    }
  }
}

std::unique_ptr<DatasetSource> text(const std::string& path, std::uint8_t kind) {
  const std::string unit = kind % 2 == 1 ? "bytes" : "characters";
  const std::string documents = kind / 2 % 2 == 1 ? "paragraph" : "file";
  Config config = Config::from_text("{path: " + path + ", unit: " + unit + ", documents: " + documents +
                                    ", block: " + std::to_string(1 + kind / 4 % 8) +
                                    ", stride: " + std::to_string(kind / 32) + ", test_fraction: 0.3}");
  return chosen_entry(datasets(), config, "text", "").make(config, 1);
}

void load(const DatasetSource& source) {
  try {
    const DataSet data = source.load();
    require_sequences(*data.train, data.shape);
    require_sequences(*data.test, data.shape);
    require(data.shares.groups.empty() || data.shares.groups.size() == data.train->size(), "a group a sequence");
    for (const std::uint32_t group : data.shares.groups) require(group < data.shares.count, "a group is one");
  } catch (const Error&) {
  }
}

}  // namespace

std::vector<std::string> seeds() {
  return {"\4The first document has some words.\n\nThe second one, too.\n", "\7naïve café – größer\n\n\nzwei\n",
          std::string("\13\0\1\2 bytes", 9) + std::string(40, '\xff'), "\x62" + std::string(60, 'a'),
          "\4\xef\xbb\xbf"
          "one\r\n\r\ntwo and more words\r\n"};
}

std::vector<std::string> words() {
  return {"\n\n",         "\r\n",         "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
          "\xef\xbb\xbf", "\xed\xa0\x80", "\xff",     "\xc0\x80"};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  static fuzz::MemoryFile file;
  fuzz::Reader reader({data, size});
  const auto kind = reader.take<std::uint8_t>();
  file.fill(reader.rest());
  static std::array<std::unique_ptr<DatasetSource>, 256> sources;
  if (!sources[kind]) sources[kind] = fuzz::text(file.path().string(), kind);
  fuzz::load(*sources[kind]);
  return 0;
}
