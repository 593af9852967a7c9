// hearsay launch -n P PROGRAM [ARGUMENTS…]
#include "apps/tools/launch.hpp"

#include <filesystem>
#include <string>

#include "apps/hearsay/commands.hpp"
#include "base/error.hpp"

namespace hearsay {

int launch_command(const LaunchArguments& arguments) {
  require_ranks(arguments.ranks);
  if (arguments.words.empty())
    throw ConfigError("launch -n " + std::to_string(arguments.ranks) +
                      ": which program? As in `hearsay launch -n 4 hearsay train CONFIG`");
  std::vector<std::string> words = arguments.words;
  if (words.front() == "hearsay") words.front() = std::filesystem::read_symlink("/proc/self/exe").string();
  return launch_here(
      {.ranks = arguments.ranks, .words = std::move(words), .recover = arguments.recover, .job = arguments.job});
}

}  // namespace hearsay
