#include "apps/datasets/file_reader.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/error.hpp"
#include "base/random.hpp"
#include "tests/runtime/data/temporary_files.hpp"

namespace file_reader_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

Bytes noise(std::size_t size) {
  Random random(size);
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.below(256));
  return bytes;
}

}  // namespace

TEST_CASE("read_file: plain, gzip and xz give the same bytes, of any size") {
  const TemporaryFolder folder;
  for (const std::size_t size : {0U, 1U, 1000U, (1U << 20), 3000001U}) {
    CAPTURE(size);
    const Bytes bytes = noise(size);
    CHECK(read_file(folder.write("a.bin", bytes)) == bytes);
    CHECK(read_file(folder.write("a.bin.gz", gzip(bytes))) == bytes);
    CHECK(read_file(folder.write("a.bin.xz", xz(bytes))) == bytes);
  }
}

TEST_CASE("read_file: several streams in one file follow each other") {
  const TemporaryFolder folder;
  const Bytes first = noise(500), second = noise(700);
  Bytes both = first;
  both.insert(both.end(), second.begin(), second.end());
  const auto joined = [](Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  CHECK(read_file(folder.write("a.gz", joined(gzip(first), gzip(second)))) == both);
  CHECK(read_file(folder.write("a.xz", joined(xz(first), xz(second)))) == both);
}

TEST_CASE("read_file: no more is read or unpacked than is asked for, and one byte says that there is more") {
  const TemporaryFolder folder;
  const Bytes zeros(std::size_t{1} << 24);  // 16 MiB; 16 kB packed
  for (const auto& file :
       {folder.write("a.bin", zeros), folder.write("a.gz", gzip(zeros)), folder.write("a.xz", xz(zeros))}) {
    CAPTURE(file);
    CHECK(read_file(file, 100).size() == 101);
    CHECK(read_file(file, zeros.size() - 1).size() == zeros.size());
    CHECK(read_file(file, zeros.size()) == zeros);
    CHECK(read_whole_file(file, zeros.size(), "").size() == zeros.size());
    CHECK(contains(message_of<DataError>([&] { read_whole_file(file, 100, "Mend it"); }),
                   "more than 100 bytes; Mend it"));
  }
  // A file without blocks on the disk that says it has a million million bytes.
  const auto sparse = folder.write("sparse.gz", gzip({1, 2, 3}));
  std::filesystem::resize_file(sparse, std::size_t{1} << 40);
  CHECK_THROWS_AS(read_file(sparse, 3), DataError);
  CHECK(read_file(folder.write("empty.gz", gzip({})), 0).empty());
}

TEST_CASE("read_file: every truncation of an archive is an error that names the file") {
  const TemporaryFolder folder;
  const Bytes packed_gz = gzip(noise(40)), packed_xz = xz(noise(40));
  for (const auto& [name, packed] : {std::pair{"a.gz", packed_gz}, std::pair{"a.xz", packed_xz}}) {
    for (std::size_t length = 0; length < packed.size(); ++length) {
      CAPTURE(length);
      const auto file = folder.write(name, Bytes(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(length)));
      const auto message = message_of<DataError>([&] { read_file(file); });
      CHECK(contains(message, file.string()));
      CHECK(contains(message, "truncated"));
    }
  }
}

TEST_CASE("read_file: a flipped byte, a foreign format and bytes behind the end are errors") {
  const TemporaryFolder folder;
  const Bytes bytes = noise(5000);
  for (const auto& [name, packed] : {std::pair{"a.gz", gzip(bytes)}, std::pair{"a.xz", xz(bytes)}}) {
    CAPTURE(name);
    Bytes flipped = packed;
    flipped[flipped.size() / 2] ^= 0x40;
    CHECK_THROWS_AS(read_file(folder.write(name, flipped)), DataError);
    CHECK_THROWS_AS(read_file(folder.write(name, Bytes{'<', 'h', 't', 'm', 'l', '>', ' ', ' ', ' ', ' ', ' ', ' '})),
                    DataError);
    Bytes longer = packed;
    longer.insert(longer.end(), {'m', 'o', 'r', 'e', ' ', 'b', 'y', 't', 'e', 's', '!', '!'});
    CHECK_THROWS_AS(read_file(folder.write(name, longer)), DataError);
  }
  CHECK_THROWS_AS(read_file(folder.path() / "none.bin"), DataError);
  CHECK(contains(message_of<DataError>([&] { read_file(folder.path()); }), "is a folder"));
  REQUIRE(mkfifo((folder.path() / "fifo.gz").c_str(), 0600) == 0);
  CHECK(contains(message_of<DataError>([&] { read_file(folder.path() / "fifo.gz"); }), "is a FIFO"));
  CHECK(contains(message_of<DataError>([&] { read_file("/dev/zero"); }), "is a device"));
}

TEST_CASE("find_file: plain before packed, and a miss lists what was tried and how to get it") {
  const TemporaryFolder folder;
  const std::vector<std::string> names{"images", "pictures"};
  const auto message = message_of<DataError>([&] { find_file(folder.path(), names, "mnist"); });
  for (const char* part :
       {"data set mnist", "images, pictures", "images.gz", "pictures.xz", "scripts/get-data mnist DIR"})
    CHECK(contains(message, part));
  const auto other = message_of<DataError>([&] { find_file(folder.path(), names, "words", "Do this"); });
  for (const char* part : {"data set words", "images, pictures", "images.gz", "pictures.xz", ". Do this"})
    CHECK(contains(other, part));
  CHECK(!contains(other, "get-data"));
  CHECK(contains(message_of<DataError>([&] { find_file(folder.path() / "x", names, "mnist"); }), "no such folder"));
  folder.write("images.xz", {});
  CHECK(find_file(folder.path(), names, "mnist") == folder.path() / "images.xz");
  folder.write("pictures.gz", {});
  CHECK(find_file(folder.path(), names, "mnist") == folder.path() / "pictures.gz");
  folder.write("pictures", {});
  CHECK(find_file(folder.path(), names, "mnist") == folder.path() / "pictures");
}

TEST_CASE("data_folder: the key, else the environment, else an error that tells both") {
  const char* const old = std::getenv("HEARSAY_DATA");
  const std::string saved = old == nullptr ? "" : old;
  setenv("HEARSAY_DATA", "somewhere", 1);
  CHECK(data_folder("here", "mnist") == "here");
  CHECK(data_folder("", "mnist") == std::filesystem::path("somewhere") / "mnist");
  unsetenv("HEARSAY_DATA");
  const auto message = message_of<ConfigError>([] { data_folder("", "cifar10"); });
  for (const char* part : {"data.path", "HEARSAY_DATA", "scripts/get-data cifar10 DIR"}) CHECK(contains(message, part));
  if (old != nullptr) setenv("HEARSAY_DATA", saved.c_str(), 1);
}

TEST_CASE("limited: 0 is all, more than there are is an error") {
  CHECK(limited(0, 10, "train_limit") == 10);
  CHECK(limited(10, 10, "train_limit") == 10);
  CHECK(limited(3, 10, "train_limit") == 3);
  CHECK(contains(message_of<ConfigError>([] { limited(11, 10, "train_limit"); }), "data.train_limit = 11"));
}

}  // namespace file_reader_test
