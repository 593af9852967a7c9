#pragma once
// What `hearsay bench collectives` prints.
#include <string>

#include "apps/bench/between_ranks/collectives.hpp"
#include "apps/bench/probe/sparse_passes.hpp"

namespace hearsay {

struct Machine {
  unsigned cores = 0;            ///< 0: not known
  std::string mpi{}, hearsay{};  ///< versions
};

struct CollectivesBench {
  Machine machine{};
  CollectivesReport collectives{};
  MergeTiming merge{};
  SelectionTiming selection{};
};

/// Tables of at most 100 columns.
std::string bench_text(const CollectivesBench& bench);
/// The same numbers, in seconds and bytes, and a newline.
std::string bench_json(const CollectivesBench& bench);

}  // namespace hearsay
