#pragma once
// What a rank lets others know before they are in anything collective together.
#include <functional>

namespace hearsay {

enum class Notice {
  joins,     ///< this rank is in its first collective call
  has_ended  ///< this rank's program is at its end
};

/// All of it waits for no rank, but for `await_all`. One thread at a time.
class Notices {
 public:
  virtual ~Notices() = default;
  virtual void post(Notice notice) = 0;
  virtual void withdraw(Notice notice) = 0;
  /// Whether a rank has posted it. False, too, where the launcher keeps no notices.
  virtual bool has_posted(int rank, Notice notice) = 0;
  /// Collective: returns when every rank has called it. `idle` runs meanwhile, and may throw: then nothing collective
  /// works any more.
  virtual void await_all(const std::function<void()>& idle) = 0;
};

}  // namespace hearsay
