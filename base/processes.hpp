#pragma once
// Processes of this host, as /proc shows them: what they were started with, and by whom.
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>

namespace hearsay {

/// Environment variables by name.
using Variables = std::map<std::string, std::string, std::less<>>;
/// This process's own, as they are now.
Variables own_variables();
/// What a process was started with, whatever it has set since; none where it may not be read.
std::optional<Variables> first_variables(pid_t process);

struct ProcessStatus {
  std::string name;  ///< its program's, 15 characters at most
  char state = 'X';  ///< 'Z': it has ended
  pid_t parent = 0;  ///< 0: none that is seen from here
};
/// None where there is no such process.
std::optional<ProcessStatus> status_of(pid_t process);

}  // namespace hearsay
