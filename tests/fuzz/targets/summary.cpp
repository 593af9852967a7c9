// summary.json of a run folder: a DataError, or a summary that can be written and reads back.
#include <unistd.h>

#include "base/error.hpp"
#include "runtime/report/report.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

struct Folder {
  Folder() {
    require(::mkdtemp(name.data()) != nullptr, "a folder");
    std::filesystem::create_symlink(file.path(), std::filesystem::path(name) / "summary.json");
  }
  ~Folder() { std::filesystem::remove_all(name); }
  std::string name = "/tmp/hearsay-fuzz-XXXXXX";
  MemoryFile file;
};

}  // namespace

std::vector<std::string> seeds() {
  Summary summary;
  summary.model = "mlp";
  summary.accuracy_mean_model = 0.5;
  summary.shares["lost"] = 0.25;
  summary.replica_hashes = {1, 2};
  summary.not_written = {"model.pt"};
  Folder folder;
  std::filesystem::remove(std::filesystem::path(folder.name) / "summary.json");
  write_summary(folder.name, summary);
  std::FILE* file = std::fopen((folder.name + "/summary.json").c_str(), "rb");
  std::string text(8192, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return {text};
}

std::vector<std::string> words() {
  return {
      "null",    "true", "\"\"", "-1", "1e999", "18446744073709551616", "[]", "{}", "[[[[[[", "\"schema_version\": 2",
      "\\ud800", "0x1",  ","};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  static fuzz::Folder folder;
  folder.file.fill({data, size});
  try {
    static_cast<void>(read_summary(folder.name));
  } catch (const DataError&) {
  }
  return 0;
}
