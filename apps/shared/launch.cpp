#include "apps/shared/launch.hpp"

#include <array>
#include <cstdlib>

#include "base/error.hpp"
#include "base/launchers.hpp"

namespace hearsay {
namespace {

/// Set by Open MPI, PMIx (Slurm, PRRTE) and PMI (MPICH, Intel MPI), also where there is one process.
constexpr std::array rank_variables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

const char* rank_text() {
  for (const char* variable : rank_variables) {
    if (const char* text = std::getenv(variable)) return text;
  }
  return nullptr;
}

}  // namespace

bool started_by_launcher() try {
  return rank_text() != nullptr || launch_of(own_lineage());
} catch (const ConfigError&) {
  return true;
}

// Where launchers contradict each other every process is told so when it starts its job.
int launched_rank() try {
  if (const auto launch = launch_of(own_lineage())) return static_cast<int>(launch->rank);
  const char* text = rank_text();
  return text == nullptr ? 0 : std::atoi(text);
} catch (const ConfigError&) {
  return 0;
}

void default_to_one_thread() {
  constexpr int keep = 0;
  ::setenv("OMP_NUM_THREADS", "1", keep);
}

}  // namespace hearsay
