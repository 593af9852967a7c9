// Whole runs: one rank is plain SGD, equal configurations give equal replicas, and the run folder is complete.
#include "tests/runtime/training/tiny.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "runtime/training/dry_run.hpp"
#include "runtime/training/session.hpp"
#include "tests/support/emulated_device.hpp"
#include "tests/support/mpi_environment.hpp"

namespace session_test {
namespace {

using namespace hearsay;
using namespace hearsay::test;

namespace fs = std::filesystem;

constexpr int examples = 90;

fs::path folder(const std::string& name) {
  return fs::temp_directory_path() /
         ("hearsay_session_test_np" + std::to_string(mpi_environment().ranks()) + "_" + name);
}

/// The folder of a run is removed at the end of the test case that keeps this.
struct Cleaner {
  explicit Cleaner(std::vector<std::string> n) : names(std::move(n)) {}
  ~Cleaner() {
    std::error_code ignored;
    for (const std::string& name : names)
      if (mpi_environment().rank() == 0) fs::remove_all(folder(name), ignored);
  }
  Cleaner(const Cleaner&) = delete;
  Cleaner& operator=(const Cleaner&) = delete;
  std::vector<std::string> names;
};

/// conv, normalisation, dropout, dense
torch::nn::Sequential network() {
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 2, 3)), torch::nn::BatchNorm2d(2),
                               torch::nn::ReLU(), torch::nn::Dropout(0.25), torch::nn::Flatten(),
                               torch::nn::Linear(2 * 6 * 6, 10));
}

Task task_for(std::shared_ptr<torch::nn::Sequential> keep = nullptr) {
  Task task;
  task.model_name = "small", task.dataset_name = "random";
  task.make_model = [keep](const ExampleShape&) {
    torch::nn::Sequential layers = network();
    if (keep) *keep = layers;
    return Model(layers);
  };
  task.load_data = [] { return image_classification(random_image_data(examples, 41, 1, 8)); };
  return task;
}

RunPlan plan_for(const std::string& name, const std::string& more, Task task = task_for()) {
  Config config = Config::from_text(
      "{seed: 3, data: {batch_size: 8}, optimizer: {momentum: 0.5}, topology: {graph: {name: complete}}, " + more +
      "}");
  config.document().override_with("report.directory=" + folder(name).string());
  config.document().override_with("report.overwrite=true");
  return RunPlan(config, std::move(task));
}

Summary run(const std::string& name, const std::string& more, const TrainOptions& options = {}) {
  return train(mpi_environment(), plan_for(name, more), options);
}

/// The same task, with a model that lives on an emulated GPU.
Task task_on_device() {
  Task task = task_for();
  task.make_model = [](const ExampleShape&) {
    Model model(network());
    model.live_on(emulated_device(3), torch::kCPU);
    return model;
  };
  return task;
}

TEST_CASE("a run whose replicas live on a device ends like one on the processor: there, and on a mirror") {
  const std::string sparse = "sparsify: {selector: {name: topk, density: 0.1}}";
  for (const std::string& exchange :
       {std::string("exchange: {name: dpsgd}"), "exchange: {name: eventgrad}, " + sparse,
        std::string("exchange: {name: allreduce, method: ring}"), std::string("exchange: {name: lkgs}")}) {
    CAPTURE(exchange);
    const auto run_of = [&](Task task) {
      const Cleaner cleaner({"device"});
      Config config = Config::from_text("{seed: 3, data: {batch_size: 8}, train: {epochs: 2}, " + exchange + "}");
      config.document().override_with("report.directory=" + folder("device").string());
      return train(mpi_environment(), RunPlan(config, std::move(task)));
    };
    const Summary here = run_of(task_for()), there = run_of(task_on_device());
    CHECK(there.replica_hashes == here.replica_hashes);
    CHECK(there.totals.payload_bytes == here.totals.payload_bytes);
    CHECK(there.accuracy_mean_model == here.accuracy_mean_model);
    CHECK(there.loss_mean_model == here.loss_mean_model);
    CHECK(there.accuracy_rank_mean == here.accuracy_rank_mean);
  }
}

TEST_CASE("one rank is plain SGD bit for bit: same order of examples, same dropout, same steps") {
  if (mpi_environment().ranks() > 1) return;
  const Cleaner cleaner({"plain"});
  const auto kept = std::make_shared<torch::nn::Sequential>(nullptr);
  const Summary summary = train(mpi_environment(), plan_for("plain", "train: {epochs: 2}", task_for(kept)));

  torch::manual_seed(stream_seed(3, "model"));
  torch::nn::Sequential plain = network();
  torch::manual_seed(stream_seed(3, "dropout", 0));
  torch::optim::SGD sgd(plain->parameters(), torch::optim::SGDOptions(0.05).momentum(0.5));
  const DataSet data = image_classification(random_image_data(examples, 41, 1, 8));
  Random common(stream_seed(3, "partition"));
  Config none;
  const auto shares = partitions()[0].make(none)->split(data.shares, 1, common);
  TrainingBatches batches(data, Sampler(shares[0], examples, 8, true, stream_seed(3, "sampler", 0)), false, 0);
  for (int k = 0; k < 2 * 12; ++k) {
    const Batch batch = batches.next();
    sgd.zero_grad();
    torch::nn::functional::cross_entropy(plain->forward(batch.inputs), batch.targets).backward();
    sgd.step();
  }
  CHECK(parameters_of(**kept) == parameters_of(*plain));
  CHECK(summary.iterations == 24);
  CHECK(summary.replica_hashes == std::vector{replica_hash(parameters_of(*plain))});
  CHECK(summary.totals.bytes() == 0);
}

TEST_CASE("two runs of one configuration end in equal replicas; another seed in others") {
  const Cleaner cleaner({"one", "two", "other"});
  const Summary one = run("one", "train: {epochs: 2}");
  const Summary two = run("two", "train: {epochs: 2, evaluate_every_epochs: 0}");  // evaluation changes nothing
  const Summary other = run("other", "train: {epochs: 2, iterations: 4}");
  if (mpi_environment().rank() > 0) return;
  CHECK(one.replica_hashes.size() == static_cast<std::size_t>(mpi_environment().ranks()));
  CHECK(one.replica_hashes == two.replica_hashes);
  CHECK(one.replica_hashes != other.replica_hashes);
  CHECK(one.accuracy_mean_model == two.accuracy_mean_model);
  CHECK(other.iterations == 4);
}

/// Between the gradients of its last layer and those of the first one, 20 ms pass.
torch::nn::Sequential network_with_a_slow_layer() {
  const auto slow_backward = [](torch::Tensor x) {
    if (x.requires_grad())  // not when it is evaluated
      x.register_hook([](const torch::Tensor&) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    return x;
  };
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 2, 3)),
                               torch::nn::Functional(slow_backward), torch::nn::Flatten(),
                               torch::nn::Linear(2 * 6 * 6, 10));
}

TEST_CASE("the time line shows a later layer's sum under the backward pass of earlier ones") {
  if (mpi_environment().ranks() == 1) return;
  Task task = task_for();
  task.make_model = [](const ExampleShape&) { return Model(network_with_a_slow_layer()); };
  for (const std::string exchange : {"{name: allreduce, bucket_bytes: 4}", "{name: lkgs}"}) {
    CAPTURE(exchange);
    const Cleaner cleaner({"trace"});
    Config config = Config::from_text("{seed: 3, data: {batch_size: 8}, train: {epochs: 2}, report: {trace: true}}");
    config.document().override_with("exchange=" + exchange);
    config.document().override_with("report.directory=" + folder("trace").string());
    config.document().override_with("report.overwrite=true");
    static_cast<void>(train(mpi_environment(), RunPlan(config, task)));
    if (mpi_environment().rank() > 0) continue;  // rank 0 removes the folder
    std::map<int, double> last_gradient;         // by iteration, when the backward pass ends
    int overlapping = 0;
    const auto trace = nlohmann::json::parse(std::ifstream(folder("trace") / "trace.rank0000.json"));
    for (const auto& event : trace.at("traceEvents"))
      if (event.at("name") == "gradient")
        last_gradient[event.at("args").at("iteration")] =
            std::max(last_gradient[event.at("args").at("iteration")], event.at("ts").get<double>());
    for (const auto& event : trace.at("traceEvents")) {
      if (event.at("name") != "communicate" || !event.at("args").contains("segments")) continue;
      CHECK(event.at("tid") == 1);
      overlapping += event.at("ts") < last_gradient[event.at("args").at("iteration")];
    }
    CHECK(last_gradient.size() > 2);
    CHECK(overlapping > 0);
  }
}

/// Whether it takes local steps: of the usual number of them these runs have no round.
bool has_rounds(const ExchangeEntry& entry) {
  Config exchange, root;
  static_cast<void>(entry.make(exchange, root));
  return exchange.asked("local_steps");
}

TEST_CASE("every exchange trains, and on the global path all replicas end equal") {
  for (const ExchangeEntry& entry : exchanges()) {
    CAPTURE(entry.name);
    const Cleaner cleaner({"every"});
    Config config = Config::from_text("{seed: 3, data: {batch_size: 8}, train: {epochs: 2}}");
    config.document().override_with("exchange.name=" + std::string(entry.name));
    if (has_rounds(entry)) config.document().override_with("exchange.local_steps=2");
    config.document().override_with("report.directory=" + folder("every").string());
    config.document().override_with("report.overwrite=true");
    const RunPlan plan(config, task_for());
    const Summary summary = train(mpi_environment(), plan);
    if (mpi_environment().rank() > 0) continue;
    CHECK(summary.status == "finished");
    CHECK(summary.exchange == entry.name);
    CHECK((summary.totals.bytes() > 0) == (mpi_environment().ranks() > 1));
    const ExchangeLaws laws = plan.parts().exchange->laws();
    CHECK((summary.messages_possible == 0) == (!laws.along_graph || mpi_environment().ranks() == 1));
    if (!laws.replicas_agree) continue;
    CHECK(summary.consensus_distance == 0.0);
    for (const std::uint64_t hash : summary.replica_hashes) CHECK(hash == summary.replica_hashes[0]);
  }
}

TEST_CASE("with everything sent, every synchronous sum trains the dense sum's model") {
  // Two ranks at most: more add in another order. On one, momentum correction without masking is the optimizer's
  // momentum.
  if (mpi_environment().ranks() > 2) return;
  const auto hashes = [&](const std::string& exchange) {
    const Cleaner cleaner({"dense"});
    Config config = Config::from_text("{seed: 3, data: {batch_size: 8}, train: {epochs: 2}, " + exchange + "}");
    config.document().override_with("report.directory=" + folder("dense").string());
    return train(mpi_environment(), RunPlan(config, task_for())).replica_hashes;
  };
  const std::string all = "sparsify: {selector: {name: topk, density: 1.0}}";
  const auto dense = hashes("exchange: {name: allreduce}");
  for (const std::string name : {"topk", "gtopk_naive", "gtopk", "lkgs", "hitopk"}) {
    CAPTURE(name);
    CHECK(hashes("exchange: {name: " + name + "}, " + all) == dense);
  }
  if (mpi_environment().ranks() > 1) return;
  CHECK(hashes("exchange: {name: topk, feedback: {momentum: 0.5, factor_masking: false}}, " + all) ==
        hashes("exchange: {name: allreduce}, optimizer: {momentum: 0.5}"));
}

TEST_CASE("the summary on disk is the one that is returned, and counts what D-PSGD counts") {
  const Cleaner cleaner({"dpsgd"});
  int progress_calls = 0, evaluations = 0;
  TrainOptions options;
  options.command = "test";
  options.progress = [&](const Progress&) { ++progress_calls; };
  options.evaluated = [&](const EvaluationRecord&) { ++evaluations; };
  const Summary summary =
      run("dpsgd", "exchange: {name: dpsgd}, train: {epochs: 3}, report: {save_model: true}", options);
  if (mpi_environment().rank() > 0) {
    CHECK(progress_calls + evaluations == 0);
    return;
  }
  CHECK(progress_calls >= 1);
  CHECK(evaluations == 3);
  const Summary read = read_summary(folder("dpsgd"));
  CHECK(read.replica_hashes == summary.replica_hashes);
  CHECK(read.accuracy_mean_model == summary.accuracy_mean_model);
  CHECK(summary.status == "finished");
  const auto ranks = static_cast<std::uint64_t>(mpi_environment().ranks());
  CHECK(summary.edges == ranks * (ranks - 1));
  CHECK(summary.totals.messages == summary.messages_possible);
  CHECK(summary.messages_possible == 6 * summary.edges * static_cast<std::uint64_t>(summary.iterations));
  CHECK(summary.totals.payload_bytes ==
        4 * summary.parameters * summary.edges * static_cast<std::uint64_t>(summary.iterations));
  CHECK(summary.time_per_iteration_s > 0.0);
  CHECK(summary.wall_time_s >= summary.time_per_iteration_s * static_cast<double>(summary.iterations));
  torch::nn::Sequential mean = network();
  torch::load(mean, (folder("dpsgd") / "model.pt").string());
}

TEST_CASE("mixed buffers are segments of their own, behind the parameters") {
  const Cleaner cleaner({"buffers"});
  const Summary summary = run("buffers", "exchange: {name: dpsgd}, train: {epochs: 1, mix_buffers: true}");
  CHECK(summary.segments == 6 + 2);
  CHECK(summary.parameters == 20 + 4 + 730 + 4);
}

TEST_CASE("asynchronous training ends, too, with every rank's events accounted for") {
  const Cleaner cleaner({"asynchronous"});
  const std::string yaml = "exchange: {name: dpsgd, schedule: asynchronous}, train: {epochs: 2}";
  const Summary summary = run("asynchronous", yaml);
  if (mpi_environment().rank() > 0) return;
  CHECK(summary.schedule == "asynchronous");
  // Together they do as many as each would alone, and what is begun before all know of it.
  const auto ranks = static_cast<std::uint64_t>(summary.ranks), done = static_cast<std::uint64_t>(summary.iterations);
  CHECK(summary.iterations >= dry_run(plan_for("asynchronous", yaml), summary.ranks).iterations);
  CHECK(summary.totals.events >= 6 * ranks * done);
  // Each event goes along each edge, at once or with a later one, also those of ranks that serve at the end.
  CHECK(summary.totals.messages + summary.totals.deferred == summary.totals.events * summary.edges / ranks);
  CHECK(summary.accuracy_mean_model.has_value());
}

TEST_CASE("ranks that mixing does not hold together are warned of once, before numbers overflow") {
  if (mpi_environment().ranks() == 1) return;
  const Cleaner cleaner({"apart10", "apart0.2"});
  for (const std::string strength : {"10", "0.2"}) {
    CAPTURE(strength);
    std::vector<std::string> warnings;
    bool diverged = false;
    Config config = Config::from_text(
        "{seed: 3, data: {batch_size: 8}, train: {epochs: 60}, exchange: {name: dpsgd, correction: {name: drift, "
        "strength: " +
        strength + "}}}");
    config.document().override_with("report.directory=" + folder("apart" + strength).string());
    try {
      train(mpi_environment(), RunPlan(config, task_for()),
            {.warned = [&](const std::string& words) { warnings.push_back(words); }});
    } catch (const DivergenceError&) {
      diverged = true;
    }
    CHECK(diverged == (strength == "10"));
    const auto apart = [](const std::string& words) { return words.find("does not hold them") != std::string::npos; };
    CHECK(std::ranges::count_if(warnings, apart) == (diverged && mpi_environment().rank() == 0 ? 1 : 0));
  }
}

TEST_CASE("augmentation of images that do not keep their class is refused") {
  const RunPlan plan(Config::from_text("data: {augmentation: pad_crop_flip}"), task_for());
  CHECK_THROWS_WITH_AS(dry_run(plan, 2), doctest::Contains("data.augmentation"), ConfigError);
}

TEST_CASE("a dry run knows sizes without training") {
  const RunPlan plan = plan_for("dry", "exchange: {name: dpsgd}");
  const DryRun dry = dry_run(plan, 4);
  CHECK(dry.directed_edges == 12);
  CHECK(dry.parameters == 20 + 4 + 730);
  CHECK(dry.segments == 6);
  CHECK(dry.iterations_per_epoch == 3);
  CHECK(dry.iterations == 30);
  CHECK(dry.worst_case_bytes_per_iteration == 12 * (32 + 6 * 16 + 4 * dry.parameters));
  CHECK(dry.memory.at(1).what == "window");
  CHECK(dry.memory.at(1).bytes >= 3 * 3 * (dry.worst_case_bytes_per_iteration / 12));
  std::uint64_t sum = 0;
  for (const DryRun::Memory& part : dry.memory) sum += part.bytes;
  CHECK(sum == dry.memory_bytes());
}

}  // namespace
}  // namespace session_test
