// summary.json, manifest.json and metrics.rankNNNN.jsonl as a reader in another language sees them.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "runtime/report/json.hpp"
#include "tests/runtime/report/temporary_folder.hpp"

namespace summary_test {

using namespace hearsay;
using hearsay::test::TemporaryFolder;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Summary example() {
  Summary s;
  s.status = "stopped";
  s.message = "stopped by signal 2 (Interrupt)";
  s.ranks = 4;
  s.iterations = 1000;
  s.epochs = 2.5;
  s.parameters = 27480;
  s.segments = 8;
  s.edges = 8;
  s.spectral_gap = 2.0 / 3.0;
  s.model = "mnist_cnn";
  s.dataset = "synthetic_digits";
  s.exchange = "eventgrad";
  s.schedule = "lockstep";
  s.clock = "simulated";
  s.accuracy_mean_model = 0.1 + 0.2;  // not a short decimal
  s.accuracy_rank_min = 0.25;
  s.loss_mean_model = 1.0 / 3.0;
  s.consensus_distance = 1e-17;
  s.totals = {.events = 1,
              .messages = 16000,
              .deferred = 3,
              .packets = 4,
              .puts = 5,
              .payload_bytes = (1ULL << 53) + 1,
              .index_bytes = 7,
              .header_bytes = 8,
              .control_bytes = 9};
  s.messages_possible = 64000;
  s.dense_payload_bytes = 123456789;
  s.staleness_mean = 0.75, s.staleness_max = 12.0, s.staleness_p99 = 9.0;
  s.staleness_median_s = 0.125, s.staleness_p99_s = 0.5;
  s.rank_iterations = {240, 260};
  s.idle_s = 0.0625;
  s.shares = {{"lost_mass_fraction", 0.125}};
  s.wall_time_s = 12.5;
  s.local_steps = 15;
  s.time_per_iteration_s = 0.0125;
  s.phase_seconds = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  s.replica_hashes = {0, UINT64_MAX, 0x0123456789abcdefULL};
  return s;
}

Json parsed(const std::filesystem::path& file) { return Json::parse(test::contents(file)); }

}  // namespace

TEST_CASE("every metric of a run is read back, the task's own first; runs of older versions are judged by accuracy") {
  const TemporaryFolder folder;
  Summary written;
  written.take({.metric = perplexity_metric(), .mean_model = 82.5, .rank_worst = 90.25, .rank_mean = 85.0});
  written.take({.metric = accuracy_metric(), .mean_model = 0.25, .rank_worst = 0.125, .rank_mean = 0.2});
  write_summary(folder.path(), written);
  const Summary read = read_summary(folder.path());
  REQUIRE(read.metrics.size() == 2);
  REQUIRE(read.quality());
  CHECK(read.quality()->metric.name == "perplexity");
  CHECK_FALSE(read.quality()->metric.higher_is_better);
  CHECK_FALSE(read.quality()->metric.fraction);
  CHECK(read.quality()->mean_model == 82.5);
  CHECK(read.quality()->rank_worst == 90.25);
  CHECK(read.accuracy_mean_model == 0.25);
  CHECK(read.accuracy_rank_min == 0.125);

  Summary old;
  old.accuracy_mean_model = 0.75;
  write_summary(folder.path(), old);
  CHECK(read_summary(folder.path()).quality()->metric.name == "accuracy");
  CHECK(read_summary(folder.path()).quality()->mean_model == 0.75);
  CHECK(!Summary().quality());
}

TEST_CASE("a summary reads back equal, to the last bit") {
  const TemporaryFolder folder;
  const Summary written = example();
  write_summary(folder.path(), written);
  const Summary read = read_summary(folder.path());
  CHECK(summary_json(read) == summary_json(written));
  CHECK(read.accuracy_mean_model == written.accuracy_mean_model);
  CHECK(read.consensus_distance == written.consensus_distance);
  CHECK(!read.accuracy_rank_mean);
  CHECK(read.staleness_max == 12.0);
  CHECK(read.staleness_p99 == 9.0);
  CHECK(read.staleness_median_s == 0.125);
  CHECK(read.staleness_p99_s == 0.5);
  CHECK(read.rank_iterations == std::pair<std::int64_t, std::int64_t>{240, 260});
  CHECK(read.idle_s == 0.0625);
  CHECK(read.local_steps == 15);
  CHECK(read.clock == "simulated");
  CHECK(read.totals.payload_bytes == written.totals.payload_bytes);
  CHECK(read.totals.bytes() == written.totals.bytes());
  CHECK(read.phase_seconds == written.phase_seconds);
  CHECK(read.replica_hashes == written.replica_hashes);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("ranks that fail in the same iteration all write their summary, and one of them stays whole") {
  const TemporaryFolder folder;
  std::atomic<int> refused{0};
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.emplace_back([&, rank] {
        Summary summary = example();
        summary.message = "rank " + std::to_string(rank);
        try {
          for (int i = 0; i < 100; ++i) write_summary(folder.path(), summary);
        } catch (const DataError&) {
          ++refused;
        }
      });
    }
  }
  CHECK(refused == 0);
  CHECK(read_summary(folder.path()).message.starts_with("rank "));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("summary.json has every field of its schema, and null where a number is not finite") {
  const TemporaryFolder folder;
  Summary summary = example();
  summary.accuracy_mean_model = not_a_number;
  summary.consensus_distance = std::numeric_limits<double>::infinity();
  write_summary(folder.path(), summary);
  const Json json = parsed(folder / "summary.json");
  for (const char* field : {"schema_version",
                            "status",
                            "message",
                            "model",
                            "dataset",
                            "exchange",
                            "schedule",
                            "local_steps",
                            "ranks",
                            "iterations",
                            "epochs",
                            "parameters",
                            "segments",
                            "edges",
                            "spectral_gap",
                            "accuracy_mean_model",
                            "accuracy_rank_min",
                            "accuracy_rank_mean",
                            "loss_mean_model",
                            "consensus_distance",
                            "events",
                            "messages",
                            "messages_possible",
                            "messages_fraction",
                            "dense_payload_bytes",
                            "shares",
                            "deferred",
                            "packets",
                            "puts",
                            "bytes_sent",
                            "payload_bytes",
                            "index_bytes",
                            "header_bytes",
                            "control_bytes",
                            "bytes_fraction",
                            "wall_time_s",
                            "time_per_iteration_s",
                            "compute_s",
                            "trigger_s",
                            "encode_s",
                            "wait_s",
                            "mix_s",
                            "optimizer_s",
                            "evaluate_s",
                            "select_s",
                            "communicate_s",
                            "communicate_encode_s",
                            "communicate_hidden_s",
                            "staleness_mean_iterations",
                            "staleness_max_iterations",
                            "staleness_p99_iterations",
                            "staleness_median_s",
                            "staleness_p99_s",
                            "rank_iterations_min",
                            "rank_iterations_max",
                            "idle_s",
                            "replica_hash"}) {
    CAPTURE(field);
    CHECK(json.contains(field));
  }
  CHECK(json.at("accuracy_mean_model").is_null());
  CHECK(json.at("consensus_distance").is_null());
  CHECK(json.at("replica_hash") == Json({"0000000000000000", "ffffffffffffffff", "0123456789abcdef"}));
  CHECK(!read_summary(folder.path()).accuracy_mean_model);
  CHECK(summary_json(Summary{}).at("consensus_distance").is_null());  // not measured is not 0
  CHECK(summary_json(Summary{}).at("staleness_max_iterations").is_null());
}

TEST_CASE("fractions: messages of what D-PSGD sends, bytes of the dense algorithm's payload; nothing of nothing is 0") {
  Summary s = example();
  CHECK(s.messages_fraction() == 0.25);
  s.totals = {};
  s.totals.payload_bytes = s.dense_payload_bytes;
  CHECK(s.bytes_fraction() == 1.0);
  s.totals.control_bytes = s.totals.payload_bytes;  // all kinds of bytes count
  CHECK(s.bytes_fraction() == 2.0);
  s.dense_payload_bytes = s.messages_possible = 0;
  CHECK(s.bytes_fraction() == 0.0);
  CHECK(s.messages_fraction() == 0.0);
}

TEST_CASE("what is no whole summary is a DataError that says what the folder is") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(read_summary(folder / "none"), doctest::Contains("not a run folder"), DataError);
  test::write(folder / "manifest.json", "{}");
  CHECK_THROWS_WITH_AS(read_summary(folder.path()), doctest::Contains("still going on"), DataError);
  for (const std::string text : {"", "{\"schema_version\": 1", "[]", "{}", "{\"schema_version\": 1}",
                                 "{\"schema_version\": 999}", "{\"schema_version\": \"one\"}"}) {
    CAPTURE(text);
    test::write(folder / "summary.json", text);
    CHECK_THROWS_AS(read_summary(folder.path()), DataError);
  }
  write_summary(folder.path(), example());
  Json json = parsed(folder / "summary.json");
  json["replica_hash"] = {"not a number"};
  test::write(folder / "summary.json", json.dump());
  CHECK_THROWS_AS(read_summary(folder.path()), DataError);
}

TEST_CASE("metrics: one JSON object a line, named by rank, null where a loss is not finite") {
  const TemporaryFolder folder;
  {
    MetricsWriter metrics(folder.path(), 12);
    LedgerTotals totals;
    totals.messages = 3;
    totals.payload_bytes = 100;
    totals.header_bytes = 11;
    metrics.write(IterationRecord{
        .iteration = 50, .epoch = 0.5, .time_s = 1.25, .loss = not_a_number, .totals = totals, .staleness_max = 2});
    metrics.write(EvaluationRecord{.iteration = 60,
                                   .epoch = 1,
                                   .time_s = 2,
                                   .loss_mean_model = 0.75,
                                   .consensus_distance = 0.125,
                                   .metrics = {{accuracy_metric(), 0.5}}});
    metrics.write_segments(7, std::vector<double>{1.5, not_a_number}, {}, std::vector<std::uint8_t>{1, 0});
  }
  std::istringstream lines(test::contents(folder / "metrics.rank0012.jsonl"));
  std::vector<Json> records;
  for (std::string line; std::getline(lines, line);) records.push_back(Json::parse(line));
  REQUIRE(records.size() == 3);
  for (const Json& record : records) CHECK(record.at("rank") == 12);
  CHECK(records[0].at("record") == "iteration");
  CHECK(records[0].at("loss").is_null());
  CHECK(records[0].at("messages") == 3);
  CHECK(records[0].at("bytes_sent") == 111);
  CHECK(records[0].at("staleness_max_iterations") == 2);
  CHECK(records[1].at("record") == "evaluation");
  CHECK(records[1].at("accuracy_mean_model") == 0.5);
  CHECK(records[2].at("record") == "segments");
  CHECK(records[2].at("norms") == Json({1.5, nullptr}));
  CHECK(records[2].at("events") == Json({1, 0}));
  CHECK(!records[2].contains("thresholds"));
}

TEST_CASE("metrics that cannot be written are a DataError") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(MetricsWriter(folder / "missing", 0), DataError);
}

TEST_CASE("the manifest names hosts, versions, segments and every edge once; the configuration stands beside it") {
  const TemporaryFolder folder;
  Graph graph(3);
  boost::add_edge(0, 1, graph);
  boost::add_edge(1, 2, graph);
  MixingMatrix w(3);
  w(0, 0) = w(2, 2) = 0.75;
  w(1, 1) = 0.5;
  w(0, 1) = w(1, 0) = w(1, 2) = w(2, 1) = 0.25;
  const Topology topology{.graph = graph, .matrix = w, .graph_name = "path", .weights_name = "metropolis"};
  topology.solved->spectrum = Spectrum{0.75, 0.25, 0.75, 0.25};
  Layout layout;
  layout.append("fc.weight", {2, 3});
  layout.append("fc.bias", {2});
  const Manifest manifest{.command = "hearsay train x.yaml",
                          .config_yaml = "seed: 7\n",
                          .hosts = {"a", "a", "b"},
                          .versions = {{"mpi", "Open MPI"}},
                          .seed = 7,
                          .model = "mlp",
                          .dataset = "mnist",
                          .exchange = "dpsgd"};
  write_manifest(folder.path(), manifest, topology, layout);
  const Json json = parsed(folder / "manifest.json");
  CHECK(json.at("ranks") == 3);
  CHECK(json.at("hosts") == Json({"a", "a", "b"}));
  CHECK(json.at("parameters") == 8);
  CHECK(json.at("segments").at(0).at("shape") == Json({2, 3}));
  CHECK(json.at("segments").at(1).at("offset") == 6);
  CHECK(json.at("topology").at("directed_edges") == 4);
  CHECK(json.at("topology").at("spectral_gap") == 0.25);
  CHECK(json.at("topology").at("edges") == Json::parse("[[0, 1, 0.25], [1, 2, 0.25]]"));
  CHECK(json.at("topology").at("everybody") == false);
  CHECK(json.at("versions").at("mpi") == "Open MPI");
  CHECK(json.at("started_utc").get<std::string>().size() == std::string("2025-01-31T12:00:00Z").size());
  CHECK(test::contents(folder / "config.yaml") == "seed: 7\n");

  CHECK(json.at("topology").at("directed") == false);

  Config circle = Config::from_text("graph: {name: directed_ring}\nweights: {name: uniform}");
  write_manifest(folder.path(), manifest, TopologyPlan(circle).build(3), layout);
  const Json one_way = parsed(folder / "manifest.json").at("topology");
  CHECK(one_way.at("directed") == true);
  CHECK(one_way.at("directed_edges") == 3);
  CHECK(one_way.at("edges") == Json::parse("[[0, 2, 0.5], [1, 0, 0.5], [2, 1, 0.5]]"));

  write_manifest(folder.path(), manifest, TopologyPlan::everybody().build(3), layout);
  const Json of_all = parsed(folder / "manifest.json").at("topology");
  CHECK(of_all.at("everybody") == true);
  CHECK(of_all.at("directed_edges") == 6);
  CHECK(of_all.at("edges").empty());
}

}  // namespace summary_test
