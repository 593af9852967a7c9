#pragma once
// How long the all-reduces of the global path take on this machine: MPI's own, the dense ring, and the sparse ones.
//
// The time of a call is that of the slowest rank, from a common barrier to the end of the call there; ranks leave the
// barrier up to a tenth of a millisecond apart where they sleep in it. Encoding, decoding and merging belong to the
// call; selecting does not. Before an algorithm is timed, its result for whole numbers is compared with an oracle's.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/bench/between_ranks/ping_pong.hpp"
#include "runtime/exchange/cost/cost.hpp"

namespace hearsay {

struct CollectivesOptions {
  std::vector<std::size_t> values{};  ///< lengths m of what is summed, in [1, 2³²)
  std::vector<double> densities{};    ///< ρ in (0, 1]; k = kept_count(ρ, m)
  int calls = 1;                      ///< timed calls of each algorithm, at most
  double seconds = 1.0;               ///< no more calls after so long, but five if `calls` allows
  std::uint64_t seed = 1;             ///< of positions and values
};

/// One algorithm for one m (and ρ).
struct CollectiveTiming {
  std::string_view algorithm;
  std::size_t values = 0;
  std::optional<double> density{};  ///< none: dense
  std::size_t k = 0;                ///< entries a rank; m if dense
  int calls = 0;
  double median_s = 0.0, p99_s = 0.0;
  double predicted_s = 0.0;      ///< by the α-β model
  std::uint64_t bytes_sent = 0;  ///< a call, by the rank that sends most; for MPI's own what it was given
};

struct CollectivesReport {
  int ranks = 1;
  int machines = 1;
  std::vector<PingPong> ping_pong{};
  AlphaBeta model{};
  std::vector<CollectiveTiming> timings{};
};

/// The algorithm that is begun: number `index` of `count`.
struct BenchStep {
  int index = 0, count = 0;
  std::string what{};
};

/// Over all ranks of the job, at least two, with MPI started. `begun` is told of every algorithm on every rank. The
/// report is complete on rank 0 only. Throws std::logic_error, naming algorithm and rank, if a result is wrong.
CollectivesReport measure_collectives(const CollectivesOptions& options,
                                      const std::function<void(const BenchStep&)>& begun);

}  // namespace hearsay
