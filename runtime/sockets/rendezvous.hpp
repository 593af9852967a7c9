#pragma once
// Where the members of a job find each other before they are connected. Needed at the start only: afterwards it may go.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace hearsay::sockets {

/// Short texts by key, which all members see sooner or later. Keys are made of letters, digits, '-' and '.'. One thread
/// at a time. Everything throws ConfigError or DataError where the place cannot be used.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  /// Replaces what is there; who reads meanwhile has the old text or the new one.
  virtual void put(const std::string& key, const std::string& text) = 0;
  /// What stands there afterwards: `text`, or what somebody else has put there before.
  virtual std::string put_if_absent(const std::string& key, const std::string& text) = 0;
  virtual std::optional<std::string> get(const std::string& key) = 0;
  /// The keys that begin so, sorted.
  virtual std::vector<std::string> list(const std::string& prefix) = 0;
  virtual void remove(const std::string& key) = 0;
  /// Returns when something may have changed, after `longest` at the latest.
  virtual void watch(std::chrono::milliseconds longest) = 0;
  /// As a sentence names it: "the folder /x/y".
  virtual std::string name() const = 0;
};

}  // namespace hearsay::sockets
