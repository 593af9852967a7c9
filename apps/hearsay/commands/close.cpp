// hearsay close RUN: a run that was killed has no summary. This writes one.
#include <cstdio>

#include "apps/hearsay/commands.hpp"
#include "runtime/training/failure/killed_run.hpp"

namespace hearsay {

int close_command(const std::filesystem::path& directory) {
  const RunFolder folder = RunFolder::resumed(directory);  // refuses a run that is alive
  if (leave_killed_summary(directory))
    std::printf("%s: the run was killed; its summary says so\n", directory.c_str());
  else
    std::printf("%s: has a summary already (%s)\n", directory.c_str(), read_summary(directory).status.c_str());
  return 0;
}

}  // namespace hearsay
