#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "tests/runtime/data/load.hpp"
#include "tests/runtime/data/temporary_files.hpp"

namespace mnist_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

constexpr std::uint32_t images_magic = 0x803, labels_magic = 0x801;

/// Byte j of image i.
std::uint8_t pixel(std::size_t i, std::size_t j) { return static_cast<std::uint8_t>(31 * i + j); }

Bytes images(std::uint32_t count) {
  Bytes payload;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < 784; ++j) payload.push_back(pixel(i, j));
  return idx({images_magic, count, 28, 28}, payload);
}

Bytes labels(std::uint32_t count) {
  Bytes payload(count);
  for (std::size_t i = 0; i < count; ++i) payload[i] = static_cast<std::uint8_t>(i % 10);
  return idx({labels_magic, count}, payload);
}

/// Four good files, 12 and 5 images, of which a test spoils one.
struct Files {
  TemporaryFolder folder;
  Files() {
    folder.write("train-images-idx3-ubyte", images(12));
    folder.write("train-labels-idx1-ubyte", labels(12));
    folder.write("t10k-images-idx3-ubyte", images(5));
    folder.write("t10k-labels-idx1-ubyte", labels(5));
  }
  ImageData load(const std::string& more = "") const {
    return hearsay::test::load("mnist", "{path: " + folder.path().string() + more + "}");
  }
  /// The error after a file has been replaced; it must name the file.
  std::string error(const std::string& name, const Bytes& bytes) const {
    const auto file = folder.write(name, bytes);
    const auto message = message_of<DataError>([&] { load(); });
    CHECK(contains(message, file.string()));
    return message;
  }
};

}  // namespace

TEST_CASE("mnist: pixels and labels come as they are in the files") {
  const ImageData data = Files().load();
  CHECK(data.train.size() == 12);
  CHECK(data.test.size() == 5);
  CHECK(data.train.channels == 1);
  CHECK(data.train.image_size() == 784);
  CHECK(data.train.pixels.size() == 12 * 784);
  for (const ImageSet* set : {&data.train, &data.test}) {
    for (std::size_t i = 0; i < set->size(); ++i) {
      CHECK(set->labels[i] == i % 10);
      CHECK(set->pixels[i * 784] == pixel(i, 0));
      CHECK(set->pixels[i * 784 + 783] == pixel(i, 783));
    }
  }
}

TEST_CASE("mnist: dotted names, gzip and xz are found") {
  const Files plain;
  const TemporaryFolder folder;
  folder.write("train-images.idx3-ubyte", images(12));
  folder.write("train-labels.idx1-ubyte.gz", gzip(labels(12)));
  folder.write("t10k-images-idx3-ubyte.gz", gzip(images(5)));
  folder.write("t10k-labels-idx1-ubyte.xz", xz(labels(5)));
  const auto data = load("mnist", "{path: " + folder.path().string() + "}");
  CHECK(data.train.pixels == plain.load().train.pixels);
  CHECK(data.test.pixels == plain.load().test.pixels);
  CHECK(data.train.labels == plain.load().train.labels);
  CHECK(data.test.labels == plain.load().test.labels);
}

TEST_CASE("mnist: limits use the first images") {
  const Files files;
  const auto all = files.load(), some = files.load(", train_limit: 3, test_limit: 5");
  CHECK(some.train.size() == 3);
  CHECK(some.test.size() == 5);
  CHECK(std::equal(some.train.pixels.begin(), some.train.pixels.end(), all.train.pixels.begin()));
  CHECK(some.train.pixels.size() == 3 * 784);
  CHECK_THROWS_AS(files.load(", train_limit: 13"), ConfigError);
  CHECK_THROWS_AS(files.load(", test_limit: -1"), ConfigError);
}

TEST_CASE("mnist: wrong magic, dimensions and counts name offset, found and expected value") {
  auto message = Files().error("train-images-idx3-ubyte", labels(12));
  for (const char* part : {"at byte 0", "0x00000801", "0x00000803", "scripts/get-data mnist"})
    CHECK(contains(message, part));
  message = Files().error("t10k-labels-idx1-ubyte", images(5));
  for (const char* part : {"at byte 0", "0x00000803", "0x00000801"}) CHECK(contains(message, part));
  message = Files().error("train-images-idx3-ubyte", idx({images_magic, 12, 32, 28}, Bytes(12 * 32 * 28)));
  for (const char* part : {"at byte 8", "rows", "found 32", "expected 28"}) CHECK(contains(message, part));
  message = Files().error("train-images-idx3-ubyte", idx({images_magic, 12, 28, 27}, Bytes(12 * 28 * 27)));
  for (const char* part : {"at byte 12", "columns", "found 27"}) CHECK(contains(message, part));
  message = Files().error("train-labels-idx1-ubyte", labels(11));
  for (const char* part : {"at byte 4", "found 11", "expected 12"}) CHECK(contains(message, part));
  message = Files().error("t10k-images-idx3-ubyte", idx({images_magic, 0, 28, 28}, {}));
  CHECK(contains(message, "at least 1"));
}

TEST_CASE("mnist: a label out of range names its place") {
  Bytes spoilt = labels(12);
  spoilt[8 + 7] = 10;
  const auto message = Files().error("train-labels-idx1-ubyte", spoilt);
  for (const char* part : {"at byte 15", "found 10", "expected 0 to 9"}) CHECK(contains(message, part));
}

TEST_CASE("mnist: every truncation and every trailing byte is an error") {
  const auto cut_to = [](Bytes bytes, std::size_t length) {
    bytes.resize(length);
    return bytes;
  };
  const Files files;
  for (const std::size_t length : {0U, 3U, 4U, 7U, 8U, 19U}) {
    CAPTURE(length);
    CHECK(contains(files.error("train-labels-idx1-ubyte", cut_to(labels(12), length)),
                   "at byte " + std::to_string(length)));
  }
  CHECK(contains(files.error("train-labels-idx1-ubyte", cut_to(labels(12), 21)), "at byte 20: trailing bytes"));
  files.folder.write("train-labels-idx1-ubyte", labels(12));
  for (const std::size_t length : {0U, 15U, 16U, 16U + 12U * 784U - 1U}) {
    CAPTURE(length);
    CHECK(contains(files.error("train-images-idx3-ubyte", cut_to(images(12), length)),
                   "at byte " + std::to_string(length)));
  }
  const std::size_t whole = 16 + 12 * 784;
  CHECK(contains(files.error("train-images-idx3-ubyte", cut_to(images(12), whole + 1)), "trailing bytes"));
}

TEST_CASE("mnist: a file that unpacks to more than its header says is refused after as many bytes") {
  const Files files;
  std::filesystem::remove(files.folder.path() / "train-images-idx3-ubyte");
  Bytes longer = images(12);
  longer.resize(std::size_t{1} << 26);  // 64 MiB of zeros, 64 kB packed
  const auto message = files.error("train-images-idx3-ubyte.gz", gzip(longer));
  for (const char* part : {"at byte 9424: trailing bytes", "found more than 9408", "expected 9408 after the header"})
    CHECK(contains(message, part));
  const auto claim = files.error("train-images-idx3-ubyte", idx({images_magic, 0xfffffff0, 28, 28}, Bytes(784)));
  CHECK(contains(claim, "number of images: found 4294967280, expected at most 5478274"));
}

TEST_CASE("mnist: a missing file lists the names tried") {
  const Files files;
  std::filesystem::remove(files.folder.path() / "t10k-labels-idx1-ubyte");
  const auto message = message_of<DataError>([&] { files.load(); });
  for (const char* part : {"t10k-labels-idx1-ubyte, t10k-labels.idx1-ubyte", "t10k-labels-idx1-ubyte.gz"})
    CHECK(contains(message, part));
}

}  // namespace mnist_test
