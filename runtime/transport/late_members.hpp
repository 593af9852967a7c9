#pragma once
// What a job has where processes may come after its start: numbers that are held for them, and what they are told.
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace hearsay {

/// All of it throws CommunicationError.
class LateMembers {
 public:
  virtual ~LateMembers() = default;
  /// Whether this process has come after the start.
  virtual bool is_late() const = 0;
  /// From now on `count` processes may come that have this configuration (a hash); their numbers begin with `first`.
  /// Everything that is opened from now on reaches them. Collective over those who have started together; a late one
  /// calls it, too, before it opens anything.
  virtual void open_places(int first, int count, const std::string& configuration) = 0;
  /// What those who come are told from now on.
  virtual void welcome(std::vector<std::byte> words) = 0;
  /// A late process: what it is told. `idle` runs while it waits for that.
  virtual std::vector<std::byte> await_welcome(const std::function<void()>& idle) = 0;
  /// Nobody is let in any more.
  virtual void close_places() = 0;
};

}  // namespace hearsay
