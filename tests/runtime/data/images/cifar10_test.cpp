#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "tests/runtime/data/load.hpp"
#include "tests/runtime/data/temporary_files.hpp"

namespace cifar10_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

constexpr std::size_t record = 3073, records = 10000;

/// 10,000 records; label (r + shift) mod 10, byte j of record r is r + j + shift mod 251.
Bytes batch(std::size_t shift) {
  Bytes bytes(record * records);
  for (std::size_t r = 0; r < records; ++r) {
    bytes[r * record] = static_cast<std::uint8_t>((r + shift) % 10);
    for (std::size_t j = 1; j < record; ++j) bytes[r * record + j] = static_cast<std::uint8_t>((r + j + shift) % 251);
  }
  return bytes;
}

ImageData load_from(const TemporaryFolder& folder, const std::string& more) {
  return load("cifar10", "{path: " + folder.path().string() + more + "}");
}

}  // namespace

TEST_CASE("cifar10: records of the chosen batches in order, plain, gzip and xz") {
  const TemporaryFolder folder;
  folder.write("data_batch_1.bin", batch(1));
  folder.write("data_batch_3.bin.gz", gzip(batch(3)));
  folder.write("test_batch.bin.xz", xz(batch(6)));
  const auto data = load_from(folder, ", batches: [3, 1], train_limit: 10001, test_limit: 7");
  CHECK(data.train.size() == 10001);
  CHECK(data.test.size() == 7);
  CHECK(data.train.channels == 3);
  CHECK(data.train.image_size() == 3072);
  CHECK(data.train.pixels.size() == 10001 * 3072);
  CHECK(data.augmentable);
  for (const std::size_t i : {0U, 1U, 9999U}) {
    CHECK(data.train.labels[i] == (i + 3) % 10);
    CHECK(data.train.pixels[i * 3072] == (i + 1 + 3) % 251);
    CHECK(data.train.pixels[i * 3072 + 3071] == (i + 3072 + 3) % 251);
  }
  CHECK(data.train.labels[10000] == 1);
  CHECK(data.train.pixels[10000U * 3072U] == 2);
  CHECK(data.test.labels[0] == 6);
}

TEST_CASE("cifar10: a missing batch is named, with the key that does without it") {
  const TemporaryFolder folder;
  folder.write("data_batch_1.bin", batch(1));
  const auto message = message_of<DataError>([&] { load_from(folder, ""); });
  for (const char* part : {"data_batch_2.bin", "data.batches=[1, 2]", "scripts/get-data cifar10 DIR"})
    CHECK(contains(message, part));
  const auto test = message_of<DataError>([&] { load_from(folder, ", batches: [1]"); });
  CHECK(contains(test, "test_batch.bin"));
}

TEST_CASE("cifar10: wrong length and wrong label name the place") {
  const TemporaryFolder folder;
  folder.write("test_batch.bin", batch(6));
  const auto error = [&](const Bytes& bytes) {
    const auto file = folder.write("data_batch_1.bin", bytes);
    const auto message = message_of<DataError>([&] { load_from(folder, ", batches: [1]"); });
    CHECK(contains(message, file.string()));
    return message;
  };
  Bytes bytes = batch(1);
  bytes[record * 42] = 10;
  CHECK(contains(error(bytes), "at byte " + std::to_string(record * 42) + ": label: found 10, expected 0 to 9"));
  bytes = batch(1);
  bytes.resize(bytes.size() - record);
  CHECK(contains(error(bytes), "truncated: found 30726927 bytes, expected 30730000"));
  bytes.resize(record * records + 1);
  CHECK(contains(error(bytes), "at byte 30730000: trailing bytes"));
}

TEST_CASE("cifar10: batches must be numbers from 1 to 5, none twice, at least one") {
  const TemporaryFolder folder;
  for (const char* batches : {"[0]", "[6]", "[1, 1]", "[]", "[1.5]"}) {
    CAPTURE(batches);
    CHECK_THROWS_AS(load_from(folder, std::string(", batches: ") + batches), ConfigError);
  }
}

}  // namespace cifar10_test
