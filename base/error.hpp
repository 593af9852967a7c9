#pragma once
// What can go wrong, by cause. Each cause has one exit code (docs/guide/errors.md); `main` catches once, ends the job.
// A message says the value, the place and the remedy. std::logic_error and everything else is a bug of ours: exit code
// 1.
#include <stdexcept>
#include <string>

namespace hearsay {

enum class ExitCode : int { done = 0, bug = 1, configuration = 2, data = 3, communication = 4, diverged = 5 };

/// Base of every failure that has a cause outside the program.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// The user asked for something that cannot be: exit code 2.
struct ConfigError : Error {
  explicit ConfigError(const std::string& message) : Error(ExitCode::configuration, message) {}
};

/// A file is missing, truncated, malformed or cannot be written: exit code 3.
struct DataError : Error {
  explicit DataError(const std::string& message) : Error(ExitCode::data, message) {}
};

/// MPI, the network or a device failed: exit code 4.
struct CommunicationError : Error {
  explicit CommunicationError(const std::string& message) : Error(ExitCode::communication, message) {}
};

/// The training produced a non-finite loss, gradient or norm: exit code 5.
struct DivergenceError : Error {
  explicit DivergenceError(const std::string& message) : Error(ExitCode::diverged, message) {}
};

}  // namespace hearsay
