#pragma once
// What has started this process, by the environment variables that launchers leave behind. No MPI in here, and any
// environment: what MPI is told is one thing, and what a launcher believes to have started another.
//
// Launchers start each other (mpirun torchrun's agents, a script of torchrun's mpirun), and variables are handed down.
// So the innermost launcher counts: the nearest ancestor that began without a launcher's variables has set them. What
// cannot be told apart so, and says different things, is refused.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/processes.hpp"

namespace hearsay {

/// A process's variables, and what the generations before it began with.
struct Lineage {
  Variables own;
  /// This process itself first, as it began, then its parent, and so on; as far as they may be read.
  std::vector<Variables> began_with{};
};
Lineage own_lineage();

/// What starts several processes at once.
struct Launcher {
  std::string_view name;     ///< as a sentence begins
  std::string_view size;     ///< variable with the number of processes; empty where none has it
  std::string_view rank;     ///< variable with this process's number, from 0
  bool may_tell_mpi = true;  ///< whether an MPI may have heard of the others by it
};

/// `hearsay launch`, and what else sets its variables.
inline constexpr Launcher hearsay_launcher{"`hearsay launch`", "HEARSAY_RANKS", "HEARSAY_RANK", false};

/// What a launcher says of its job.
struct Launch {
  Launcher by;
  std::optional<long> ranks;  ///< none where no variable says it
  long rank;
};

/// A rank of a job leaves its process number here: what it starts is no rank, though it has the rank's variables.
inline constexpr const char* rank_process_variable = "HEARSAY_RANK_PROCESS";

/// The innermost launcher that has numbered this process as one of several, or has been asked for one process only:
/// Hearsay's, or that of this MPI. None where nobody has, as in a shell of one process inside of a larger allocation.
/// `library`: what MPI calls itself, "Open MPI v4.1.4, …"; empty: any. Throws ConfigError where that cannot be seen and
/// launchers contradict each other, where Lightning does not say which rank this is, for what a rank has started, and
/// where the two numbers are none of a process in a job: not whole ones, not from 0 on, or of more than most_ranks.
std::optional<Launch> launch_of(const Lineage& lineage, std::string_view library = {});

/// Where MPI knows of one process only: the launcher that says otherwise. Throws as `launch_of`.
std::optional<Launch> unheard_launch(const Lineage& lineage, std::string_view library);

/// One sentence for the user of `program` (its file's name): who says what, and the commands that work.
std::string unheard_text(const Launch& launch, std::string_view library, std::string_view program);

}  // namespace hearsay
