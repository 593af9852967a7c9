#pragma once
// One run a folder: the file run.lock, which says who is writing there.
//
// Who makes the file owns the folder (O_EXCL, which holds between hosts, too), and holds the operating system's lock on
// it (flock) for as long as the process lives, however it ends. A file whose lock can be had is of a process that has
// died without removing it, if that process ran on this host; what has become of one on another host is not known here.
#include <filesystem>
#include <string>

#include "base/error.hpp"

namespace hearsay {

/// "choose another folder with …", and `otherwise` behind that.
Remedy another_folder(const std::string& otherwise = "");

class RunLock {
 public:
  static constexpr const char* file_name = "run.lock";

  /// Locks the folder for this process and the run `run_id`. Throws ConfigError if a run is being written there (who,
  /// where, and what to do), DataError if no file can be made there.
  RunLock(const std::filesystem::path& directory, const std::string& run_id);
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;
  /// Gives the folder back, and removes the file.
  ~RunLock();

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace hearsay
