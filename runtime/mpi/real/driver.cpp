#include "runtime/mpi/driver.hpp"

#include <utility>

namespace hearsay::mpi {

Clock clock() { return steady_time; }
const char* clock_name() { return "real"; }

std::unique_ptr<CommunicationEngine> make_engine(ProgressStep step, Window& /*window*/) {
  return std::make_unique<ThreadEngine>(std::move(step));
}

}  // namespace hearsay::mpi
