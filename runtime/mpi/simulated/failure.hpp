#pragma once
// Simulated ranks that fail. One that has failed stands still for ever: it computes, sends and answers no more, and
// what is under way from it or to it never arrives (SimGrid suspends the messages of a suspended actor). Nobody is
// told.
//
// Time passes for a rank in Window::wait and in waits for messages only, and both look. These are functions of the
// calling rank.

namespace hearsay::mpi {

/// It fails when so many simulated seconds have passed.
void fail_after(double seconds);
/// Simulated seconds until then; infinity where it does not fail.
double seconds_to_live();
/// Where the instant has come, never returns.
void fail_if_due();
/// It has nothing to do any more. MPI cannot be ended where ranks have failed: each stops where it is, and run_cluster
/// returns when all have. Never returns; it ends the rank with an exception that is no std::exception.
[[noreturn]] void stand_still();

}  // namespace hearsay::mpi
