#pragma once
// What a rank has of its surroundings beside MPI: how it begins and ends, the time, and who drives its communication.
// Written twice, in real/ and in simulated/, of which a build has one (CMake's HEARSAY_MPI). No <mpi.h> here.
#include <memory>

#include "base/clock.hpp"
#include "runtime/mpi/communicator_handle.hpp"
#include "runtime/mpi/window.hpp"
#include "runtime/transport/engine.hpp"

namespace hearsay::mpi {

/// Before MPI_Init.
void prepare_process();
/// The thread level that the engine of this build needs.
int needed_thread_level();
/// After MPI_Init: throws ConfigError where this process is the only one that MPI knows of, and one of several to
/// whatever has started it. In a simulation nobody but the simulator starts ranks.
void require_whole_job();
/// Ends every rank of the job, whose ranks are `all`; never returns.
[[noreturn]] void end_job(CommunicatorHandle all, int exit_code);

/// The steady clock; in a simulation simulated time, the same on all ranks.
Clock clock();
/// What kind of clock it is: "real", or "simulated".
const char* clock_name();

/// A thread of its own; in a simulation the caller's, which then waits for what happens at `window`. `window` must
/// outlive the engine.
std::unique_ptr<CommunicationEngine> make_engine(ProgressStep step, Window& window);

}  // namespace hearsay::mpi
