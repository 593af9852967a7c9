#include "runtime/report/identity/run_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace hearsay {
namespace {

constexpr int most_attempts = 100;

/// What the file says: "run ID\nhost NAME\nprocess NUMBER\n".
struct Owner {
  std::string run_id, host;
  long process = 0;

  std::string text() const {
    return "run " + run_id + "\nhost " + host + "\nprocess " + std::to_string(process) + "\n";
  }
  std::string words() const {
    if (host.empty()) return "another run";
    return "the run " + run_id + " (process " + std::to_string(process) + " on " + host + ")";
  }
};

std::string this_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// An empty one, if nothing is written yet.
Owner read_owner(int descriptor) {
  std::array<char, 1024> text{};
  const ssize_t length = ::pread(descriptor, text.data(), text.size() - 1, 0);
  std::istringstream lines(std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))));
  Owner owner;
  for (std::string word, value; lines >> word >> value;) {
    if (word == "run") owner.run_id = value;
    if (word == "host") owner.host = value;
    if (word == "process") owner.process = std::strtol(value.c_str(), nullptr, 10);
  }
  return owner;
}

bool is_alive(long process) { return ::kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM; }

/// Whether `file` is still the one that is open: its last owner may just have removed it.
bool is_there(int descriptor, const std::filesystem::path& file) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::lstat(file.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

[[noreturn]] void refuse_live(const std::filesystem::path& file, const Owner& owner, const Remedy& remedy) {
  throw ConfigError(file.parent_path().string() + " is being written by " + owner.words(), remedy);
}

/// The owner of a file that this process has not made. It is written right after it is made.
Owner patient_owner(int descriptor) {
  Owner owner = read_owner(descriptor);
  for (int look = 0; look < 20 && owner.host.empty(); ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    owner = read_owner(descriptor);
  }
  return owner;
}

/// Throws unless the file is of a process of this host that has died.
void require_dead(int descriptor, const std::filesystem::path& file) {
  const Remedy elsewhere = another_folder(", or wait until it has ended");
  const bool locked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  const bool busy = !locked && errno == EWOULDBLOCK;
  const Owner owner = patient_owner(descriptor);
  if (busy) refuse_live(file, owner, elsewhere);
  if (!owner.host.empty() && owner.host != this_host()) {
    const std::string remove =
        "that is another host, so this one cannot tell whether it still runs: if it does not, remove " + file.string();
    refuse_live(file, owner, {.program = remove, .python = remove});
  }
  const bool has_no_locks = !locked;  // the file system
  if (has_no_locks && owner.process != ::getpid() && is_alive(owner.process)) refuse_live(file, owner, elsewhere);
}

}  // namespace

Remedy another_folder(const std::string& otherwise) {
  return {.program = "choose another folder with --output DIR or report.directory" + otherwise,
          .python = "choose another folder with `report: {directory: …}`" + otherwise};
}

RunLock::RunLock(const std::filesystem::path& directory, const std::string& run_id)
    : file_(directory / file_name), run_id_(run_id) {
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    descriptor_ = ::open(file_.c_str(), flags | O_CREAT | O_EXCL, 0644);
    const bool made = descriptor_ >= 0;
    const bool found = !made && errno == EEXIST;
    if (found) descriptor_ = ::open(file_.c_str(), flags);
    const bool removed = found && descriptor_ < 0 && errno == ENOENT;  // in between
    if (removed && attempt < most_attempts) continue;
    if (descriptor_ < 0)
      throw DataError(file_.string() + ": cannot be made (" + std::generic_category().message(errno) + ")",
                      another_folder());
    try {
      if (made && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        refuse_live(file_, patient_owner(descriptor_), another_folder());  // it has begun at the same instant
      if (!made) require_dead(descriptor_, file_);
      if (!is_there(descriptor_, file_) && attempt < most_attempts) {  // its owner has just removed it
        ::close(std::exchange(descriptor_, -1));
        continue;
      }
      if (!write_owner()) {
        const std::string why = std::generic_category().message(errno);
        ::unlink(file_.c_str());
        throw DataError(file_.string() + ": cannot be written (" + why + ")", another_folder());
      }
      // From alone to shared. Not in one step: whoever has come in between owns the folder.
      if (::flock(descriptor_, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        refuse_live(file_, patient_owner(descriptor_), another_folder());
    } catch (...) {
      ::close(std::exchange(descriptor_, -1));
      throw;
    }
  }
  owns_ = true;
}

RunLock RunLock::joined(const std::filesystem::path& directory, const std::string& run_id) {
  std::filesystem::path file = directory / file_name;
  int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor >= 0 && (read_owner(descriptor).run_id != run_id || ::flock(descriptor, LOCK_SH | LOCK_NB) != 0))
    ::close(std::exchange(descriptor, -1));
  return {std::move(file), run_id, descriptor};
}

bool RunLock::write_owner() const {
  const std::string text = Owner{.run_id = run_id_, .host = this_host(), .process = ::getpid()}.text();
  return ::ftruncate(descriptor_, 0) == 0 &&
         ::pwrite(descriptor_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

void RunLock::take_over() {
  if (descriptor_ >= 0 && !owns_) owns_ = write_owner();
}

RunLock::RunLock(RunLock&& other) noexcept
    : file_(std::move(other.file_)),
      run_id_(std::move(other.run_id_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      owns_(other.owns_) {}

void RunLock::give_back() {
  if (descriptor_ < 0) return;
  // An owner that was taken for dead finds another one's name there.
  const bool own = owns_ && is_there(descriptor_, file_) && read_owner(descriptor_).process == ::getpid();
  if (own) ::unlink(file_.c_str());
  ::close(std::exchange(descriptor_, -1));
}

}  // namespace hearsay
