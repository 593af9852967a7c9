// CIFAR-10 (Krizhevsky 2009), binary version: 50,000 + 10,000 photographs, 32×32 RGB, in files of 10,000 records
//   label (1 byte, 0 to 9), red plane, green plane, blue plane (1024 bytes each, row-major).
// Length and labels are checked. `batches` picks some of the five training files.
//
// Cost: 184 MB on every rank for all five; 0.1 s plain, 2 s a file from .xz.
#include "apps/datasets/cifar10.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apps/datasets/datasets.hpp"
#include "apps/datasets/file_reader.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

constexpr int side = 32, channels = 3, classes = 10;
constexpr std::size_t pixels_per_image = static_cast<std::size_t>(channels) * side * side;
constexpr std::size_t record_bytes = 1 + pixels_per_image;
constexpr std::size_t records_per_file = 10000;

/// The files in this order, cut to `limit` images.
ImageSet read_set(const std::vector<fs::path>& files, std::int64_t limit, const std::string& limit_key) {
  ImageSet set{.channels = channels, .height = side, .width = side, .classes = classes, .pixels = {}, .labels = {}};
  const std::size_t used = limited(limit, files.size() * records_per_file, limit_key);
  set.pixels.reserve(files.size() * records_per_file * pixels_per_image);
  for (const auto& file : files) append_cifar10(file, records_per_file, set);
  set.labels.resize(used);
  set.pixels.resize(used * pixels_per_image);
  return set;
}

class Cifar10 : public DatasetSource {
 public:
  explicit Cifar10(Config& config)
      : path_(config.path("path", "", "folder with the .bin files (plain, .gz or .xz); empty = $HEARSAY_DATA/cifar10")),
        batches_(config.integers("batches", {1, 2, 3, 4, 5}, Range::between(1, 5), "training files to use")),
        train_limit_(config.integer("train_limit", 0, Range::at_least(0), "use the first so many images; 0 = all")),
        test_limit_(config.integer("test_limit", 0, Range::at_least(0), "use the first so many images; 0 = all")) {
    const std::set<std::int64_t> distinct(batches_.begin(), batches_.end());
    config.require(!batches_.empty() && distinct.size() == batches_.size(), "batches",
                   "needs at least one number, and none twice, e.g. [1, 2]");
  }

  DataSet load() const override {
    const fs::path folder = data_folder(path_, "cifar10");
    return image_classification(
        {.name = "cifar10",
         .train = read_set(training_files(folder), train_limit_, "train_limit"),
         .test = read_set({find_file(folder, std::vector<std::string>{"test_batch.bin"}, "cifar10")}, test_limit_,
                          "test_limit"),
         .mean = {0.4914F, 0.4822F, 0.4465F},
         .stddev = {0.2470F, 0.2435F, 0.2616F},
         .augmentable = true});
  }

 private:
  std::vector<fs::path> training_files(const fs::path& folder) const {
    std::vector<fs::path> files;
    for (const auto batch : batches_) {
      const std::vector<std::string> names{"data_batch_" + std::to_string(batch) + ".bin"};
      files.push_back(find_file(folder, names, "cifar10",
                                download("cifar10") + ", or use only the batches you have, e.g. data.batches=[1, 2]"));
    }
    return files;
  }

  fs::path path_;
  std::vector<std::int64_t> batches_;
  std::int64_t train_limit_, test_limit_;
};

}  // namespace

void append_cifar10(const std::filesystem::path& file, std::size_t records, ImageSet& set) {
  const std::size_t expected = records * record_bytes;
  const std::vector<std::uint8_t> bytes = read_file(file, expected);
  if (bytes.size() != expected) {
    const bool shorter = bytes.size() < expected;
    malformed(file, std::min(bytes.size(), expected), shorter ? "truncated" : "trailing bytes",
              (shorter ? "" : "more than ") + std::to_string(std::min(bytes.size(), expected)) + " bytes",
              std::to_string(expected), "cifar10");
  }
  for (std::size_t at = 0; at < expected; at += record_bytes) {
    if (bytes[at] >= classes) malformed(file, at, "label", std::to_string(bytes[at]), "0 to 9", "cifar10");
    set.labels.push_back(bytes[at]);
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    set.pixels.insert(set.pixels.end(), first, first + static_cast<std::ptrdiff_t>(pixels_per_image));
  }
}

DatasetEntry cifar10_entry() {
  return {.name = "cifar10",
          .summary = "50,000 + 10,000 photographs of ten kinds, 32×32 RGB (binary version, plain, .gz or .xz)",
          .equation = "",
          .cost = "no communication; 184 MB of memory a rank, or 31 MB for each of `batches` and the test set",
          .citation = "Krizhevsky 2009, Learning multiple layers of features from tiny images",
          .make = [](Config& config, std::uint64_t) -> std::unique_ptr<DatasetSource> {
            return std::make_unique<Cifar10>(config);
          }};
}

}  // namespace hearsay
