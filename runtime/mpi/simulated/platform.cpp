#include "runtime/mpi/simulated/platform.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <simgrid/s4u.hpp>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace hearsay::mpi {
namespace {

namespace sim = simgrid::s4u;

constexpr unsigned most_seconds = 60;
constexpr std::size_t most_text = 4096;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// The first line of what SimGrid has said, without where in its sources it stands.
std::string complaint(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  constexpr std::string_view mark = "CRITICAL] ";
  const std::size_t at = text.find(mark);
  return std::string(at == std::string_view::npos ? text : text.substr(at + mark.size()));
}

std::string ending(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return "reading it took more than " + std::to_string(most_seconds) + " s";
  if (WIFSIGNALED(status)) return "its reader ended with signal " + std::to_string(WTERMSIG(status));
  return "its reader ended with exit code " + std::to_string(WEXITSTATUS(status));
}

/// Runs `work` in a child process. What was wrong, in words; empty: it returned.
std::string tried(const std::function<void()>& work) {
  const File said(std::tmpfile());
  if (said == nullptr) throw DataError("no temporary file can be made, which reading a platform needs; is /tmp full?");
  std::fflush(nullptr);  // or the child would write again what is still to be written
  const pid_t child = ::fork();
  if (child < 0) throw DataError("no process can be started, which reading a platform needs");
  if (child == 0) {
    ::dup2(::fileno(said.get()), STDERR_FILENO);
    ::alarm(most_seconds);
    try {
      work();
      std::_Exit(EXIT_SUCCESS);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    std::_Exit(EXIT_FAILURE);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) return "";
  std::string text(most_text, '\0');
  std::rewind(said.get());
  text.resize(std::fread(text.data(), 1, text.size(), said.get()));
  const std::string words = complaint(text);
  return words.empty() ? ending(status) : words;
}

}  // namespace

void load_platform(sim::Engine& engine, const std::filesystem::path& file, int ranks) {
  const std::string name = "--platform " + file.string() + ": ";
  if (!std::filesystem::is_regular_file(file)) throw ConfigError(name + "no such file; configs/platforms/ has some");
  const std::string wrong = tried([&] { engine.load_platform(file.string()); });
  if (!wrong.empty()) throw ConfigError(name + "is not a platform of SimGrid (" + wrong + ")");
  engine.load_platform(file.string());
  for (const sim::Link* link : engine.get_all_links())
    if (!(link->get_bandwidth() > 0.0) || !std::isfinite(link->get_bandwidth()))
      throw ConfigError(name + "the link " + link->get_name() + " has a bandwidth of " +
                        std::to_string(link->get_bandwidth()) + " bytes a second; give it more than 0");
  const auto hosts = static_cast<int>(engine.get_host_count());
  if (hosts < ranks)
    throw ConfigError(name + "has " + std::to_string(hosts) + " hosts, which is too few for " + std::to_string(ranks) +
                      " ranks; use a larger platform or a smaller -n");
}

}  // namespace hearsay::mpi
