#pragma once
// Which job this process belongs to, by what has started it.
//
//   mpirun, srun with PMI, what else MPI knows of        MPI
//   torchrun, accelerate, Lightning, `hearsay launch`,   sockets: the processes meet in a folder; MPI is not started
//   a shell loop that sets HEARSAY_RANK and _RANKS
//   srun, flux, … of which this MPI has not heard        sockets, once MPI has said that it knows of one process only
//   nothing                                              MPI, alone
//
// HEARSAY_RENDEZVOUS names the folder, which all hosts must see; on one host there is a default. HEARSAY_JOB tells jobs
// apart that meet in the same one, HEARSAY_JOB_TOKEN is their secret, HEARSAY_INTERFACE the network between hosts,
// HEARSAY_START_TIMEOUT how many seconds to wait for those who do not come.
#include <functional>
#include <memory>
#include <string>

#include "runtime/sockets/rendezvous.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay {

/// Another place to meet, for a job of this name; null where there is none.
using OtherPlace = std::function<std::unique_ptr<sockets::Rendezvous>(const std::string& job)>;

/// Collective over all that were started together. `build`: what the program says of itself, the same for all of them.
/// `elsewhere`: asked where processes may be on several hosts, and no folder is named.
/// Throws ConfigError where a launcher has started several processes that have no way to find each other, for members
/// that are unlike this one, and for variables that make no sense; CommunicationError where somebody does not come.
std::unique_ptr<Job> start_job(const std::string& build = {}, const OtherPlace& elsewhere = {});

}  // namespace hearsay
