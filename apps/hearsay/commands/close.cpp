// hearsay close RUN: a run that was killed has no summary. This writes one.
#include <cstdio>

#include "apps/hearsay/commands.hpp"
#include "apps/shared/output.hpp"
#include "base/text/foreign_text.hpp"
#include "runtime/training/failure/killed_run.hpp"

namespace hearsay {

int close_command(const std::filesystem::path& directory) {
  const RunFolder folder = RunFolder::resumed(directory);  // refuses a run that is alive
  if (leave_killed_summary(directory))
    print(shown(directory.string()) + ": the run was killed; its summary says so\n");
  else
    print(shown(directory.string()) + ": has a summary already (" + shown(read_summary(directory).status) + ")\n");
  return 0;
}

}  // namespace hearsay
