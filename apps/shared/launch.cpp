#include "apps/shared/launch.hpp"

#include <array>
#include <cstdlib>

namespace hearsay {
namespace {

/// Open MPI, PMIx (Slurm, PRRTE), PMI (MPICH, Intel MPI).
constexpr std::array rank_variables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

const char* rank_text() {
  for (const char* variable : rank_variables) {
    if (const char* text = std::getenv(variable)) return text;
  }
  return nullptr;
}

}  // namespace

bool started_by_launcher() { return rank_text() != nullptr; }

int launched_rank() {
  const char* text = rank_text();
  return text == nullptr ? 0 : std::atoi(text);
}

void default_to_one_thread() {
  constexpr int keep = 0;
  ::setenv("OMP_NUM_THREADS", "1", keep);
}

}  // namespace hearsay
