// The run folder: refusal and overwriting.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "runtime/report/report.hpp"
#include "tests/runtime/report/temporary_folder.hpp"

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
    prepare_run_folder(wanted);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a new run folder is made with the folders above it and is left empty") {
  const TemporaryFolder temporary;
  prepare_run_folder(options(temporary / "a/b/run"));
  CHECK(std::filesystem::is_directory(temporary / "a/b/run"));
  CHECK(names_in(temporary / "a/b/run").empty());
  prepare_run_folder(options(temporary / "a/b/run"));  // empty is no run
}

TEST_CASE("every single file that a run writes makes a folder an existing run") {
  for (const std::string name : {"manifest.json", "config.yaml", "summary.json", "communication.csv", "segments.csv",
                                 "staleness.csv", "metrics.rank0000.jsonl", "metrics.rank12345.jsonl",
                                 "trace.rank0003.json", "model.pt", "model.rank0001.pt", "summary.json.42.tmp"}) {
    CAPTURE(name);
    const TemporaryFolder temporary;
    test::write(temporary / name, "old");
    const std::string message = refusal(options(temporary.path()));
    CHECK(message.find("--overwrite") != std::string::npos);
    CHECK(message.find(temporary.path().string()) != std::string::npos);
    CHECK(test::contents(temporary / name) == "old");
    prepare_run_folder(options(temporary.path(), true));
    CHECK(names_in(temporary.path()).empty());
  }
}

TEST_CASE("overwriting leaves alone what no run writes") {
  const TemporaryFolder temporary;
  const std::vector<std::string> foreign{"Manifest.json",         "metrics.rank.jsonl", "metrics.rank00x1.jsonl",
                                         "metrics.rank0001.json", "my-config.yaml",     "notes.txt",
                                         "summary.json.bak"};
  for (const std::string& name : foreign) test::write(temporary / name, "mine");
  test::write(temporary / "summary.json", "old");
  std::filesystem::create_directories(temporary / "config.yaml");  // a folder is nobody's run file
  prepare_run_folder(options(temporary.path(), true));
  for (const std::string& name : foreign) CHECK(test::contents(temporary / name) == "mine");
  CHECK(names_in(temporary.path()).size() == foreign.size() + 1);
  CHECK(!std::filesystem::exists(temporary / "summary.json"));
}

TEST_CASE("a folder that cannot be made or written is a DataError that names it") {
  const TemporaryFolder temporary;
  test::write(temporary / "file", "");
  CHECK_THROWS_AS(prepare_run_folder(options(temporary / "file")), DataError);
  CHECK_THROWS_AS(prepare_run_folder(options(temporary / "file/run")), DataError);
  CHECK_THROWS_AS(prepare_run_folder(options("/proc/hearsay-run")), DataError);  // not even root may write there
  CHECK_THROWS_AS(prepare_run_folder(options("/proc")), DataError);
  CHECK_THROWS_WITH_AS(prepare_run_folder(options(temporary / "file/run")), doctest::Contains("--output"), DataError);
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
  given.throw_if_invalid();
  CHECK(read.directory == "here");
  CHECK(read.every_iterations == 3);
  CHECK(read.segments);
  CHECK(read.overwrite);
  Config wrong = Config::from_text("{directory: \"\", every_iterations: 0}");
  read_report_options(wrong, "x");
  CHECK_THROWS_AS(wrong.throw_if_invalid(), ConfigError);
}
