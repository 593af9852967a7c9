#pragma once
// How the members of a job become connected, all to all. Each puts its record where they meet, reads those of the
// others, knocks at those of lower rank and opens to those of higher rank. Whoever has another token, build,
// configuration or number of ranks is refused before a byte of theirs is used, and since both read the record of the
// other, both say so. What somebody has left there who is gone is as if it were not there. Afterwards nobody needs the
// place any more. Cost: P records; P(P − 1)/2 connections, a descriptor each on both sides.
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "runtime/sockets/greeting.hpp"
#include "runtime/sockets/network.hpp"
#include "runtime/sockets/record.hpp"
#include "runtime/sockets/rendezvous.hpp"

namespace hearsay::sockets {

/// Which of how many this process is.
struct Seat {
  int rank = 0, ranks = 1;
};

struct MeetingOptions {
  std::string job = "job";
  std::string token{};  ///< empty: drawn by whoever comes first, and left for the others where they meet
  std::chrono::milliseconds patience{std::chrono::minutes{2}};  ///< with those who do not come
  std::string interface {};       ///< name or address of the one for other hosts; empty: all
  bool reachable = false;         ///< a process that comes later opens a port for others that come after it
  std::string host = own_host();  ///< members that say the same share memory
  /// Told once, after ten seconds, who has not come yet: "1, 3".
  std::function<void(const std::string& missing)> waits = [](const std::string&) {};
  /// Runs while others are waited for, and may throw.
  std::function<void()> idle = [] {};
};

/// How a member is found when all have met: by it others may come later (late.hpp).
struct Residence {
  std::string token;  ///< empty where somebody has given it: then it is left nowhere
  Secret secret;
  Door door;
  MemberRecord self;
};

/// A member that has met the others.
struct Met {
  std::shared_ptr<Network> network;
  Residence residence;
};

/// Returns when all are connected. Throws ConfigError for a member that is not like this one, or a seat that is taken;
/// CommunicationError where somebody does not come.
Met meet_and_stay(Rendezvous& rendezvous, const Seat& seat, const Identity& identity,
                  const MeetingOptions& options = {});
/// The same where nobody comes later.
inline std::shared_ptr<Network> meet(Rendezvous& rendezvous, const Seat& seat, const Identity& identity,
                                     const MeetingOptions& options = {}) {
  return meet_and_stay(rendezvous, seat, identity, options).network;
}

/// The keys of a job where its members meet.
inline constexpr const char *token_key = "token", *members_key = "member-";
inline std::string member_key(int rank) { return members_key + std::to_string(rank); }

}  // namespace hearsay::sockets
