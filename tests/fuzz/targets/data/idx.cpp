// The four IDX files of MNIST, plain and packed: a DataError or ConfigError, or images whose
// sizes and labels fit together.
//   the input: a byte that says which file it is, and how it is packed; then the file
#include <unistd.h>
#include <memory>

#include "apps/datasets/datasets.hpp"
#include "apps/datasets/file_reader.hpp"
#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

std::string word(std::uint32_t x) {
  return {static_cast<char>(x >> 24), static_cast<char>(x >> 16), static_cast<char>(x >> 8), static_cast<char>(x)};
}
std::string images(std::uint32_t count) {
  return word(0x803) + word(count) + word(28) + word(28) + std::string(count * 784, '\1');
}
std::string labels(std::uint32_t count) { return word(0x801) + word(count) + std::string(count, '\2'); }

/// A folder of links to files in memory, once a process.
struct Folder {
  Folder() {
    require(::mkdtemp(name.data()) != nullptr, "a folder");
    const std::string stems[]{"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                              "t10k-labels-idx1-ubyte"};
    for (std::size_t i = 0; i < 4; ++i) std::filesystem::create_symlink(files[i].path(), path() / stems[i]);
    for (const char* ending : {".gz", ".xz"})
      std::filesystem::create_symlink(files[0].path(), path() / (std::string("packed") + ending));
  }
  ~Folder() { std::filesystem::remove_all(path()); }
  std::filesystem::path path() const { return name; }
  std::string name = "/tmp/hearsay-fuzz-XXXXXX";
  MemoryFile files[4];
};

std::unique_ptr<DatasetSource> mnist(const std::string& path) {
  Config config = Config::from_text("{name: mnist, path: " + path + "}");
  return chosen_entry(datasets(), config, "mnist", "").make(config, 1);
}

void load(const DatasetSource& source) {
  try {
    const DataSet data = source.load();
    for (const auto& examples : {data.train, data.test}) {
      std::vector<float> pixels(data.shape.inputs.count());
      std::vector<std::int64_t> label(1);
      for (std::uint32_t i = 0; i < examples->size(); ++i) {
        examples->batch({&i, 1}, std::span(pixels), std::span(label), nullptr);
        require(label[0] >= 0 && label[0] < data.shape.targets.classes, "a label is a class");
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace

std::vector<std::string> seeds() {
  return {'\0' + images(2), '\1' + labels(2),
          std::string("\2\x1f\x8b\x08\0\0\0\0\0\0\3K\4\0\xc3\xb6\xb9\xe8\1\0\0\0", 22),
          std::string("\3\xfd"
                      "7zXZ\0\0\4\xe6\xd6\xb4"
                      "F\4\xc0\0\0\0\0",
                      18)};
}

std::vector<std::string> words() {
  return {word(0x803),
          word(0x801),
          word(28),
          word(2),
          word(0xffffffff),
          word(0x80000000),
          "\x1f\x8b\x08",
          "\xfd"
          "7zXZ"};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  static fuzz::Folder folder;
  fuzz::Reader reader({data, size});
  const auto kind = reader.take<std::uint8_t>();
  static const auto mnist = fuzz::mnist(folder.path().string());
  const auto packed = kind == 2 || kind == 3;
  folder.files[0].fill(kind == 1 ? fuzz::bytes_of(fuzz::images(2)) : reader.rest());
  folder.files[1].fill(kind == 1 ? reader.rest() : fuzz::bytes_of(fuzz::labels(2)));
  folder.files[2].fill(fuzz::bytes_of(fuzz::images(1)));
  folder.files[3].fill(fuzz::bytes_of(fuzz::labels(1)));
  if (packed) {
    try {
      constexpr std::size_t most = 4096;
      const auto bytes = read_file(folder.path() / (kind == 2 ? "packed.gz" : "packed.xz"), most);
      fuzz::require(bytes.size() <= most + 1, "no more than is asked for");
    } catch (const DataError&) {
    }
    return 0;
  }
  fuzz::load(*mnist);
  return 0;
}
