#pragma once
// ranks.csv: what every rank did of the job, and where its time went.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/ledger.hpp"

namespace hearsay {

/// One rank's line.
struct RankWork {
  std::int64_t iterations = 0;
  double wall_s = 0.0;  ///< of its training, until all were done
  double idle_s = 0.0;  ///< of that, behind its last iteration while others were computing
  std::array<double, phase_names.size()> phase_s{};
};

/// As columns of numbers, to be gathered on rank 0, and back. Throws CommunicationError for other bytes.
std::vector<std::byte> packed(const RankWork& work);
RankWork unpacked_work(std::span<const std::byte> bytes);

/// A line a rank; `share` is its part of all iterations. `run_id`: the last column.
std::string ranks_csv(std::span<const RankWork> ranks, const std::string& run_id);

}  // namespace hearsay
