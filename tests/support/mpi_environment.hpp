#pragma once
// MPI as the test program has initialised it.
#include "runtime/mpi/environment.hpp"

namespace hearsay::test {

/// For test cases in MPI test programs (tests/mpi_main.cpp) only.
mpi::Environment& mpi_environment();

}  // namespace hearsay::test
