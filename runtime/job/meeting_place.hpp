#pragma once
// Where the processes of a job without MPI meet, and what tells their job from others, by environment variables.
#include <filesystem>
#include <optional>
#include <string>

#include "base/launchers.hpp"

namespace hearsay {

struct MeetingPlace {
  int rank = 0, ranks = 1;
  std::string job;  ///< a name that SharedFolder takes
  /// None where the processes may be on several hosts, and nobody has named a folder that all of them see.
  std::optional<std::filesystem::path> folder;
  bool folder_is_named = false;  ///< HEARSAY_RENDEZVOUS; else it is this user's own on this host
};

/// The place of a launcher's processes; none where the launcher does not say how many there are. `launch`: launch_of's,
/// whose numbers are those of a process in a job.
std::optional<MeetingPlace> meeting_place(const Launch& launch, const Variables& variables);

/// This user's own on this host.
std::filesystem::path folder_of_host();

}  // namespace hearsay
