// hearsay train CONFIG: the configuration, the tables of models and data sets, and the session, put together.
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "apps/datasets/datasets.hpp"
#include "apps/hearsay/commands.hpp"
#include "apps/hearsay/failure.hpp"
#include "apps/hearsay/launch.hpp"
#include "apps/hearsay/progress.hpp"
#include "apps/hearsay/train_report.hpp"
#include "apps/models/models.hpp"
#include "runtime/base/yaml.hpp"
#include "runtime/training/model.hpp"
#include "runtime/training/session.hpp"

namespace hearsay {
namespace {

/// A model and a data set as the configuration chooses them. Data that were loaded to see whether they can be are kept
/// for the training.
class ChosenTask {
 public:
  explicit ChosenTask(Config& root) {
    const std::uint64_t seed = read_seed(root);
    Config model = root.section("model");
    const ModelEntry& model_entry = chosen_entry(models(), model, models().front().name, "what is trained");
    factory_ = model_entry.make(model);
    Config data = root.section("data");
    const DatasetEntry& data_entry = chosen_entry(datasets(), data, datasets().front().name, "what it is trained on");
    source_ = data_entry.make(data, seed);
    model_name_ = model_entry.name;
    dataset_name_ = data_entry.name;
  }

  /// Throws what is wrong with the data's files, or with this model for these data.
  void check() {
    loaded_ = source_->load();
    static_cast<void>(factory_->make(loaded_->train));
  }

  ImageData load() { return loaded_ ? *std::exchange(loaded_, std::nullopt) : source_->load(); }

  /// `self` lives as long as the task.
  static Task task(const std::shared_ptr<ChosenTask>& self) {
    return {.model_name = self->model_name_,
            .dataset_name = self->dataset_name_,
            .make_model = [self](const ImageSet& images) { return self->factory_->make(images); },
            .load_data = [self] { return self->load(); }};
  }

 private:
  std::unique_ptr<ModelFactory> factory_;
  std::unique_ptr<DatasetSource> source_;
  std::string model_name_, dataset_name_;
  std::optional<ImageData> loaded_;
};

struct ReadRun {
  std::shared_ptr<ChosenTask> task;
  RunPlan plan;
};

ReadRun read_run(const ConfigArguments& arguments, const std::vector<std::string>& more = {}) {
  Config config = Config::from_file(arguments.file);
  for (const std::string& assignment : arguments.set) config.override_with(assignment);
  for (const std::string& assignment : more) config.override_with(assignment);
  auto task = std::make_shared<ChosenTask>(config);
  return {.task = task, .plan = RunPlan(config, ChosenTask::task(task))};
}

ReadRun read_run(const TrainArguments& arguments) {
  std::vector<std::string> more;
  if (arguments.output) more.push_back("report.directory=" + yaml_text(*arguments.output));
  if (arguments.overwrite) more.emplace_back("report.overwrite=true");
  return read_run(arguments.config, more);
}

int dry_run_command(const TrainArguments& arguments, const mpi::Environment& mpi) {
  std::string text;
  const int code = attempt_together(mpi, [&] {
    const ReadRun run = read_run(arguments);
    const Topology topology = run.plan.topology(mpi.ranks());
    if (mpi.rank() == 0) text = dry_run_text(dry_run(run.plan, mpi.ranks()), topology);
  });
  if (code == 0) std::printf("%s", text.c_str());
  return code;
}

}  // namespace

Topology planned_topology(const ConfigArguments& config, int ranks) { return read_run(config).plan.topology(ranks); }

PlannedModel planned_model(const ConfigArguments& config, int ranks) {
  const ReadRun run = read_run(config);
  Config ring = Config::from_text("graph: {name: ring}");
  const bool has_graph = run.plan.parts().exchange->uses_graph();
  Topology topology = has_graph ? run.plan.topology(ranks) : TopologyPlan(ring).build(ranks);
  MeasuredModel measured = measure_model(run.plan, ranks);
  return {.layout = std::move(measured.layout), .topology = std::move(topology), .compute_s = measured.step_s};
}

int train_command(const TrainArguments& arguments, MpiSlot& mpi) {
  default_to_one_thread();
  if (arguments.dump_config) {
    const std::string yaml = read_run(arguments).plan.dump();
    if (launched_rank() == 0) std::printf("%s", yaml.c_str());
    return 0;
  }
  mpi = std::make_unique<mpi::Environment>();
  if (arguments.dry_run) return dry_run_command(arguments, *mpi);

  // Whatever can be wrong before ranks start to talk to each other comes to light here.
  std::optional<ReadRun> run;
  const int code = attempt_together(*mpi, [&] {
    run.emplace(read_run(arguments));
    static_cast<void>(run->plan.topology(mpi->ranks()));
    run->task->check();
    if (mpi->rank() == 0) prepare_run_folder(run->plan.report());
  });
  if (code != 0) return code;

  ProgressDisplay display(mpi->rank() == 0 ? arguments.progress : ProgressMode::off, stderr);
  const Summary summary = train(*mpi, run->plan,
                                {.command = arguments.command,
                                 .progress = [&](const Progress& progress) { display.update(progress); },
                                 .evaluated = [&](const EvaluationRecord& record) { display.evaluated(record); }});
  display.finish();
  if (mpi->rank() == 0) std::printf("%s", outcome_text(summary, run->plan.report().directory).c_str());
  return 0;
}

}  // namespace hearsay
