// The run folder: refusal and overwriting.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/identity/run_id.hpp"
#include "runtime/report/report.hpp"
#include "tests/runtime/report/temporary_folder.hpp"

namespace run_folder_test {

using namespace hearsay;
using hearsay::test::TemporaryFolder;

namespace {

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

ReportOptions options(const std::filesystem::path& directory, bool overwrite = false) {
  ReportOptions options;
  options.directory = directory;
  options.overwrite = overwrite;
  return options;
}

std::string refusal(const ReportOptions& wanted) {
  try {
    RunFolder{wanted};
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a new run folder is made with the folders above it, and holds its lock only") {
  const TemporaryFolder temporary;
  {
    const RunFolder folder(options(temporary / "a/b/run"));
    CHECK(names_in(temporary / "a/b/run") == std::vector<std::string>{"run.lock"});
    CHECK(test::contents(temporary / "a/b/run/run.lock").find(folder.id()) != std::string::npos);
  }
  CHECK(names_in(temporary / "a/b/run").empty());
  CHECK_NOTHROW(RunFolder{options(temporary / "a/b/run")});  // empty is no run
}

TEST_CASE("every run has a name of its own, which is found wherever it stands") {
  const std::string id = new_run_id();
  CHECK(id.size() == run_id_length);
  CHECK(id != new_run_id());
  CHECK(find_run_id("x" + id + "y") == id);
  CHECK(find_run_id("hearsay-simulator, hearsay-0123456789abcde, " + id) == id);
  for (const std::string text : {"", "hearsay-", "hearsay-0123456789abcdeF", "hearsay 0123456789abcdef"})
    CHECK(!find_run_id(text));
  const TemporaryFolder temporary;
  for (const std::size_t before : {std::size_t{0}, (std::size_t{1} << 20) - 5, (std::size_t{1} << 21) + 3}) {
    test::write(temporary / "file", std::string(before, 'h') + id + "and more");
    CHECK(run_id_in_file(temporary / "file") == id);
  }
  CHECK(!run_id_in_file(temporary / "none"));
}

TEST_CASE("every single file that a run writes makes a folder an existing run") {
  for (const std::string name :
       {"manifest.json", "summary.json", "communication.csv", "segments.csv", "staleness.csv", "metrics.rank0000.jsonl",
        "metrics.rank12345.jsonl", "trace.rank0003.json", "model.pt", "model.rank0001.pt", "summary.json.42.tmp",
        "summary.json.hearsay-0123456789abcdef.tmp"}) {
    CAPTURE(name);
    const TemporaryFolder temporary;
    const std::string old = "old hearsay-0123456789abcdef";
    test::write(temporary / name, old);
    const std::string message = refusal(options(temporary.path()));
    CHECK(message.find("--overwrite") != std::string::npos);
    CHECK(message.find(temporary.path().string()) != std::string::npos);
    CHECK(test::contents(temporary / name) == old);
    CHECK_NOTHROW(RunFolder{options(temporary.path(), true)});
    CHECK(names_in(temporary.path()).empty());
  }
}

TEST_CASE("a file that has a run's name only is in the way, and nothing is removed") {
  for (const std::string name :
       {"manifest.json", "config.yaml", "summary.json", "communication.csv", "model.pt", "metrics.rank0000.jsonl"}) {
    CAPTURE(name);
    const TemporaryFolder temporary;
    test::write(temporary / name, "mine");
    test::write(temporary / "staleness.csv", "of hearsay-0123456789abcdef");
    for (const bool overwrite : {false, true}) {
      const std::string message = refusal(options(temporary.path(), overwrite));
      CHECK(!message.empty());
      if (overwrite) CHECK(message.find(name + ": no run has written this") != std::string::npos);
      CHECK(test::contents(temporary / name) == "mine");
      CHECK(names_in(temporary.path()).size() == 2);
    }
  }
}

TEST_CASE("an empty file of a run that ended before its first line is not in the way of --overwrite") {
  const TemporaryFolder temporary;
  test::write(temporary / "metrics.rank0000.jsonl", "");
  CHECK(!refusal(options(temporary.path())).empty());
  CHECK_NOTHROW(RunFolder{options(temporary.path(), true)});
  CHECK(names_in(temporary.path()).empty());
}

TEST_CASE("a configuration is a run's if it is what its manifest says, with the run's name above it or without") {
  const std::string id = "hearsay-0123456789abcdef";
  const auto outcome = [&](const std::string& manifest_id, const std::string& config) {
    const TemporaryFolder temporary;
    test::write(temporary / "manifest.json", R"({"schema_version": 1, "command": "x", "config_yaml": "seed: 7\n")" +
                                                 (manifest_id.empty() ? "" : R"(, "run_id": ")" + manifest_id + '"') +
                                                 "}");
    test::write(temporary / "config.yaml", config);
    const std::string message = refusal(options(temporary.path(), true));
    CHECK(message.empty() == names_in(temporary.path()).empty());
    return message;
  };
  CHECK(outcome(id, "# run " + id + "\nseed: 7\n") == "");
  CHECK(outcome("", "seed: 7\n") == "");  // of an older version
  CHECK(outcome(id, "# run " + id + "\nseed: 8\n").find("it was changed") != std::string::npos);
  CHECK(outcome("", "seed: 8\n").find("config.yaml") != std::string::npos);
}

TEST_CASE("a table of a run in which nothing was sent is its heading only") {
  const TemporaryFolder temporary;
  test::write(temporary / "communication.csv", "sender,receiver,run_id\n");
  CHECK_NOTHROW(RunFolder{options(temporary.path(), true)});
  CHECK(names_in(temporary.path()).empty());
  test::write(temporary / "communication.csv", "mine,run_id\nline\n");
  CHECK(!refusal(options(temporary.path(), true)).empty());
}

TEST_CASE("a run of an older version, whose files have no name of a run, can be overwritten") {
  const TemporaryFolder temporary;
  test::write(temporary / "manifest.json", R"({"schema_version": 1, "command": "x", "config_yaml": "seed: 7\n"})");
  for (const char* name : {"metrics.rank0000.jsonl", "summary.json", "model.pt"}) test::write(temporary / name, "old");
  CHECK_NOTHROW(RunFolder{options(temporary.path(), true)});
  CHECK(names_in(temporary.path()).empty());
}

TEST_CASE("overwriting leaves alone what no run writes") {
  const TemporaryFolder temporary;
  const std::vector<std::string> foreign{"Manifest.json",         "metrics.rank.jsonl", "metrics.rank00x1.jsonl",
                                         "metrics.rank0001.json", "my-config.yaml",     "notes.txt",
                                         "summary.json.bak"};
  for (const std::string& name : foreign) test::write(temporary / name, "mine");
  test::write(temporary / "summary.json", "of hearsay-0123456789abcdef");
  std::filesystem::create_directories(temporary / "config.yaml");  // a folder is nobody's run file
  CHECK_NOTHROW(RunFolder{options(temporary.path(), true)});
  for (const std::string& name : foreign) CHECK(test::contents(temporary / name) == "mine");
  CHECK(names_in(temporary.path()).size() == foreign.size() + 1);
  CHECK(!std::filesystem::exists(temporary / "summary.json"));
}

TEST_CASE("no link is followed out of the run folder, and none is removed") {
  const TemporaryFolder temporary;
  test::write(temporary / "treasure", "mine, of hearsay-0123456789abcdef");
  std::filesystem::create_directories(temporary / "run");
  for (const char* name : {"summary.json", "metrics.rank0000.jsonl", "run.lock"}) {
    CAPTURE(name);
    std::filesystem::create_symlink("../treasure", temporary / "run" / name);
    CHECK_THROWS_AS(RunFolder{options(temporary / "run", true)}, Error);
    CHECK(std::filesystem::is_symlink(temporary / "run" / name));
    CHECK_THROWS_AS(AppendedFile(temporary / "run" / name), DataError);
    write_file(temporary / "run" / name, "a run's");  // takes the link's name, not its place
    CHECK(test::contents(temporary / "run" / name) == "a run's");
    std::filesystem::remove(temporary / "run" / name);
  }
  CHECK(test::contents(temporary / "treasure") == "mine, of hearsay-0123456789abcdef");
}

TEST_CASE("one run a folder: a second one is told who writes there, whether it overwrites or not") {
  const TemporaryFolder temporary;
  const RunFolder first(options(temporary.path()));
  for (const bool overwrite : {false, true}) {
    const std::string message = refusal(options(temporary.path(), overwrite));
    CHECK(message.find("is being written by the run " + first.id()) != std::string::npos);
    CHECK(message.find("process " + std::to_string(getpid())) != std::string::npos);
    CHECK(message.find("--output") != std::string::npos);
  }
}

TEST_CASE("of many that begin in one folder at the same instant one gets it, or each after the other") {
  const TemporaryFolder temporary;
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> holders = 0, overlaps = 0, got = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        try {
          const RunFolder folder(options(temporary.path()));
          if (++holders > 1) ++overlaps;
          ++got;
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          --holders;
        } catch (const ConfigError&) {
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(got >= 1);
    CHECK(overlaps == 0);
  }
  CHECK(names_in(temporary.path()).empty());
}

TEST_CASE("the lock of a process that was killed is recognised, one of another host explained") {
  const TemporaryFolder temporary;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      const RunFolder folder(options(temporary.path()));
      kill(getpid(), SIGKILL);
    } catch (...) {
    }
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(names_in(temporary.path()) == std::vector<std::string>{"run.lock"});
  CHECK(test::contents(temporary / "run.lock").find("process " + std::to_string(child)) != std::string::npos);
  CHECK_NOTHROW(RunFolder{options(temporary.path())});
  CHECK(names_in(temporary.path()).empty());

  test::write(temporary / "run.lock", "run hearsay-0123456789abcdef\nhost far-away\nprocess 7\n");
  const std::string message = refusal(options(temporary.path(), true));
  for (const char* part : {"hearsay-0123456789abcdef", "process 7 on far-away", "remove", "run.lock"})
    CHECK(message.find(part) != std::string::npos);
  CHECK(std::filesystem::exists(temporary / "run.lock"));

  test::write(temporary / "run.lock", "");  // killed before it had said who it is
  CHECK_NOTHROW(RunFolder{options(temporary.path())});
}

TEST_CASE("a folder that is held by several processes is free when the last has died, and says who owns it") {
  const TemporaryFolder temporary;
  const std::filesystem::path lock = temporary / "run.lock";
  int go[2], ready[2];
  REQUIRE(pipe(go) == 0);
  REQUIRE(pipe(ready) == 0);
  const pid_t other = fork();  // before there is a lock to inherit
  REQUIRE(other >= 0);
  std::string id(run_id_length, ' ');
  if (other == 0) {
    const bool told = read(go[0], id.data(), id.size()) == static_cast<ssize_t>(id.size());
    const RunFolder folder = RunFolder::shared(temporary.path(), id);
    if (told && ::write(ready[1], "x", 1) == 1) sleep(60);
    _exit(1);
  }
  std::optional<RunFolder> owner(options(temporary.path()));
  id = owner->id();
  REQUIRE(::write(go[1], id.data(), id.size()) == static_cast<ssize_t>(id.size()));
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  {
    const RunFolder held = RunFolder::shared(temporary.path(), id);
    std::filesystem::rename(lock, temporary / "kept");
    owner.reset();  // as if it had died: the file stays
    std::filesystem::rename(temporary / "kept", lock);
  }
  CHECK(std::filesystem::exists(lock));  // whoever only holds it does not remove it
  CHECK(refusal(options(temporary.path(), true)).find("is being written by the run " + id) != std::string::npos);
  {
    RunFolder folder = RunFolder::shared(temporary.path(), id);
    folder.take_over();
    folder.take_over();
    CHECK(test::contents(lock).find("process " + std::to_string(getpid())) != std::string::npos);
    CHECK(refusal(options(temporary.path(), true)).find(std::to_string(getpid())) != std::string::npos);
  }
  CHECK(!std::filesystem::exists(lock));  // its new owner does
  RunFolder stranger = RunFolder::shared(temporary.path(), id);
  stranger.take_over();  // of a folder that is not locked: without effect
  CHECK(!std::filesystem::exists(lock));
  kill(other, SIGKILL);
  REQUIRE(waitpid(other, nullptr, 0) == other);
  CHECK_NOTHROW(RunFolder{options(temporary.path())});
}

TEST_CASE("a link in the place of a run's folder is refused by name, whoever begins there") {
  for (const std::string name : {"checkpoints", "checkpoints/checkpoint-000001"}) {
    const TemporaryFolder temporary;
    CAPTURE(name);
    test::write(temporary / "outside/mine", "mine");
    const std::string id = "hearsay-0123456789abcdef";
    test::write(temporary / "run/manifest.json",
                R"({"schema_version": 1, "command": "hearsay", "run_id": ")" + id + "\"}");
    const std::filesystem::path link = temporary / "run" / name;
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::create_directory_symlink(temporary / "outside", link);
    CHECK(refusal(options(temporary / "run", true)).find(link.string() + ": is a link") != std::string::npos);
    CHECK_THROWS_WITH_AS(RunFolder::resumed(temporary / "run"), doctest::Contains(link.c_str()), ConfigError);
    CHECK(std::filesystem::exists(temporary / "run/manifest.json"));
    CHECK(names_in(temporary / "outside") == std::vector<std::string>{"mine"});
  }
  const TemporaryFolder temporary;  // a file, of a run that would go on
  test::write(temporary / "outside", "mine");
  test::write(temporary / "run/manifest.json",
              R"({"schema_version": 1, "command": "hearsay", "run_id": "hearsay-0123456789abcdef"})");
  std::filesystem::create_symlink(temporary / "outside", temporary / "run/snapshots.rank0000.bin");
  CHECK_THROWS_WITH_AS(RunFolder::resumed(temporary / "run"), doctest::Contains("snapshots.rank0000.bin"), ConfigError);
}

TEST_CASE("only files that are there are looked at, whatever their numbers") {
  const TemporaryFolder temporary;
  for (const std::string rank : {"0000", "0002", "99999999", "99999999999999999999999", "x", ""})
    test::write(temporary / ("metrics.rank" + rank + ".jsonl"), "");
  const auto ranks_of = [&](int ranks) {
    std::vector<int> found;
    for (const auto& [rank, file] : metrics_files(temporary.path(), ranks)) found.push_back(rank);
    return found;
  };
  CHECK(ranks_of(3) == std::vector<int>{0, 2});
  CHECK(ranks_of(2'000'000'000) == std::vector<int>{0, 2, 99999999});
  CHECK(metrics_files(temporary / "none", 3).empty());
  CHECK(number_in_name("rank0012.json", "rank", ".json") == 12);
  for (const char* name : {"rank.json", "rank12", "rank-1.json", "rank1e3.json", "rank 1.json", ""})
    CHECK(!number_in_name(name, "rank", ".json"));
}

TEST_CASE("each kind of trouble is told once, in the words of the first, with a count, also of all ranks") {
  Unwritten rank_0, rank_1;
  CHECK(rank_0.add("a checkpoint: run/checkpoint-000010/rank0000.state: no room"));
  CHECK(!rank_0.add("a checkpoint: run/checkpoint-000020/rank0000.state: no room"));
  CHECK(rank_0.add("a checkpoint: run/checkpoint-000030/rank0000.state: not\nallowed"));
  CHECK(rank_1.add("a checkpoint: run/checkpoint-000010/rank0001.state: no room"));
  CHECK(rank_1.add("metrics.rank0001.jsonl (5 records, no room)"));
  Unwritten all;
  for (const Unwritten& rank : {rank_0, rank_1}) all.add(Unwritten::unpacked(rank.packed()));
  CHECK(all.lines() ==
        std::vector<std::string>{"a checkpoint: run/checkpoint-000010/rank0000.state: no room, and 2 more like it",
                                 "a checkpoint: run/checkpoint-000030/rank0000.state: not allowed",
                                 "metrics.rank0001.jsonl (5 records, no room)"});
  CHECK(Unwritten::unpacked("").lines().empty());
}

TEST_CASE("files of two runs in one folder are noticed") {
  const TemporaryFolder temporary;
  const std::string one = "hearsay-0123456789abcdef", other = "hearsay-fedcba9876543210";
  for (const char* name : {"manifest.json", "summary.json", "metrics.rank0000.jsonl", "communication.csv"})
    test::write(temporary / name, "of " + one);
  test::write(temporary / "metrics.rank0001.jsonl", "of an older version");
  test::write(temporary / "notes.txt", "of " + other);
  CHECK_NOTHROW(require_one_run(temporary.path()));
  for (const char* name : {"manifest.json", "summary.json", "metrics.rank0000.jsonl", "communication.csv"}) {
    test::write(temporary / name, "of " + other);
    CHECK_THROWS_WITH_AS(require_one_run(temporary.path()), doctest::Contains(name), DataError);
    CHECK_THROWS_WITH_AS(require_one_run(temporary.path()), doctest::Contains("two runs"), DataError);
    test::write(temporary / name, "of " + one);
  }
}

TEST_CASE("a folder that cannot be made or written is a DataError that names it") {
  const TemporaryFolder temporary;
  test::write(temporary / "file", "");
  CHECK_THROWS_AS(RunFolder{options(temporary / "file")}, DataError);
  CHECK_THROWS_AS(RunFolder{options(temporary / "file/run")}, DataError);
  CHECK_THROWS_AS(RunFolder{options("/proc/hearsay-run")}, DataError);  // not even root may write there
  CHECK_THROWS_AS(RunFolder{options("/proc")}, DataError);
  CHECK_THROWS_WITH_AS(RunFolder{options(temporary / "file/run")}, doctest::Contains("--output"), DataError);
}

TEST_CASE("on a full disk a file is written whole or not at all, and the old one stays") {
  const TemporaryFolder temporary;
  write_file(temporary / "summary.json", "old");
  {
    const test::SmallDisk disk(1000);
    CHECK_THROWS_WITH_AS(write_file(temporary / "summary.json", std::string(5000, 'x')),
                         doctest::Contains("cannot be written"), DataError);
  }
  CHECK(test::contents(temporary / "summary.json") == "old");
  CHECK(names_in(temporary.path()).size() == 1);  // and no unfinished one
}

TEST_CASE("on a full disk a growing file keeps whole records, says what it has lost, and goes on when there is room") {
  const TemporaryFolder temporary;
  AppendedFile file(temporary / "metrics.rank0000.jsonl");
  const auto record = [](int i) { return std::to_string(i) + std::string(90, '.') + "\n"; };
  file.append(record(0));
  file.flush();
  CHECK(file.problem() == "");
  {
    const test::SmallDisk disk(1000);
    for (int i = 1; i < 50; ++i) file.append(record(i));
    file.flush();
  }
  CHECK(test::contents(temporary / "metrics.rank0000.jsonl") == record(0));
  CHECK(file.problem().find("metrics.rank0000.jsonl (49 records, ") == 0);
  file.append(record(50));
  file.flush();
  CHECK(test::contents(temporary / "metrics.rank0000.jsonl") == record(0) + record(50));
  CHECK(file.problem().find("49 records") != std::string::npos);
}

TEST_CASE("a growing file that is removed says so") {
  const TemporaryFolder temporary;
  AppendedFile file(temporary / "metrics.rank0000.jsonl");
  file.append("1\n");
  std::filesystem::remove(temporary / "metrics.rank0000.jsonl");
  file.flush();
  CHECK(file.problem().find("it was removed while the run wrote it") != std::string::npos);
}

TEST_CASE("the section report: defaults, keys, and the folder counts from the working directory") {
  Config empty;
  const ReportOptions defaults = read_report_options(empty, "dpsgd-mlp");
  CHECK(defaults.directory == "runs/dpsgd-mlp");
  CHECK(defaults.every_iterations == 50);
  CHECK(!defaults.segments);
  CHECK(!defaults.overwrite);
  Config given = Config::from_text("{directory: here, every_iterations: 3, segments: true, overwrite: true}");
  const ReportOptions read = read_report_options(given, "x");
  given.document().throw_if_invalid();
  CHECK(read.directory == "here");
  CHECK(read.every_iterations == 3);
  CHECK(read.segments);
  CHECK(read.overwrite);
  Config wrong = Config::from_text("{directory: \"\", every_iterations: 0}");
  read_report_options(wrong, "x");
  CHECK_THROWS_AS(wrong.document().throw_if_invalid(), ConfigError);
}

}  // namespace run_folder_test
