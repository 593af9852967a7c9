#pragma once
// What a member says of itself where members meet: who it is, how it is reached, and what it runs.
#include <optional>
#include <string>
#include <vector>

#include "runtime/sockets/secret.hpp"

namespace hearsay::sockets {

/// What all members of a job must have in common. Both are compared, not understood.
struct Identity {
  std::string build;          ///< "0.2.0-4b758d5"
  std::string configuration;  ///< a hash
};

struct MemberRecord {
  int rank = 0, ranks = 1;
  Nonce incarnation{};                 ///< of this process, drawn when it came
  std::string host;                    ///< the same for processes that can open a local socket to each other
  std::string host_name;               ///< for sentences
  std::string local_name;              ///< of its local socket
  std::vector<std::string> addresses;  ///< "10.0.0.7:40123", where it is reached from other hosts
  Identity identity;
};

/// The record as text, with a proof.
std::string sealed(const MemberRecord& record, const Secret& secret);

/// What a text that was found is.
struct FoundRecord {
  MemberRecord record;
  bool is_sealed = false;  ///< by a member of this job
};
/// Nothing where it is no record of this version.
std::optional<FoundRecord> read_record(const std::string& text, const Secret& secret);

/// Identifies this kernel and network namespace.
std::string own_host();
std::string own_host_name();

}  // namespace hearsay::sockets
