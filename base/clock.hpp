#pragma once
// Where time comes from: the machine's steady clock or, in a simulation, the simulator's.
#include <chrono>

namespace hearsay {

/// Reads the time that has passed since some fixed moment; it never runs backwards.
using Clock = std::chrono::nanoseconds (*)();

/// The clock of every run that is not simulated.
inline std::chrono::nanoseconds steady_time() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace hearsay
