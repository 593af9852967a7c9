#pragma once
// What a rank has of its surroundings beside MPI: the time, who drives its communication, and a way to let time pass.
// Written twice, in real/ and in simulated/, of which a build has one (CMake's HEARSAY_MPI). No <mpi.h> here.
#include <memory>

#include "base/clock.hpp"
#include "runtime/mpi/window.hpp"
#include "runtime/transport/engine.hpp"

namespace hearsay::mpi {

/// The steady clock; in a simulation simulated time, the same on all ranks.
Clock clock();
/// What kind of clock it is: "real", or "simulated".
const char* clock_name();

/// A thread of its own; in a simulation the caller's, which then waits for what happens at `window`. `window` must
/// outlive the engine.
std::unique_ptr<CommunicationEngine> make_engine(ProgressStep step, Window& window);

/// Returns when `seconds` have passed; communication goes on meanwhile.
void pass_time(double seconds, CommunicationEngine& engine, Window& window);

}  // namespace hearsay::mpi
