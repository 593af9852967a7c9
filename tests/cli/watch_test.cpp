// What `hearsay watch` makes of a run folder that grows.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "apps/shared/text.hpp"
#include "apps/tools/watch_view.hpp"
#include "base/error.hpp"
#include "base/text/foreign_text.hpp"
#include "tests/runtime/report/temporary_folder.hpp"

namespace watch_test {

using namespace hearsay;
using hearsay::test::TemporaryFolder;

namespace {

const std::string manifest = R"({"ranks": 3, "exchange": "eventgrad", "model": "mlp", "dataset": "mnist",
  "iterations": 100, "segments": [{}, {}], "topology": {"edges": [[0, 1, 0.3], [0, 2, 0.3], [1, 2, 0.3]]}})";

std::string record(int k, double time_s, int to_first, int to_second, double loss = 0.5) {
  return R"({"record":"iteration","iteration":)" + std::to_string(k) + R"(,"epoch":0.5,"time_s":)" +
         std::to_string(time_s) + R"(,"loss":)" + std::to_string(loss) + R"(,"messages":)" + std::to_string(k + 1) +
         R"(,"bytes_sent":)" + std::to_string(to_first + to_second) + R"(,"staleness_max_iterations":0)" +
         R"(,"neighbour_bytes_sent":[)" + std::to_string(to_first) + "," + std::to_string(to_second) + "]}\n";
}

void append(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::app) << text;
}

}  // namespace

TEST_CASE("rates are differences of counters over differences of the ranks' own time") {
  const TemporaryFolder folder;
  test::write(folder / "manifest.json", manifest);
  WatchedRun run(folder.path());
  CHECK(run.rank(0).iteration == -1);
  append(folder / "metrics.rank0000.jsonl", record(9, 2.0, 1000, 500));
  run.poll();
  append(folder / "metrics.rank0000.jsonl", record(29, 4.0, 5000, 500));
  run.poll();
  CHECK(run.rank(0).iterations_per_second == 10.0);
  CHECK(run.rank(0).neighbour_rates == std::vector{2000.0, 0.0});
  CHECK(run.losses().size() == 2);
}

TEST_CASE("what a run folder says of itself is shown, and a terminal obeys nothing of it") {
  const TemporaryFolder folder;
  std::string evil = manifest;
  evil.replace(evil.find("eventgrad"), 9, "\\u001b[2J\\nfine");
  test::write(folder / "manifest.json", evil);
  const std::string view = watch_view(WatchedRun(folder.path()), 100);
  CHECK(shown_lines(view) == view);
  CHECK(view.find("\\x1b[2J\\nfine, mlp on mnist, 3 ranks") != std::string::npos);
}

TEST_CASE("as many ranks as a job can have are watched, whatever the manifest says") {
  const TemporaryFolder folder;
  for (const char* ranks : {"0", "1000001", "1000000000000", "-1", "1e300"}) {
    CAPTURE(ranks);
    std::string other = manifest;
    other.replace(other.find("3"), 1, ranks);
    test::write(folder / "manifest.json", other);
    CHECK_THROWS_AS(WatchedRun(folder.path()), DataError);
  }
}

TEST_CASE("a line counts once, when it is whole") {
  const TemporaryFolder folder;
  test::write(folder / "manifest.json", manifest);
  const std::string line = record(9, 1.0, 10, 20);
  append(folder / "metrics.rank0001.jsonl", line.substr(0, 30));
  WatchedRun run(folder.path());
  CHECK(run.rank(1).iteration == -1);
  append(folder / "metrics.rank0001.jsonl", line.substr(30));
  run.poll();
  CHECK(run.rank(1).iteration == 9);
  run.poll();
  CHECK(run.rank(1).iterations_per_second == 10.0);  // not 0 over 0
}

TEST_CASE("the view names stragglers, the busiest edge first, and how much of D-PSGD's messages was sent") {
  const TemporaryFolder folder;
  test::write(folder / "manifest.json", manifest);
  append(folder / "metrics.rank0000.jsonl", record(49, 1.0, 10, 900));
  append(folder / "metrics.rank0001.jsonl", record(48, 1.0, 10, 20));
  append(folder / "metrics.rank0002.jsonl", record(29, 1.0, 10, 20));
  const std::string view = watch_view(WatchedRun(folder.path()), 100);
  CHECK(view.find("stragglers: rank 2 by 20 iterations\n") != std::string::npos);
  CHECK(view.find("edges 0→2 900 B/s") != std::string::npos);
  CHECK(view.find("25.0 %") != std::string::npos);  // one message an iteration of 2 segments × 2 neighbours
  CHECK(view.find("running") != std::string::npos);
}

TEST_CASE("where everybody may talk to everybody there are no edges to show, and no fraction of their messages") {
  const TemporaryFolder folder;
  std::string short_manifest = manifest;
  const std::size_t edges = short_manifest.find("\"edges\"");
  short_manifest.replace(edges, std::string::npos, R"("everybody": true, "edges": []}})");
  test::write(folder / "manifest.json", short_manifest);
  std::string line = record(49, 1.0, 10, 900);
  line.replace(line.find("[10,900]"), 8, "[]");
  for (const char* file : {"metrics.rank0000.jsonl", "metrics.rank0001.jsonl", "metrics.rank0002.jsonl"})
    append(folder / file, line);
  const std::string view = watch_view(WatchedRun(folder.path()), 100);
  CHECK(view.find("edges") == std::string::npos);
  CHECK(view.find("%") == std::string::npos);
  CHECK(view.find("–") != std::string::npos);
}

TEST_CASE("a sparkline spans the values, keeps to its width and leaves a gap where there is no number") {
  CHECK(sparkline({1.0, 2.0, 8.0}, 10) == "▁▂█");
  CHECK(sparkline({3.0, 3.0}, 10) == "▁▁");
  CHECK(sparkline({1.0, std::numeric_limits<double>::quiet_NaN(), 2.0}, 10) == "▁ █");
  std::deque<double> many;
  for (int i = 0; i < 1000; ++i) many.push_back(i);
  CHECK(screen_width(sparkline(many, 16)) == 16);
  CHECK(sparkline({}, 10).empty());
}

TEST_CASE("what is not a run or not a record is a DataError that names the file") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(WatchedRun(folder.path()), doctest::Contains("no manifest.json"), DataError);
  test::write(folder / "manifest.json", "{\"ranks\": 2}");
  CHECK_THROWS_WITH_AS(WatchedRun(folder.path()), doctest::Contains("manifest.json: is not a manifest"), DataError);
  test::write(folder / "manifest.json", manifest);
  append(folder / "metrics.rank0002.jsonl", "{\"record\": \"iteration\"}\n");
  CHECK_THROWS_WITH_AS(WatchedRun(folder.path()), doctest::Contains("metrics.rank0002.jsonl"), DataError);
}

TEST_CASE("at 60 columns nothing is wider, and every column that is shown and needs it is explained") {
  const TemporaryFolder folder;
  test::write(folder / "manifest.json", manifest);
  append(folder / "metrics.rank0000.jsonl", record(1'000'000, 1.0, 100'000, 900'000'000));
  append(folder / "metrics.rank0002.jsonl", record(29, 1.0, 10, 20));
  const WatchedRun run(folder.path());
  for (const std::size_t width : {60U, 80U, 100U}) {
    std::istringstream lines(watch_view(run, width));
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(screen_width(line) <= width, line);
  }
  const std::string wide = watch_view(run, 100), narrow = watch_view(run, 60);
  for (const char* meaning : {"stale: ", "it/s: ", "messages: ", "heard: "})
    CHECK(wide.find(meaning) != std::string::npos);
  CHECK(narrow.find("messages:") != std::string::npos);  // a line may end here
  CHECK(narrow.find("epoch") == std::string::npos);
}

TEST_CASE("a run without a summary is running while it writes, and probably dead after five minutes") {
  const TemporaryFolder folder;
  test::write(folder / "manifest.json", manifest);
  append(folder / "metrics.rank0000.jsonl", record(9, 10.0, 10, 900) + record(19, 20.0, 20, 900));
  const auto seen_after = [&](std::chrono::seconds silence) {
    const auto then = std::filesystem::file_time_type::clock::now() - silence;
    for (const char* file : {"manifest.json", "metrics.rank0000.jsonl"})
      std::filesystem::last_write_time(folder / file, then);
    return watch_view(WatchedRun(folder.path()), 100);
  };
  CHECK(seen_after(std::chrono::seconds(280)).find("running") != std::string::npos);
  CHECK(seen_after(std::chrono::seconds(310)).find("no news for 5 min 1") != std::string::npos);
  CHECK(seen_after(std::chrono::seconds(310)).find("probably dead") != std::string::npos);
  append(folder / "metrics.rank0000.jsonl", record(29, 120.0, 30, 900));  // 100 s between two records
  CHECK(seen_after(std::chrono::seconds(310)).find("running") != std::string::npos);
  CHECK(seen_after(std::chrono::seconds(510)).find("probably dead") != std::string::npos);
}

}  // namespace watch_test
