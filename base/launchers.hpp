#pragma once
// What has started this process, by the environment variables that launchers leave behind. No MPI in here, and any
// environment: what MPI is told is one thing, and what a launcher believes to have started another.
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hearsay {

/// Environment variables by name.
using Variables = std::map<std::string, std::string, std::less<>>;
/// This process's own.
Variables own_variables();

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

/// The innermost launcher that has numbered this process as one of several; none where all say that it is alone. A
/// shell of one process inside of a larger allocation is alone, too.
std::optional<Launch> launch_of(const Variables& variables);

/// Where MPI knows of one process only: the launcher that says otherwise. None where the launcher of this MPI itself
/// has been asked for one process, whatever is around it. `library`: what MPI calls itself, "Open MPI v4.1.4, …".
std::optional<Launch> unheard_launch(const Variables& variables, std::string_view library);

/// One sentence for the user of `program` (its file's name): who says what, and the commands that work.
std::string unheard_text(const Launch& launch, std::string_view library, std::string_view program);

}  // namespace hearsay
