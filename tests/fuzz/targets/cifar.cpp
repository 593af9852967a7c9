// A batch of CIFAR-10 (30 MB: what the input does not say is zeros): an Error, or images whose labels are classes.
//   the input: where it goes, whether a byte is missing at the end, and the bytes
#include <unistd.h>

#include "apps/datasets/datasets.hpp"
#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

constexpr std::size_t batch_bytes = 10000 * 3073;

struct Folder {
  Folder() {
    require(::mkdtemp(name.data()) != nullptr, "a folder");
    for (const char* batch : {"data_batch_1.bin", "test_batch.bin"})
      std::filesystem::create_symlink(file.path(), std::filesystem::path(name) / batch);
  }
  ~Folder() { std::filesystem::remove_all(name); }
  std::string name = "/tmp/hearsay-fuzz-XXXXXX";
  MemoryFile file;
};

}  // namespace

std::vector<std::string> seeds() { return {std::string("\0\0\0\0\1\1\2", 7), raw(std::uint32_t{3073}) + "\1\11"}; }

std::vector<std::string> words() { return {raw(std::uint32_t{2 * 3073}), "\1\12", "\1\xff"}; }

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  static fuzz::Folder folder;
  fuzz::Reader reader({data, size});
  const auto at = reader.take<std::uint32_t>() % fuzz::batch_bytes;
  const std::size_t length = fuzz::batch_bytes - (reader.take<std::uint8_t>() == 0 ? 1 : 0);
  folder.file.fill({}, length);
  folder.file.put(reader.rest().first(std::min(reader.rest().size(), length - std::min(length, at))), at);
  try {
    Config config = Config::from_text("{name: cifar10, batches: [1], path: " + folder.name + "}");
    const DataSet images = chosen_entry(datasets(), config, "cifar10", "").make(config, 1)->load();
    fuzz::require(length == fuzz::batch_bytes && images.train->size() == 10000, "10,000 images");
    for (const auto label : images.shares.groups) fuzz::require(label < 10, "a label is a class");
  } catch (const Error&) {
  }
  return 0;
}
