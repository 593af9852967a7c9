// hearsay simulate: finds the program that is built on the simulator's MPI, and becomes it.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "apps/hearsay/commands.hpp"
#include "base/error.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

/// Beside this program, or in the build tree of the preset `simulator` beside this one's.
fs::path found_simulator() {
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& path :
       {here / "hearsay-simulator", here.parent_path().parent_path() / "simulator/apps/simulator/hearsay-simulator"}) {
    if (fs::is_regular_file(path, ignored)) return path;
  }
  throw ConfigError(
      "simulate: its program, hearsay-simulator, is not built yet. It needs SimGrid (Debian: apt-get install "
      "libsimgrid-dev). In Hearsay's source folder:\n"
      "  cmake --preset simulator -D HEARSAY_BUILD_TESTS=OFF\n"
      "  cmake --build --preset simulator --target hearsay-simulator\n"
      "If it is elsewhere: --simulator PROGRAM");
}

}  // namespace

int simulate_command(const std::optional<fs::path>& simulator, const std::vector<std::string>& arguments) {
  const std::string program = (simulator ? *simulator : found_simulator()).string();
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  throw ConfigError("--simulator " + program + ": cannot be started (" + std::strerror(errno) + ")");
}

}  // namespace hearsay
