#pragma once
// What only all ranks together know of a run: the second half of its summary.
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/exchange/exchange.hpp"
#include "runtime/report/report.hpp"
#include "runtime/transport/communicator.hpp"

namespace hearsay {

/// How long a rank's training took, and what of that were evaluations, and waiting for others after its last
/// iteration.
struct RunTimes {
  double wall_s = 0.0;
  double evaluate_s = 0.0;
  double idle_s = 0.0;
};

/// What one rank knows at its end beside its ledger.
struct RankResult {
  RunTimes times;
  Iteration iterations = 0;  ///< of this rank
  std::uint64_t replica_hash = 0;
  std::vector<Share> shares;
  std::int64_t rank = -1;  ///< −1: where it stands among all
};

/// One rank's account and where the files of all ranks go.
struct RankAccount {
  const Ledger& ledger;
  const Neighbourhood& neighbourhood;
  const Layout& layout;
  const std::filesystem::path& directory;
  Unwritten not_written{};  ///< by this rank
};

/// Sets what the dense algorithm of the same path would have sent; ranks, iterations, edges, parameters and segments
/// are there already. `neighbours`: the path along the edges of a graph, else the global one.
void count_possible(Summary& summary, bool neighbours);

/// Adds what only all ranks together know: totals, times, hashes; writes communication.csv, segments.csv, staleness.csv
/// and ranks.csv on rank 0. What could not be written is in the summary's not_written. Collective; calls MPI.
void complete_summary(Summary& summary, Communicator& communicator, const RankAccount& account,
                      const RankResult& result);

/// One rank's line of ranks.csv: what it did of the job, and where its time went.
struct RankWork {
  std::int64_t rank = -1;  ///< −1: where it stands among all
  std::int64_t iterations = 0;
  double wall_s = 0.0;  ///< of its training, until all were done
  double idle_s = 0.0;  ///< of that, after its last iteration while others were computing
  std::array<double, phase_names.size()> phase_s{};
};

/// As columns of numbers, to be gathered on rank 0, and back. Throws CommunicationError for other bytes.
std::vector<std::byte> packed(const RankWork& work);
RankWork unpacked_work(std::span<const std::byte> bytes);

/// A line a rank; `share` is its part of all iterations. `run_id`: the last column.
std::string ranks_csv(std::span<const RankWork> ranks, const std::string& run_id);

/// Every rank's text on rank 0, in rank order; empty elsewhere. Collective; calls MPI.
std::vector<std::string> gather_texts(Communicator& communicator, const std::string& text);
/// "2, 5": the ranks whose text is not rank 0's. Known on rank 0. Collective; calls MPI.
std::string ranks_that_differ(Communicator& communicator, const std::string& text);

}  // namespace hearsay
