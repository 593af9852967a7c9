#pragma once
// How two members become connected: each proves to the other that it knows the job's token, before anything else is
// said. Challenge and response with nonces of both sides:
//   who knocks:  hello      magic, ranks and incarnations of both, a nonce; proof of all that
//   the door:    challenge  a nonce of its own; proof of hello and nonce
//   who knocks:  answer     proof of hello and the door's nonce
//   the door:    come in    one byte, to who comes after the start: until then its connection counts for nothing
// A proof names its purpose, so none can stand for another. A hello that was heard and said again is answered by a
// challenge and gets no further. Whoever says anything else is sent away without a word, so a stranger who looks for
// open ports learns nothing; who says nothing is sent away after a few seconds. What follows is neither encrypted nor
// proved: who can change bytes on the way can do harm, as with MPI.
// Included in runtime/sockets/ only.
#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sockets/descriptor.hpp"
#include "runtime/sockets/record.hpp"

namespace hearsay::sockets {

using Deadline = std::chrono::steady_clock::time_point;

/// Where a member is waited for. Its local socket has a name that nobody guesses, in no folder (abstract).
class Door {
 public:
  Door();
  const std::string& local_name() const { return local_name_; }
  /// Opens a port for other hosts, on all interfaces or on that of this name or address, and returns how it is reached.
  /// Throws ConfigError where there is no such interface.
  std::vector<std::string> open_port(const std::string& interface);

  struct Visitor {
    int rank;
    Descriptor socket;
  };
  /// The next member that has proved that it is one; nothing if none has come within `longest`.
  std::optional<Visitor> admit(const MemberRecord& self, const Secret& secret, std::chrono::milliseconds longest);

 private:
  /// Somebody who has not said hello yet.
  struct Stranger {
    Descriptor socket;
    Deadline until;
    std::vector<std::byte> said{};
  };
  void let_in(const Descriptor& listener);
  std::optional<Visitor> hear(Stranger& stranger, const MemberRecord& self, const Secret& secret);

  std::string local_name_;
  Descriptor local_, port_;
  std::list<Stranger> strangers_;
};

/// A connection to the member that a record speaks of, which belongs to `secret`'s job; none where nobody is there, or
/// somebody else.
Descriptor knock(const MemberRecord& at, const MemberRecord& self, const Secret& secret);
/// To a visitor that has a place now. False where it is gone.
bool bid_come_in(const Descriptor& visitor);
/// Whether it is bid to come in, within a few seconds.
bool is_bid_come_in(const Descriptor& door);
/// Whether somebody listens where a record says.
bool answers(const MemberRecord& at, const MemberRecord& self);

}  // namespace hearsay::sockets
