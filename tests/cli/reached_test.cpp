// Accuracy against time, as `hearsay compare` has it.
#include "apps/tools/reached.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "apps/tools/comparison.hpp"
#include "tests/runtime/report/temporary_folder.hpp"

namespace reached_test {

using namespace hearsay;

namespace {

using Runs = std::vector<std::vector<Evaluated>>;

}  // namespace

TEST_CASE("runs are compared at the best value that all of them reach, whichever way is up") {
  const Runs runs{{{1.0, 0.5}, {2.0, 0.9}, {3.0, 0.95}}, {{0.5, 0.6}, {1.5, 0.9}, {2.5, 0.8}}};
  const auto common = reached_by_all(runs, accuracy_metric());
  REQUIRE(common);
  CHECK(common->value == 0.9);
  CHECK(common->time_s == std::vector{2.0, 1.5});
  const auto lower = reached_by_all(runs, perplexity_metric());
  REQUIRE(lower);
  CHECK(lower->value == 0.6);
  CHECK(lower->time_s == std::vector{1.0, 0.5});
}

TEST_CASE("a run that has not been evaluated cannot be compared so") {
  CHECK(!reached_by_all(Runs{{{1.0, 0.5}}, {}}, accuracy_metric()));
}

TEST_CASE("evaluations are read from rank 0's metrics, whatever else is there") {
  const test::TemporaryFolder folder;
  {
    MetricsWriter metrics(folder.path(), 0, "hearsay-0");
    metrics.write(
        IterationRecord{.iteration = 1, .epoch = 0.1, .time_s = 1.0, .loss = 2.0, .totals = {}, .staleness_max = 0});
    metrics.write(EvaluationRecord{.iteration = 9,
                                   .epoch = 1.0,
                                   .time_s = 2.0,
                                   .loss_mean_model = 1.0,
                                   .consensus_distance = 0.0,
                                   .metrics = {{accuracy_metric(), 0.25}}});
    metrics.write(EvaluationRecord{.iteration = 4,
                                   .epoch = 0.5,
                                   .time_s = 1.5,
                                   .loss_mean_model = 1.0,
                                   .consensus_distance = 0.0,
                                   .metrics = {{accuracy_metric(), 0.125}}});
  }
  std::ofstream(folder / "metrics.rank0000.jsonl", std::ios::app) << R"({"record": "evalua)";
  const auto run = read_evaluations(folder.path(), accuracy_metric());
  REQUIRE(run.size() == 2);
  CHECK(run[0].time_s == 1.5);
  CHECK(run[0].value == 0.125);
  CHECK(run[1].value == 0.25);
  CHECK(read_evaluations(folder.path(), rmse_metric()).empty());
  CHECK(read_evaluations(folder / "none", accuracy_metric()).empty());
}

TEST_CASE("the table says when, and how long that is by the first run's") {
  std::vector<ComparedRun> runs{{"slow", {}, {{10.0, 0.9}}}, {"fast", {}, {{2.5, 0.9}}}};
  const std::string table = time_table(runs);
  CHECK(table.find("accuracy 90.0") != std::string::npos);
  CHECK(table.find("25.0") != std::string::npos);
  runs[1].evaluations.clear();
  CHECK(time_table(runs).empty());
}

}  // namespace reached_test
