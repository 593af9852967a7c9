#include "apps/tools/launch.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "base/launchers.hpp"
#include "runtime/sockets/secret.hpp"

namespace hearsay {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr int signal_base = 128;
constexpr std::array forwarded{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};

/// The thread that asks for signals. Another one of this process (numpy has some) hands on what it gets.
std::atomic<pid_t> asking_thread{0};
void hand_on(int signal) { ::syscall(SYS_tgkill, ::getpid(), asking_thread.load(), signal); }

/// A folder in which the processes meet, gone with the job.
class MeetingFolder {
 public:
  MeetingFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hearsay-launch-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw DataError("no folder for the job can be made in " + std::filesystem::temp_directory_path().string() + ": " +
                      std::generic_category().message(errno) + "; let TMPDIR name another place");
    path_ = name;
  }
  ~MeetingFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MeetingFolder(const MeetingFolder&) = delete;
  MeetingFolder& operator=(const MeetingFolder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// While it lives the signals wait to be asked for, and do nothing else.
class BlockedSignals {
 public:
  BlockedSignals() {
    ::sigemptyset(&all_);
    ::sigaddset(&all_, SIGCHLD);
    asking_thread = ::gettid();
    struct sigaction handing_on {};
    handing_on.sa_handler = hand_on;
    handing_on.sa_flags = SA_RESTART;
    for (const int number : forwarded) {
      ::sigaddset(&all_, number);
      ::sigaction(number, &handing_on, nullptr);
    }
    ::sigprocmask(SIG_BLOCK, &all_, &before_);
  }
  ~BlockedSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& before() const { return before_; }
  /// The next signal; nothing within a quarter of a second.
  std::optional<int> next() const {
    constexpr timespec longest{.tv_sec = 0, .tv_nsec = 250'000'000};
    const int signal = ::sigtimedwait(&all_, nullptr, &longest);
    return signal > 0 ? std::optional(signal) : std::nullopt;
  }

 private:
  sigset_t all_{}, before_{};
};

class LocalJob {
 public:
  explicit LocalJob(const LocalLaunch& launch) : launch_(launch) {
    ::setenv("HEARSAY_RANKS", std::to_string(launch.ranks).c_str(), 1);
    if (launch.job.empty()) {
      ::setenv("HEARSAY_JOB", "launch", 1);
      ::setenv("HEARSAY_JOB_TOKEN", sockets::new_token().c_str(), 1);
      ::setenv("HEARSAY_RENDEZVOUS", folder_.path().c_str(), 1);
    } else {
      ::setenv("HEARSAY_JOB", launch.job.c_str(), 1);
    }
    ::setenv("OMP_NUM_THREADS", "1", 0);
    ::unsetenv(rank_process_variable);  // what a rank launches is a job of its own
  }
  /// What has begun ends, also where a later one could not be started.
  ~LocalJob() {
    tell_all(SIGKILL);
    for (const pid_t process : running_) ::waitpid(process, nullptr, 0);
  }
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;

  int run() {
    for (int rank = 0; rank < launch_.ranks; ++rank) start(rank);
    while (!running_.empty()) {
      if (const auto signal = signals_.next(); signal && *signal != SIGCHLD) tell_all(*signal);
      collect();
      end_the_others();
    }
    if (!launch_.recover) return code_;
    return failure_ != 0 || any_ended_well_ ? failure_ : code_;
  }

 private:
  void start(int rank);
  [[noreturn]] void become(int rank, int complaints) const;
  void tell_all(int signal) const {
    for (const pid_t process : running_) ::kill(process, signal);
  }
  void collect();
  void end_the_others();

  const LocalLaunch& launch_;
  const MeetingFolder folder_;
  const BlockedSignals signals_;
  std::vector<pid_t> running_;
  int code_ = 0, failure_ = 0;
  bool any_ended_well_ = false;
  std::optional<std::chrono::steady_clock::time_point> failed_at_;
  int told_ = 0;  // how often the others were told to end
};

void LocalJob::start(int rank) {
  std::array<int, 2> complaints{};
  if (::pipe2(complaints.data(), O_CLOEXEC) != 0)
    throw DataError("no pipe for a process: " + std::generic_category().message(errno));
  const pid_t process = ::fork();
  if (process == 0) become(rank, complaints[1]);
  ::close(complaints[1]);
  int error = process < 0 ? errno : 0;
  if (process > 0) {
    running_.push_back(process);
    if (::read(complaints[0], &error, sizeof error) < 0) error = errno;
  }
  ::close(complaints[0]);
  if (error != 0)
    throw ConfigError("'" + launch_.words.front() + "' cannot be started: " + std::generic_category().message(error));
}

/// In the new process: the pipe is closed by what it becomes, or has why it could not.
void LocalJob::become(int rank, int complaints) const {
  ::setpgid(0, 0);  // a signal to this launcher's group comes by the launcher, and once
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  for (const int number : forwarded) ::signal(number, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &signals_.before(), nullptr);
  ::setenv("HEARSAY_RANK", std::to_string(rank).c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : launch_.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  const int error = errno;
  static_cast<void>(!::write(complaints, &error, sizeof error));
  ::_exit(1);
}

void LocalJob::collect() {
  for (;;) {
    int status = 0;
    const pid_t process = ::waitpid(-1, &status, WNOHANG);
    if (process <= 0) return;
    if (std::erase(running_, process) == 0) continue;
    const int code = WIFSIGNALED(status) ? signal_base + WTERMSIG(status) : WEXITSTATUS(status);
    any_ended_well_ = any_ended_well_ || code == 0;
    if (code == 0) continue;
    // Those that have lost a member end with 4: what it has ended with says more.
    constexpr auto has_lost_others = static_cast<int>(ExitCode::communication);
    if (code_ == 0 || code_ == has_lost_others) code_ = code;
    const bool is_death = code > signal_base || code == has_lost_others;  // killed, or taken for dead: others go on
    if (!is_death && failure_ == 0) failure_ = code;
    if (is_death && launch_.recover) continue;
    if (!failed_at_) failed_at_ = std::chrono::steady_clock::now();
  }
}

/// They have heard of it by themselves, if they were connected already, and say how it went.
void LocalJob::end_the_others() {
  if (!failed_at_) return;
  constexpr double patience_s = 5.0;
  if (Seconds(std::chrono::steady_clock::now() - *failed_at_).count() < patience_s * (told_ + 1)) return;
  tell_all(told_++ == 0 ? SIGTERM : SIGKILL);
}

}  // namespace

int launch_here(const LocalLaunch& launch) { return LocalJob(launch).run(); }

}  // namespace hearsay
