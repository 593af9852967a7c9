#pragma once
// Which job this process belongs to, by what has started it.
//
//   mpirun, srun with PMI, what else MPI knows of        MPI
//   torchrun, accelerate, Lightning, `hearsay launch`,   sockets: the processes meet in a folder; MPI is not started
//   a shell loop that sets HEARSAY_RANK and _RANKS
//   srun, flux, … that have told no MPI                  the same, where there is a folder; else MPI is asked first
//   nothing                                              MPI, alone
//
// Where one launcher has started another, the inner one counts (base/launchers.hpp). What a rank starts is no rank: it
// is refused, unless it has a launcher of its own.
//
// HEARSAY_RENDEZVOUS names the folder, which all hosts must see; on one host there is a default. HEARSAY_JOB tells jobs
// apart that meet in the same one, HEARSAY_JOB_TOKEN is their secret, HEARSAY_INTERFACE the network between hosts,
// HEARSAY_START_TIMEOUT how many seconds to wait for those who do not come.
#include <functional>
#include <memory>
#include <string>

#include "runtime/sockets/meeting.hpp"
#include "runtime/sockets/rendezvous.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay {

struct StartOptions {
  std::string build{};  ///< what the program says of itself, the same for all
  /// Another place to meet, for a job of this name, where processes may be on several hosts and no folder is named;
  /// null where there is none.
  std::function<std::unique_ptr<sockets::Rendezvous>(const std::string& job)> elsewhere{};
  std::function<void()> idle = [] {};  ///< runs while others are waited for, without MPI, and may throw
};

/// Collective over all that were started together.
/// Throws ConfigError where a launcher has started several processes that have no way to find each other, for members
/// that are unlike this one, and for variables that make no sense; CommunicationError where somebody does not come.
std::unique_ptr<Job> start_job(const StartOptions& options = {});

/// Some of those who were started together, as a job of their own without MPI, which meets where `elsewhere` says. Its
/// name is that of no other job there. Collective over these. Throws as `start_job`.
std::unique_ptr<Job> start_group(const sockets::Seat& seat, const std::string& name, const StartOptions& options);

/// This process comes to a job of this name that others have started without MPI and that holds places for it
/// (LateMembers). It looks for it in HEARSAY_RENDEZVOUS, or in this host's folder. Throws ConfigError where it is
/// unlike that job's members, or no place is free; CommunicationError where no such job is found.
/// `configuration`: as those say it who hold the places (LateMembers::open_places).
std::unique_ptr<Job> join_job(const std::string& name, const std::string& configuration,
                              const StartOptions& options = {});

}  // namespace hearsay
