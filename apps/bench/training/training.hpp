#pragma once
// What Hearsay adds to a training step: the same network, batches and optimizer in a bare LibTorch loop and under an
// exchange, in turns within one run, so that a busy machine hits both. No LibTorch in this header.
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "apps/bench/between_ranks/collectives.hpp"
#include "runtime/transport/job.hpp"
#include "runtime/transport/ledger.hpp"

namespace hearsay {

struct TrainingOptions {
  std::string model = "resnet20";
  std::string device = "cpu";            ///< as train.device
  int batch_size = 32;                   ///< of a rank
  std::vector<std::string> exchanges{};  ///< "NAME" or "NAME:SCHEDULE"
  std::vector<std::string> settings{};   ///< "a.b=c", for all of them
  int iterations = 10;                   ///< of a block
  int blocks = 9;                        ///< pairs: one without Hearsay, one with it
};

/// Times are those of an iteration.
struct TrainingTiming {
  std::string exchange;
  double bare_s = 0.0, hearsay_s = 0.0;                         ///< medians over the blocks, of the slowest rank
  double ratio = 0.0, lowest_ratio = 0.0, highest_ratio = 0.0;  ///< of neighbouring blocks: median and range
  std::array<double, phase_names.size()> phase_s{};             ///< mean over blocks and ranks
};

/// Over all ranks of the job, of which each does its bare loop beside the others; the batches are noise of the model's
/// image size. Every rank returns the same. Throws ConfigError.
std::vector<TrainingTiming> measure_training(const TrainingOptions& options, const Job& job,
                                             const std::function<void(const BenchStep&)>& begun);

}  // namespace hearsay
