#pragma once
// A read and checked configuration: everything about a run that can be known without communication. No LibTorch here;
// a program that makes a Task includes runtime/training/model/model.hpp too.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/config/config.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/image_batches.hpp"
#include "runtime/data/partition.hpp"
#include "runtime/data/sampler.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/failure/on_failure.hpp"
#include "runtime/report/checkpoint.hpp"
#include "runtime/report/report.hpp"
#include "runtime/training/model/learning_rate.hpp"
#include "runtime/training/model/optimizer.hpp"
#include "runtime/training/trainer.hpp"

namespace hearsay {

class Model;

/// What is trained on what: filled by the program (from its tables of models and data sets) or by a user of the
/// library. Whoever fills it has read the keys that it needs from the sections `model:` and `data:`.
struct Task {
  std::string model_name, dataset_name;
  std::function<Model(const ExampleShape& shape)> make_model;  ///< called after LibTorch's generator has been seeded
  std::function<DataSet()> load_data;                          ///< called on every rank; the same data everywhere
};

class RunPlan {
 public:
  struct Parts {
    std::string config_yaml;  ///< whole and valid, with all defaults: YAML that gives the same run
    Task task;
    std::uint64_t seed;
    // data:
    std::unique_ptr<Partition> partition;
    std::size_t batch_size;  ///< of one rank
    Batches batches;
    bool shuffle;
    Augmentation augmentation;
    // optimizer:
    std::unique_ptr<OptimizerPlan> optimizer;
    std::unique_ptr<LearningRate> learning_rate;
    // topology:, exchange:
    std::unique_ptr<TopologyPlan> topology;
    std::string exchange_name;
    std::unique_ptr<ExchangePlan> exchange;
    // train:
    std::int64_t epochs;
    Iteration most_iterations;  ///< 0: as many as the epochs have
    RunLength::Budget budget;
    CheckpointOptions checkpoint;
    OnFailure on_failure;
    std::string initial_model;           ///< a file to start from; empty: none
    double most_seconds;                 ///< 0: as long as it takes
    std::int64_t evaluate_every_epochs;  ///< 0: at the end only
    bool mix_buffers;
    bool common_dropout;
    double label_smoothing;
    int threads;
    std::string device;  ///< cpu, cuda
    // report:
    ReportOptions report;
    bool save_model;
  };

  /// Reads all sections and throws what is wrong with them: a program reads sections of its own before that.
  RunPlan(Config config, Task task);

  const Parts& parts() const { return parts_; }
  const ReportOptions& report() const { return parts_.report; }
  const std::string& config_yaml() const { return parts_.config_yaml; }
  /// How many of so many processes train: all but the spares. Throws ConfigError if that is nobody.
  int ranks(int processes) const { return parts_.on_failure.ranks(processes); }
  /// Builds graph and weights for those of so many processes that train: ConfigError if they, or the exchange, do not
  /// fit.
  Topology topology(int processes) const {
    parts_.exchange->require_ranks(ranks(processes));
    return parts_.topology->build(ranks(processes));
  }
  /// For a training set of `examples`: an epoch is ⌈⌈N/P⌉ / batch_size⌉ iterations of every rank.
  RunLength length(std::size_t examples, int ranks) const;
  /// What one rank draws per epoch: ⌈N/P⌉.
  static std::size_t samples_per_epoch(std::size_t examples, int ranks);

 private:
  Parts parts_;
};

}  // namespace hearsay
