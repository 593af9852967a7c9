#pragma once
// Ctrl-C while the core waits: Python runs its signal handlers only between two instructions of Python, and there are
// none while a rank waits for its neighbours.
#include <array>
#include <span>

#include <signal.h>

namespace hearsay::python {

/// Handlers of SIGINT, SIGTERM and of what else ends the program: they set a flag and then do what was done before,
/// which is Python's own. The destructor puts back what was there. One at a time per process.
class Interruption {
 public:
  /// `more`: signals beside SIGINT and SIGTERM after which the program does not go on.
  explicit Interruption(std::span<const int> more);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// Whether a signal has come since `forget`. Any thread.
  bool come() const;
  void forget();
};

}  // namespace hearsay::python
