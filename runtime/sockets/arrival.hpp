#pragma once
// A process's way into a job that has started: it finds the job, takes the lowest free number, waits for those who came
// before it, and knocks at everybody who is inside. late.hpp is the other end of it.
#include "runtime/sockets/meeting.hpp"
#include "runtime/sockets/places.hpp"
#include "runtime/sockets/rendezvous.hpp"

namespace hearsay::sockets {

/// One that has come, and where.
struct Arrival {
  Met met;
  Places places;
};

/// Comes to a job that has started. Throws ConfigError where its members are unlike this one, or no number is free;
/// CommunicationError where no such job is found, or a member cannot be reached.
Arrival arrive(Rendezvous& rendezvous, const Identity& identity, const MeetingOptions& options = {});

}  // namespace hearsay::sockets
