#include "runtime/job/start_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/processes.hpp"
#include "runtime/mpi/environment.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

long own_number(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? -1 : std::atol(text);
}

/// mpirun, or its daemon on this host.
bool is_launcher(pid_t process) {
  constexpr std::array known{"mpirun", "mpiexec", "orterun", "orted", "prterun", "prted"};
  const auto status = status_of(process);
  return status && std::ranges::any_of(known, [&](const char* name) { return status->name.starts_with(name); });
}

/// Whether it runs, or is stopped, as a child of `parent`.
bool is_living_child(pid_t process, pid_t parent) {
  const auto status = status_of(process);
  return status && status->parent == parent && status->state != 'Z' && status->state != 'X';
}

long number(const Variables& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? -1 : std::atol(found->second.c_str());
}

/// local rank → rank of this job's processes on this host that live.
std::map<long, long> living_here(pid_t launcher, const std::string& job) {
  std::map<long, long> living;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto process = static_cast<pid_t>(std::atol(name.c_str()));
    if (!is_living_child(process, launcher)) continue;
    const Variables variables = first_variables(process).value_or(Variables{});
    const long local = number(variables, "OMPI_COMM_WORLD_LOCAL_RANK"),
               rank = number(variables, "OMPI_COMM_WORLD_RANK");
    const auto of = variables.find("PMIX_NAMESPACE");
    const bool ours = job.empty() || (of != variables.end() && of->second == job);
    if (local >= 0 && rank >= 0 && ours) living[local] = rank;
  }
  return living;
}

/// Where ranks have died that were never seen, their numbers are known on a host that has all of them.
std::string name_of(long local, const std::map<long, long>& seen, bool one_host) {
  if (const auto found = seen.find(local); found != seen.end()) return "rank " + std::to_string(found->second);
  return one_host ? "rank " + std::to_string(local) : "process " + std::to_string(local) + " of a host";
}

}  // namespace

StartWatch::Launched::Launched()
    : local_rank(own_number("OMPI_COMM_WORLD_LOCAL_RANK")),
      ranks_here(own_number("OMPI_COMM_WORLD_LOCAL_SIZE")),
      ranks(own_number("OMPI_COMM_WORLD_SIZE")) {
  if (const char* const name = std::getenv("PMIX_NAMESPACE")) job = name;
}

StartWatch::StartWatch(std::function<void(const std::string& words)> ends) : ends_(std::move(ends)) {
  if (!mpi::Environment::launcher_recovers() || !is_launcher(::getppid())) return;
  thread_ = std::thread([this] { watch(); });
}

/// Without MPI, which may be waiting. The launcher ends all others, on all hosts.
void StartWatch::end_job(int launcher, const std::string& words) const {
  constexpr unsigned until_the_launcher_has_s = 5;
  ends_(words);
  if (!words.empty()) ::kill(launcher, SIGTERM);
  ::sleep(until_the_launcher_has_s);
  std::fflush(nullptr);
  ::_exit(static_cast<int>(ExitCode::communication));
}

void StartWatch::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  over_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool StartWatch::ends_within(double seconds) {
  std::unique_lock lock(mutex_);
  return over_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return ended_; });
}

// A rank is missed for a while before it counts: the launcher may not have started it yet, and ranks that end together
// do not end in the same instant.
void StartWatch::watch() {
  constexpr double between_s = 0.2;
  constexpr int most_missed = 15, most_looks = 30 * 60 * 5;
  const pid_t launcher = ::getppid();
  const bool one_host = launched_.ranks_here == launched_.ranks;
  std::map<long, long> seen;
  std::map<long, int> missed;
  for (int looks = 0; !ends_within(between_s); ++looks) {
    const std::map<long, long> living = living_here(launcher, launched_.job);
    seen.insert(living.begin(), living.end());
    const bool speaks = !living.empty() && living.begin()->first == launched_.local_rank;
    for (long local = 0; local < launched_.ranks_here; ++local) {
      missed[local] = living.contains(local) ? 0 : missed[local] + 1;
      if (missed[local] < most_missed) continue;
      const std::string words =
          name_of(local, seen, one_host) +
          " has died before training began, and the others would wait for it; start the job again";
      end_job(launcher, speaks ? words : "");
    }
    if (!one_host && looks > most_looks)
      end_job(launcher,
              speaks ? "training has not begun within half an hour: a rank on another host may have died" : "");
  }
}

}  // namespace hearsay
