#include "runtime/mpi/simulated/platform.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <simgrid/s4u.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace hearsay::mpi {
namespace {

namespace sim = simgrid::s4u;

constexpr unsigned most_seconds = 60;
constexpr rlim_t most_memory = rlim_t{8} << 30;  // in bytes; a million hosts take half of it
constexpr int refused = 2;                       // how a child ends that has found a fault itself
constexpr std::size_t most_text = 4096;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// The first line of what a child process has said, of SimGrid's words without where in its sources they stand.
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

/// The name with every number padded to the same width: node2 before node10.
std::string sort_key(const std::string& name) {
  constexpr std::size_t width = 12;
  std::string key, digits;
  const auto flush = [&] {
    if (!digits.empty()) key += std::string(width - std::min(width, digits.size()), '0') + digits;
    digits.clear();
  };
  for (const char c : name) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      digits += c;
    } else {
      flush();
      key += c;
    }
  }
  flush();
  return key;
}

std::vector<sim::Host*> hosts_in_order(const sim::Engine& engine) {
  std::vector<sim::Host*> hosts = engine.get_all_hosts();
  std::ranges::sort(hosts, {}, [](const sim::Host* host) { return sort_key(host->get_name()); });
  return hosts;
}

/// Runs `work`, which reads a platform, in a child process. What was wrong, in words; empty: it returned.
std::string tried(const std::function<void()>& work) {
  const File said(std::tmpfile());
  if (said == nullptr) throw DataError("no temporary file can be made, which reading a platform needs; is /tmp full?");
  std::fflush(nullptr);  // or the child would write again what is still to be written
  const pid_t child = ::fork();
  if (child < 0) throw DataError("no process can be started, which reading a platform needs");
  if (child == 0) {
    // What ends it is the parent's to tell, whatever handlers there are.
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) std::signal(signal, SIG_DFL);
    ::dup2(::fileno(said.get()), STDERR_FILENO);
    ::alarm(most_seconds);
    const rlimit bound{most_memory, most_memory};
    ::setrlimit(RLIMIT_DATA, &bound);
    try {
      work();
      std::_Exit(EXIT_SUCCESS);
    } catch (const ConfigError& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(refused);
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
  if (WIFEXITED(status) && WEXITSTATUS(status) == refused) return words;
  return "is not a platform of SimGrid (" + (words.empty() ? ending(status) : words) + ")";
}

/// Throws ConfigError; SimGrid may end the process.
std::vector<sim::Host*> loaded(sim::Engine& engine, const std::filesystem::path& file, int ranks) {
  engine.load_platform(file.string());
  for (const sim::Link* link : engine.get_all_links())
    if (!(link->get_bandwidth() > 0.0) || !std::isfinite(link->get_bandwidth()))
      throw ConfigError("the link " + link->get_name() + " has a bandwidth of " +
                        std::to_string(link->get_bandwidth()) + " bytes a second; give it more than 0");
  std::vector<sim::Host*> hosts = hosts_in_order(engine);
  if (hosts.size() < static_cast<std::size_t>(ranks))
    throw ConfigError("has " + std::to_string(hosts.size()) + " hosts, which is too few for " + std::to_string(ranks) +
                      " ranks; use a larger platform or a smaller -n");
  hosts.resize(static_cast<std::size_t>(ranks));
  return hosts;
}

/// Throws ConfigError.
void require_routes(std::span<sim::Host* const> hosts) {
  for (const sim::Host* from : hosts) {
    for (const sim::Host* to : hosts) {
      if (from == to) continue;
      std::vector<sim::Link*> links;
      double latency_s = 0.0;
      from->route_to(to, links, &latency_s);
      if (links.empty() && !(latency_s > 0.0))
        throw ConfigError("there is no route from " + from->get_name() + " to " + to->get_name() + "; add one");
    }
  }
}

}  // namespace

std::string refusal(sim::Engine& engine, const std::filesystem::path& file, int ranks) {
  return tried([&] { require_routes(loaded(engine, file, ranks)); });
}

std::vector<sim::Host*> load_platform(sim::Engine& engine, const std::filesystem::path& file, int ranks) {
  const std::string name = "--platform " + file.string() + ": ";
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file, unknown))
    throw ConfigError(name + "no such file; configs/platforms/ has some");
  const std::string wrong = refusal(engine, file, ranks);
  if (!wrong.empty()) throw ConfigError(name + wrong);
  return loaded(engine, file, ranks);
}

}  // namespace hearsay::mpi
