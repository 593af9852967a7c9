#pragma once
// How long an iteration of every exchange takes on the network of this job, without a model: gradients are noise.
//
// The time of an iteration is that of the slowest rank, from a common barrier on; making the gradient and stepping are
// not part of it. The first iteration, which sets up connections and is dense for some, is not counted.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/bench/between_ranks/collectives.hpp"
#include "runtime/exchange/cost/cost.hpp"

namespace hearsay {

struct ExchangesOptions {
  std::size_t values = 0;  ///< parameters
  int segments = 1;        ///< of about equal length
  double density = 0.001;  ///< of the sparse algorithms
  int iterations = 5;      ///< that are timed, at most
  double seconds = 20.0;   ///< no more iterations of an algorithm after so long, but one; before, as long to warm up
  std::string only{};      ///< algorithms whose name contains this
  std::uint64_t seed = 1;
};

struct ExchangeTiming {
  std::string algorithm;
  int iterations = 0;
  double median_s = 0.0, fastest_s = 0.0, slowest_s = 0.0;
  double sent_bytes = 0.0;       ///< of an iteration, by the ledger, mean over ranks
  double predicted_bytes = 0.0;  ///< by formula
  double communication_s = 0.0;  ///< predicted: messages alone
  double own_work_s = 0.0;       ///< predicted: memory, selection, merging
  double predicted_s() const { return communication_s + own_work_s; }
};

/// Over all ranks of the job, at least two, with MPI started. The report is complete on rank 0 only; exchanges without
/// a formula, and asynchronous ones, are left out. Those of the global path are first checked against their laws
/// (mass_balance.hpp); throws std::logic_error.
std::vector<ExchangeTiming> measure_exchanges(const ExchangesOptions& options, const Network& network,
                                              const std::function<void(const BenchStep&)>& begun);

}  // namespace hearsay
