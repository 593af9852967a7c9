#pragma once
// One run a folder: the file run.lock, which says who is writing there.
//
// Who makes the file owns the folder (O_EXCL, which holds between hosts, too), and holds the operating system's lock on
// it (flock) for as long as the process lives, however it ends. Where a job goes on without processes that die, all of
// them hold it: a shared lock. A file whose lock can be had alone is of a run whose processes have all died without
// removing it, if they ran on this host; what has become of one on another host is not known here.
#include <filesystem>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace hearsay {

/// "choose another folder with …", and `otherwise` after that.
Remedy another_folder(const std::string& otherwise = "");

class RunLock {
 public:
  static constexpr const char* file_name = "run.lock";

  /// Locks the folder for this process and the run `run_id`. Throws ConfigError if a run is being written there (who,
  /// where, and what to do), DataError if no file can be made there.
  RunLock(const std::filesystem::path& directory, const std::string& run_id);
  /// Another process of the run `run_id`, whose folder is locked already, holds it, too. Without effect where the
  /// file is not seen, or the file system has no locks.
  static RunLock joined(const std::filesystem::path& directory, const std::string& run_id);
  /// The owner has died: this process owns the folder from now on, and the file says so. Without effect if it does
  /// already, or where `joined` had none.
  void take_over();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;
  /// Gives the folder back; its owner removes the file.
  ~RunLock() { give_back(); }
  void give_back();

 private:
  RunLock(std::filesystem::path file, std::string run_id, int descriptor)
      : file_(std::move(file)), run_id_(std::move(run_id)), descriptor_(descriptor) {}
  bool write_owner() const;

  std::filesystem::path file_;
  std::string run_id_;
  int descriptor_ = -1;
  bool owns_ = false;
};

}  // namespace hearsay
