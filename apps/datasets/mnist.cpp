// MNIST (LeCun, Bottou, Bengio & Haffner 1998): 60,000 + 10,000 handwritten digits, 28×28 grey, and every data set that
// comes in the same four files (Fashion-MNIST, KMNIST). Format IDX, big-endian:
//   images: 0x00000803, count, rows, columns, then count·rows·columns bytes;   labels: 0x00000801, count, count bytes.
// Magic numbers, dimensions, counts, the range of the labels and the length of the files are checked.
//
// Cost: 55 MB on every rank; 0.3 s to unpack.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/datasets/datasets.hpp"
#include "apps/datasets/file_reader.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t images_magic = 0x00000803, labels_magic = 0x00000801;
constexpr std::uint32_t side = 28;
constexpr int classes = 10;

std::string hexadecimal(std::uint32_t value) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", static_cast<unsigned>(value));
  return text;
}

/// One IDX file; checks what is taken from it. Its header is read first, and then no more than the header says.
class Idx {
 public:
  /// `stem`: "train" or "t10k"; `kind`: "images" or "labels"; the file's name is one of the usual ones. Reads its first
  /// `header` bytes.
  Idx(const fs::path& folder, const std::string& stem, const std::string& kind, int dimensions, std::size_t header)
      : file_(find_file(folder,
                        usual_names(stem, kind + "-idx" + std::to_string(dimensions) + "-ubyte",
                                    kind + ".idx" + std::to_string(dimensions) + "-ubyte"),
                        "mnist")),
        header_(header),
        bytes_(read_file(file_, header)) {}

  /// The big-endian word at byte `offset`.
  std::uint32_t word(std::size_t offset) const {
    if (bytes_.size() < offset + 4) fail(bytes_.size(), "end of file", "the header's end", "a 4-byte word");
    return static_cast<std::uint32_t>(bytes_[offset]) << 24 | static_cast<std::uint32_t>(bytes_[offset + 1]) << 16 |
           static_cast<std::uint32_t>(bytes_[offset + 2]) << 8 | bytes_[offset + 3];
  }

  void expect_magic(std::uint32_t expected) const {
    const std::uint32_t found = word(0);
    if (found != expected) fail(0, "magic number", hexadecimal(found), hexadecimal(expected));
  }

  void expect_word(std::size_t offset, const std::string& what, std::uint32_t expected) const {
    const std::uint32_t found = word(offset);
    if (found != expected) fail(offset, what, std::to_string(found), std::to_string(expected));
  }

  /// Reads what follows the header, `payload` bytes and no more.
  void read_payload(std::size_t payload) {
    const std::size_t whole = header_ + payload;
    bytes_ = read_file(file_, whole);
    const std::string expected = std::to_string(payload) + " after the header";
    if (bytes_.size() < whole)
      fail(bytes_.size(), "truncated", std::to_string(bytes_.size() - header_) + " bytes", expected);
    if (bytes_.size() > whole) fail(whole, "trailing bytes", "more than " + std::to_string(payload), expected);
  }

  /// The first `count` bytes after the header.
  std::vector<std::uint8_t> payload(std::size_t count) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(header_));
    bytes_.resize(count);
    return std::move(bytes_);
  }

  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

  [[noreturn]] void fail(std::size_t offset, const std::string& what, const std::string& found,
                         const std::string& expected) const {
    malformed(file_, offset, what, found, expected, "mnist");
  }

 private:
  static std::vector<std::string> usual_names(const std::string& stem, const std::string& dashed,
                                              const std::string& dotted) {
    return {stem + "-" + dashed, stem + "-" + dotted};
  }

  fs::path file_;
  std::size_t header_;
  std::vector<std::uint8_t> bytes_;
};

/// The pixels and labels of "train" or "t10k".
ImageSet read_set(const fs::path& folder, const std::string& stem, std::int64_t limit, const std::string& limit_key) {
  constexpr std::size_t images_header = 16, labels_header = 8;
  constexpr std::uint32_t most_images = most_unpacked / (side * side);
  Idx images(folder, stem, "images", 3, images_header), labels(folder, stem, "labels", 1, labels_header);
  images.expect_magic(images_magic);
  labels.expect_magic(labels_magic);
  const std::uint32_t count = images.word(4);
  if (count == 0) images.fail(4, "number of images", "0", "at least 1");
  if (count > most_images)
    images.fail(4, "number of images", std::to_string(count), "at most " + std::to_string(most_images));
  images.expect_word(8, "rows", side);
  images.expect_word(12, "columns", side);
  labels.expect_word(4, "number of labels", count);
  images.read_payload(static_cast<std::size_t>(count) * side * side);
  labels.read_payload(count);
  for (std::size_t at = labels_header; at < labels.bytes().size(); ++at) {
    if (labels.bytes()[at] >= classes) labels.fail(at, "label", std::to_string(labels.bytes()[at]), "0 to 9");
  }
  const std::size_t used = limited(limit, count, limit_key);
  return {.channels = 1,
          .height = side,
          .width = side,
          .classes = classes,
          .pixels = images.payload(used * side * side),
          .labels = labels.payload(used)};
}

class Mnist : public DatasetSource {
 public:
  explicit Mnist(Config& config)
      : path_(config.path("path", "", "folder with the four files; empty = $HEARSAY_DATA/mnist")),
        train_limit_(config.integer("train_limit", 0, Range::at_least(0), "use the first so many images; 0 = all")),
        test_limit_(config.integer("test_limit", 0, Range::at_least(0), "use the first so many images; 0 = all")) {}

  DataSet load() const override {
    const fs::path folder = data_folder(path_, "mnist");
    return image_classification({.name = "mnist",
                                 .train = read_set(folder, "train", train_limit_, "train_limit"),
                                 .test = read_set(folder, "t10k", test_limit_, "test_limit"),
                                 .mean = {0.1307F},
                                 .stddev = {0.3081F},
                                 .augmentable = false});
  }

 private:
  fs::path path_;
  std::int64_t train_limit_, test_limit_;
};

}  // namespace

DatasetEntry mnist_entry() {
  return {.name = "mnist",
          .summary = "60,000 + 10,000 handwritten digits, 28×28 grey (IDX files, plain, .gz or .xz)",
          .equation = "",
          .cost = "no communication; 55 MB of memory a rank",
          .citation = "LeCun, Bottou, Bengio & Haffner 1998, Gradient-based learning applied to document recognition",
          .make = [](Config& config, std::uint64_t) -> std::unique_ptr<DatasetSource> {
            return std::make_unique<Mnist>(config);
          }};
}

}  // namespace hearsay
