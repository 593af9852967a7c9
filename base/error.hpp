#pragma once
// What can go wrong, by cause. Each cause has one exit code (docs/guide/errors.md); `main` catches once, ends the job.
// A message says the value, the place and the remedy. std::logic_error and everything else is a bug of ours: exit code
// 1.
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hearsay {

enum class ExitCode : int { done = 0, bug = 1, configuration = 2, data = 3, communication = 4, diverged = 5 };

/// What to do about a failure, where the program and Python call that by different names. It follows the message.
struct Remedy {
  std::string program;  ///< "choose another folder with --output DIR"
  std::string python;   ///< "choose another report.directory"
};

/// Base of every failure that has a cause outside the program.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code), in_python_(message) {}
  Error(ExitCode code, const std::string& message, const Remedy& remedy)
      : std::runtime_error(message + "; " + remedy.program), code_(code), in_python_(message + "; " + remedy.python) {}
  ExitCode code() const { return code_; }
  /// `what()` in the words of a Python program.
  const std::string& in_python() const { return in_python_; }

 private:
  ExitCode code_;
  std::string in_python_;
};

/// One thing that is wrong with a configuration. `line` and `column` count from 1; an argument has neither: 0.
struct ConfigProblem {
  std::string source;  ///< the file, or the argument as it was given
  int line = 0, column = 0;
  std::string message;  ///< without its place
};

/// The user asked for something that cannot be: exit code 2. `problems`: in the order of the file, where it has places.
struct ConfigError : Error {
  explicit ConfigError(const std::string& message, std::vector<ConfigProblem> all = {})
      : Error(ExitCode::configuration, message), problems(std::move(all)) {}
  ConfigError(const std::string& message, const Remedy& remedy) : Error(ExitCode::configuration, message, remedy) {}
  std::vector<ConfigProblem> problems;
};

/// A file is missing, truncated, malformed or cannot be written: exit code 3.
struct DataError : Error {
  explicit DataError(const std::string& message) : Error(ExitCode::data, message) {}
  DataError(const std::string& message, const Remedy& remedy) : Error(ExitCode::data, message, remedy) {}
};

/// MPI, the network or a device failed: exit code 4.
struct CommunicationError : Error {
  explicit CommunicationError(const std::string& message) : Error(ExitCode::communication, message) {}
  CommunicationError(const std::string& message, const Remedy& remedy)
      : Error(ExitCode::communication, message, remedy) {}
};

/// The remedy for values that are not finite, where nobody knows a better one.
inline const Remedy lower_the_learning_rate{"lower the learning rate, or exchange.mixing.gamma if the rule has one",
                                            "lower the learning rate, or exchange.mixing.gamma if the rule has one"};

/// The training produced a non-finite loss, gradient or norm: exit code 5.
struct DivergenceError : Error {
  /// Whether a finding says on which rank and at which iteration it was made, or is still to be told that.
  enum class Place { missing, said };
  explicit DivergenceError(const std::string& found, Place its_place = Place::missing,
                           const Remedy& remedy = lower_the_learning_rate)
      : Error(ExitCode::diverged, found, remedy), finding(found), place(its_place) {}
  std::string finding;  ///< `what()` without its remedy
  Place place;
};

}  // namespace hearsay
