#include "runtime/training/run_plan.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace hearsay {
namespace {

/// The model of a program of one's own stands in its config.yaml, too, so that no other program takes it for something
/// else. A program that chooses by name has read the name already.
void name_task(Config& root, const Task& task) {
  for (const auto& [key, name] : {std::pair{"model", task.model_name}, {"data", task.dataset_name}}) {
    Config section = root.section(key);
    if (section.asked("name")) continue;
    const std::string given = section.text("name", name, "what this program trains");
    section.require(given == name, "name", "this program has '" + name + "' only, got '" + given + "'");
  }
}

void read_data(Config& root, RunPlan::Parts& parts) {
  Config data = root.section("data");
  Config partition = data.section("partition");
  parts.partition = chosen_entry(partitions(), partition, "iid", "which rank trains on which examples").make(partition);
  parts.batch_size = static_cast<std::size_t>(
      data.integer("batch_size", 64, Range::at_least(1), "examples of one rank in one iteration"));
  parts.batches =
      data.choice("batch_sizes", "whole", {"whole", "even"},
                  "how an epoch is cut up: whole batches and one with what is left, which may be a few "
                  "examples that count as much as a whole batch, or even ones, of batch_size at most") == "even"
          ? Batches::even
          : Batches::whole;
  parts.shuffle = data.flag("shuffle", true, "a new random order of every rank's examples in every epoch");
  parts.augmentation = read_augmentation(data);
}

void read_optimizer(Config& root, RunPlan::Parts& parts) {
  Config optimizer = root.section("optimizer");
  parts.optimizer = chosen_entry(optimizers(), optimizer, "sgd", "how a gradient becomes a step").make(optimizer);
  parts.learning_rate = std::make_unique<LearningRate>(optimizer, parts.optimizer->learning_rate());
}

void read_exchange(Config& root, RunPlan::Parts& parts) {
  Config exchange = root.section("exchange");
  const ExchangeEntry& entry = chosen_exchange(exchange);
  parts.exchange_name = entry.name;
  parts.exchange = entry.make(exchange, root);
  parts.topology = plan_topology(root, *parts.exchange);
}

void require_fitting_optimizer(Config& root, const RunPlan::Parts& parts) {
  root.section("optimizer")
      .require(parts.optimizer->is_by_value() || !parts.exchange->laws().sharded, "name",
               "it moves a matrix by the gradient of all of it, and exchange.name: " + parts.exchange_name +
                   " gives a rank the gradient of a part of the model; take another exchange, or adamw");
}

void read_failures(Config& train, RunPlan::Parts& parts) {
  parts.on_failure = read_on_failure(train, *parts.exchange);
  train.require(!parts.on_failure.others_go_on || parts.budget == RunLength::Budget::job, "on_failure",
                "continue needs budget: job, so that the living can do what the dead have left");
}

void read_train(Config& root, RunPlan::Parts& parts) {
  Config train = root.section("train");
  parts.epochs = train.integer("epochs", 10, Range::between(1, 1e9), "passes over the training set");
  parts.most_iterations = train.integer("iterations", 0, Range::at_least(0),
                                        "stop after so many iterations, if that is earlier; 0: no limit");
  const bool lockstep = parts.exchange->schedule() == Schedule::lockstep;
  parts.budget =
      train.choice("budget", lockstep ? "rank" : "job", {"rank", "job"},
                   "rank: every rank does all iterations, and the slowest ends the run; job: the ranks do "
                   "so many times their number together, fast ones more (default in asynchronous training)") == "job"
          ? RunLength::Budget::job
          : RunLength::Budget::rank;
  train.require(!lockstep || parts.budget == RunLength::Budget::rank, "budget",
                "ranks that wait for each other do equally many iterations; job needs exchange.schedule: asynchronous");
  parts.most_seconds = train.real("seconds", 0.0, Range::at_least(0.0),
                                  "stop after so many seconds of training, if that is earlier; 0: no limit");
  parts.evaluate_every_epochs = train.integer(
      "evaluate_every_epochs", 1, Range::between(0, 1e9),
      "evaluate the averaged model every so many epochs, 0: only at the end. Asynchronous ranks wait for nobody: they "
      "leave what they have then in the run folder, and it is evaluated when training is over");
  parts.mix_buffers = train.flag("mix_buffers", false,
                                 "send and mix normalisation buffers like parameters, as segments behind them; false: "
                                 "they stay on their rank and are averaged for evaluation only");
  train.require(!parts.mix_buffers || parts.exchange->laws().mixes == ExchangeLaws::Mixes::models, "mix_buffers",
                "buffers can be mixed on the neighbour path only; on the global path they are averaged for evaluation");
  Config checkpoint = train.section("checkpoint");
  parts.checkpoint = read_checkpoint_options(checkpoint);
  read_failures(train, parts);
  parts.initial_model =
      train.path("initial_model", "",
                 "the model that training starts from: a model.pt of a run with this model; empty: random parameters");
  parts.common_dropout = train.flag("common_dropout", false,
                                    "all ranks drop the same units, as the released EventGraD code's equal seeds do; "
                                    "false: every rank draws its own");
  parts.label_smoothing =
      train.real("label_smoothing", 0.0, Range::fraction_below_one(),
                 "part of every target that training spreads evenly over all classes or tokens; test losses are not "
                 "smoothed");
  parts.device =
      train.choice("device", "cpu", {"cpu", "cuda"},
                   "where the replica lives and is trained; cuda: on the host's GPUs, which its ranks share in turn "
                   "(needs a LibTorch with CUDA; docs/guide/gpu.md says what crosses the bus)",
                   "; a GPU is cuda");
  parts.threads = static_cast<int>(train.integer(
      "threads", 1, Range::between(1, 1024), "threads per rank that compute: LibTorch's, and for mixing long blocks"));
}

void read_report(Config& root, RunPlan::Parts& parts) {
  Config report = root.section("report");
  parts.report = read_report_options(report, parts.exchange_name + "-" + parts.task.model_name);
  parts.save_model = report.flag("save_model", true,
                                 "write the averaged model to model.pt at the end; for `hearsay train` only, in Python "
                                 "save the model yourself");
}

RunPlan::Parts read(Config root, Task task) {
  RunPlan::Parts parts{};
  parts.task = std::move(task);
  parts.seed = read_seed(root);
  name_task(root, parts.task);
  read_data(root, parts);
  read_optimizer(root, parts);
  read_exchange(root, parts);
  require_fitting_optimizer(root, parts);
  read_train(root, parts);
  read_report(root, parts);
  root.explain_unknown("simulate", "is for `hearsay simulate`, which takes this file as it is");
  root.document().throw_if_invalid();
  parts.config_yaml = root.document().dump();
  return parts;
}

}  // namespace

RunPlan::RunPlan(Config config, Task task) : parts_(read(std::move(config), std::move(task))) {}

std::size_t RunPlan::samples_per_epoch(std::size_t examples, int ranks) {
  const auto p = static_cast<std::size_t>(ranks);
  return (examples + p - 1) / p;
}

RunLength RunPlan::length(std::size_t examples, int ranks) const {
  const std::size_t samples = samples_per_epoch(examples, ranks);
  RunLength length;
  length.iterations_per_epoch = static_cast<Iteration>((samples + parts_.batch_size - 1) / parts_.batch_size);
  length.iterations = parts_.epochs * length.iterations_per_epoch;
  if (parts_.most_iterations > 0) length.iterations = std::min(length.iterations, parts_.most_iterations);
  length.budget = parts_.budget;
  length.round = parts_.exchange->local_steps();
  return length;
}

}  // namespace hearsay
