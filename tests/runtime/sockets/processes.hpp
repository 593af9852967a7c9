#pragma once
// Jobs of several processes that meet over sockets, forked from the test: no launcher, no MPI.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/sockets/meeting.hpp"
#include "runtime/sockets/shared_folder.hpp"

namespace hearsay::test {

/// A folder of a test's own, gone with it.
class MeetingFolder {
 public:
  MeetingFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hearsay-meeting-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~MeetingFolder() { std::filesystem::remove_all(path_); }
  MeetingFolder(const MeetingFolder&) = delete;
  MeetingFolder& operator=(const MeetingFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  bool is_empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::filesystem::path path_;
};

/// How a process ended.
struct Ending {
  std::string said;   ///< what its function returned
  std::string error;  ///< or what that threw, as far as it came
  int exit_code = 0;  ///< of hearsay::Error; 1: another exception
  int signal = 0;     ///< that has killed it
};

/// A process that runs `body` and is killed when it takes too long.
class Process {
 public:
  explicit Process(const std::function<std::string()>& body) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      run(body, ends[1]);
    }
    ::close(ends[1]);
    pipe_ = ends[0];
  }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), pipe_(std::exchange(other.pipe_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid_ > 0) static_cast<void>(end(std::chrono::seconds(0)));
  }

  void kill(int signal = SIGKILL) const { ::kill(pid_, signal); }
  Ending end(std::chrono::seconds longest = std::chrono::seconds(120)) {
    const auto until = std::chrono::steady_clock::now() + longest;
    std::string all;
    std::array<char, 65536> part{};
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
      pollfd waited{.fd = pipe_, .events = POLLIN, .revents = 0};
      if (left <= 0 || ::poll(&waited, 1, static_cast<int>(left)) == 0) {
        ::kill(pid_, SIGKILL);
        break;
      }
      const ssize_t came = ::read(pipe_, part.data(), part.size());
      if (came <= 0) break;
      all.append(part.data(), static_cast<std::size_t>(came));
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ::close(pipe_);
    pid_ = -1;
    Ending ending;
    if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
    if (WIFEXITED(status)) ending.exit_code = WEXITSTATUS(status);
    (ending.exit_code == 0 ? ending.said : ending.error) = std::move(all);
    return ending;
  }

 private:
  [[noreturn]] static void run(const std::function<std::string()>& body, int pipe) {
    std::string said;
    int code = 0;
    try {
      said = body();
    } catch (const Error& error) {
      said = error.what();
      code = static_cast<int>(error.code());
    } catch (const std::exception& error) {
      said = error.what();
      code = 1;
    }
    for (std::size_t done = 0; done < said.size();) {
      const ssize_t gone = ::write(pipe, said.data() + done, said.size() - done);
      if (gone <= 0) break;
      done += static_cast<std::size_t>(gone);
    }
    ::_exit(code);
  }

  pid_t pid_ = -1;
  int pipe_ = -1;
};

struct MeetingPlan {
  int ranks = 2;
  /// Processes that say the same are on one host; so TCP is between the others, on this machine.
  std::function<std::string(int rank)> host = [](int) { return std::string("here"); };
  std::chrono::milliseconds patience{std::chrono::seconds(60)};
};

inline std::shared_ptr<sockets::Network> join(const MeetingFolder& folder, const MeetingPlan& plan, int rank,
                                              const sockets::Identity& identity = {"build", "configuration"}) {
  sockets::SharedFolder rendezvous(folder.path(), "job");
  return sockets::meet(rendezvous, {.rank = rank, .ranks = plan.ranks}, identity,
                       {.patience = plan.patience, .interface = "127.0.0.1", .host = plan.host(rank)});
}

/// What `body` does on every rank, each a process of its own.
using RankBody = std::function<std::string(const std::shared_ptr<sockets::Network>&)>;
inline std::vector<Ending> run_processes(const MeetingPlan& plan, const RankBody& body) {
  const MeetingFolder folder;
  std::vector<Process> processes;
  for (int rank = 0; rank < plan.ranks; ++rank)
    processes.emplace_back([&, rank] { return body(join(folder, plan, rank)); });
  std::vector<Ending> endings;
  for (Process& process : processes) endings.push_back(process.end());
  CHECK(folder.is_empty());
  return endings;
}

/// The same where all must end well; what they said.
inline std::vector<std::string> all_done(const std::vector<Ending>& endings) {
  std::vector<std::string> said;
  for (std::size_t r = 0; r < endings.size(); ++r) {
    CAPTURE(r);
    CHECK(endings[r].error == "");
    CHECK(endings[r].signal == 0);
    said.push_back(endings[r].said);
  }
  return said;
}

inline MeetingPlan on_one_host(int ranks) { return {.ranks = ranks}; }
inline MeetingPlan on_two_hosts(int ranks) {
  return {.ranks = ranks, .host = [](int rank) { return rank % 2 == 0 ? std::string("even") : std::string("odd"); }};
}
inline MeetingPlan all_apart(int ranks) {
  return {.ranks = ranks, .host = [](int rank) { return std::to_string(rank); }};
}

/// Numbers as a process says them.
template <class Value>
std::string as_text(std::span<const Value> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}
template <class Value>
std::vector<Value> from_text(const std::string& text) {
  std::vector<Value> values(text.size() / sizeof(Value));
  std::memcpy(values.data(), text.data(), values.size() * sizeof(Value));
  return values;
}

}  // namespace hearsay::test
