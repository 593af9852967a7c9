// Checkpoints on the disk: complete when all ranks' files are, whatever killed whom when.
#include <fstream>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/report/checkpoint.hpp"
#include "runtime/report/files.hpp"
#include "tests/runtime/report/temporary_folder.hpp"

namespace hearsay::checkpoint_test {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<std::uint64_t>;

const std::string run = "hearsay-0123456789abcdef";

RawBytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

void write(const CheckpointFolder& folder, std::uint64_t number, int rank, int ranks = 2) {
  folder.write({.number = number, .iteration = static_cast<Iteration>(10 * number), .rank = rank, .ranks = ranks},
               bytes_of("state " + std::to_string(number) + " of " + std::to_string(rank)));
}

std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

}  // namespace

TEST_CASE("what is written is what is read") {
  const test::TemporaryFolder temporary;
  const CheckpointFolder folder(temporary.path() / "a/b", run);
  CHECK(folder.numbers().empty());
  write(folder, 3, 0);
  CHECK(!folder.complete(3));
  write(folder, 3, 1);
  CHECK(folder.complete(3) == 2);
  const auto manifest = folder.manifest(3, 1);
  REQUIRE(manifest.has_value());
  CHECK(manifest->iteration == 30);
  CHECK(folder.read(*manifest) == bytes_of("state 3 of 1"));
  CHECK(!CheckpointFolder(temporary.path() / "a/b", "hearsay-fedcba9876543210").manifest(3, 1));
}

TEST_CASE("a checkpoint with a file too few, cut off, changed or of another number of ranks is not taken") {
  for (const char* name : {"rank0000.state", "rank0001.state", "rank0000.json", "rank0001.json"}) {
    const test::TemporaryFolder temporary;
    const CheckpointFolder folder(temporary.path(), run);
    write(folder, 1, 0);
    write(folder, 1, 1);
    const fs::path file = temporary.path() / "checkpoint-000001" / name;
    CAPTURE(name);
    fs::resize_file(file, fs::file_size(file) / 2);
    CHECK(!folder.complete(1));
    fs::remove(file);
    CHECK(!folder.complete(1));
  }
  const test::TemporaryFolder temporary;
  const CheckpointFolder folder(temporary.path(), run);
  write(folder, 1, 0, 2);
  write(folder, 1, 1, 3);
  CHECK(!folder.complete(1));
  std::fstream file(folder.state_file(1, 1), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file << 'x';
  file.close();
  const auto manifest = folder.manifest(1, 1);
  REQUIRE(manifest.has_value());
  CHECK_THROWS_AS(folder.read(*manifest), DataError);
}

TEST_CASE("nothing is expected of who was dead by the word of another, and of nobody else") {
  const test::TemporaryFolder temporary;
  const CheckpointFolder folder(temporary.path(), run);
  const auto write_without = [&](std::uint64_t number, int rank, std::vector<int> lost) {
    folder.write({.number = number, .rank = rank, .ranks = 4, .settled = false, .lost = std::move(lost)},
                 bytes_of("state"));
  };
  write_without(1, 1, {});
  write_without(1, 2, {0});
  CHECK(!folder.complete(1));  // rank 3 may be writing
  write_without(1, 3, {0, 2});
  CHECK(folder.complete(1) == 4);
  CHECK(folder.lost_since(1) == std::vector<int>{0, 2});
  write_without(5, 0, {});
  write_without(5, 1, {});
  write_without(5, 2, {});
  CHECK(!folder.complete(5));
  write_without(6, 0, {3});  // it was known a little later
  CHECK(folder.complete(5) == 4);
  CHECK(!folder.complete(6));
  write(folder, 4, 0, 4);  // but these had met
  write(folder, 4, 1, 4);
  write(folder, 4, 2, 4);
  CHECK(!folder.complete(4));
  REQUIRE(folder.manifest(1, 3).has_value());
  CHECK(folder.manifest(1, 3)->lost == std::vector<int>{0, 2});
  CHECK(!folder.manifest(1, 3)->settled);
  write(folder, 2, 1, 4);
  CHECK(folder.manifest(2, 1)->settled);
  for (const std::vector<int>& lost : {std::vector<int>{2, 0}, std::vector<int>{-1}, std::vector<int>{4}}) {
    write_without(3, 1, lost);
    CHECK(!folder.manifest(3, 1).has_value());
  }
}

TEST_CASE("a manifest that is no manifest is none") {
  const test::TemporaryFolder temporary;
  const CheckpointFolder folder(temporary.path(), run);
  write(folder, 1, 0, 1);
  for (
      const std::string& text : std::vector<std::string>{
          "", "[", "[]", "{}", "null", R"({"run_id": 3})", std::string(10000, '['),
          R"({"run_id": "hearsay-0123456789abcdef", "checkpoint": 1, "iteration": -1, "epoch": 0, "rank": 0, "ranks": 1,
            "bytes": 12, "hash": "0"})",
          R"({"run_id": "hearsay-0123456789abcdef", "checkpoint": 1, "iteration": 1, "epoch": 0, "rank": 0, "ranks": 1,
            "bytes": 99999999999999, "hash": "zz"})"}) {
    write_file(temporary.path() / "checkpoint-000001/rank0000.json", text);
    CAPTURE(text);
    CHECK(!folder.manifest(1, 0));
  }
}

TEST_CASE("as many complete ones stay as are to be kept, and what is not complete replaces none") {
  const test::TemporaryFolder temporary;
  const CheckpointFolder folder(temporary.path(), run);
  for (std::uint64_t number = 1; number <= 5; ++number) {
    write(folder, number, 0);
    folder.prune(0, 1);
    if (number == 1) write(folder, number, 1);  // the other rank is slow
  }
  CHECK(folder.complete(1) == 2);  // nobody has a newer one
  for (std::uint64_t number = 2; number <= 5; ++number) {
    write(folder, number, 1);
    folder.prune(1, 1);
  }
  folder.prune(0, 1);
  CHECK(folder.complete(5) == 2);
  CHECK(folder.numbers() == Numbers{5});
}

TEST_CASE("where ranks do not see each other's files, a few of the own ones stay") {
  const test::TemporaryFolder temporary;
  const CheckpointFolder folder(temporary.path(), run);
  for (std::uint64_t number = 1; number <= 9; ++number) {
    write(folder, number, 1);
    folder.prune(1, 2);
  }
  CHECK(folder.numbers() == Numbers{6, 7, 8, 9});
}

TEST_CASE("a run that goes on before newer ones removes them, and nothing that is not theirs") {
  const test::TemporaryFolder temporary;
  const CheckpointFolder folder(temporary.path(), run);
  for (std::uint64_t number = 1; number <= 3; ++number) write(folder, number, 0);
  test::write(temporary.path() / "checkpoint-000003/mine.txt", "mine");
  folder.discard_after(1);
  CHECK(folder.numbers() == Numbers{1, 3});
  CHECK(files_in(temporary.path() / "checkpoint-000003").size() == 1);
  CHECK(find_checkpoint_files(temporary.path()).size() == 2);
}

TEST_CASE("where nothing can be written, it is said, and nothing is there") {
  const test::TemporaryFolder temporary;
  test::write(temporary.path() / "file", "");
  CheckpointWriter writer(CheckpointFolder(temporary.path() / "file", run), 2);
  writer.buffer() = bytes_of("state");
  writer.write({.number = 1});
  writer.wait();
  const auto problems = writer.problems();
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find("file") != std::string::npos);
  CHECK(writer.problems().empty());
}

TEST_CASE("a checkpoint for which there is no room leaves no file and no folder behind") {
  const test::TemporaryFolder temporary;
  const CheckpointFolder folder(temporary.path() / "checkpoints", run);
  const test::SmallDisk disk(100);
  for (std::uint64_t number = 1; number < 4; ++number)
    CHECK_THROWS_AS(folder.write({.number = number}, RawBytes(5000)), DataError);
  CHECK(fs::is_empty(temporary.path()));
}

TEST_CASE("no link is followed to checkpoints elsewhere") {
  const test::TemporaryFolder temporary;
  fs::create_directories(temporary.path() / "outside");
  const CheckpointFolder outside(temporary.path() / "outside", run);
  write(outside, 1, 0, 1);
  fs::create_directory_symlink(temporary.path() / "outside", temporary.path() / "link");
  const CheckpointFolder folder(temporary.path() / "link", run);
  CHECK(folder.numbers().empty());
  CHECK_THROWS_WITH_AS(write(folder, 2, 0, 1), doctest::Contains("is a link"), DataError);
  const CheckpointFolder inner(temporary.path() / "run", run);
  fs::create_directories(temporary.path() / "run");
  fs::create_directory_symlink(temporary.path() / "outside", temporary.path() / "run/checkpoint-000003");
  CHECK_THROWS_WITH_AS(write(inner, 3, 0, 1), doctest::Contains("checkpoint-000003: is a link"), DataError);
  inner.discard_after(0);
  CHECK(files_in(temporary.path() / "outside").size() == 2);
}

TEST_CASE("the files of ranks that have died go with those of the living") {
  const test::TemporaryFolder temporary;
  const CheckpointFolder folder(temporary.path(), run);
  const auto write_without = [&](std::uint64_t number, int rank, std::vector<int> lost) {
    folder.write({.number = number, .rank = rank, .ranks = 3, .settled = false, .lost = std::move(lost)},
                 bytes_of("state"));
  };
  for (int rank = 0; rank < 3; ++rank) write_without(1, rank, {});
  test::write(temporary.path() / "checkpoint-000001/rank0000.state.hearsay-0123456789abcdef.tmp", "half of it");
  for (std::uint64_t number = 2; number < 5; ++number) {
    const std::vector<int> lost{0};
    for (int rank = 1; rank < 3; ++rank) {
      write_without(number, rank, lost);
      folder.prune(rank, 2, lost);
    }
  }
  folder.prune(1, 2, std::vector<int>{0});
  CHECK(folder.numbers() == Numbers{3, 4});
}

TEST_CASE("a file that goes on has what it had until then, and what follows") {
  const test::TemporaryFolder temporary;
  const fs::path path = temporary.path() / "records";
  std::uintmax_t keep = 0;
  {
    AppendedFile file(path);
    file.append("one\n");
    file.flush();
    keep = file.size();
    file.append("two\n");
  }
  {
    AppendedFile file(path, keep);
    file.append("three\n");
    CHECK(file.problem().empty());
  }
  CHECK(test::contents(path) == "one\nthree\n");
  fs::resize_file(path, 2);
  {
    const AppendedFile file(path, keep);
    CHECK(file.problem().find("earlier part") != std::string::npos);
  }
  fs::remove(path);
  fs::create_directory(path);
  CHECK_THROWS_AS(AppendedFile(path, keep), DataError);
}

}  // namespace hearsay::checkpoint_test
