#include "runtime/mpi/driver.hpp"

#include <utility>

namespace hearsay::mpi {

Clock clock() { return steady_time; }
const char* clock_name() { return "real"; }

// Where puts are messages, each of their round trips waits for this rank's next look; on one host nothing does but this
// rank's own copies, which are seen a part of an iteration later.
std::unique_ptr<CommunicationEngine> make_engine(ProgressStep step, Window& window) {
  using namespace std::chrono_literals;
  const Naps on_one_host{.shortest = 20us, .growth = 4, .longest = 8ms};
  return std::make_unique<ThreadEngine>(std::move(step), window.fills_by_itself() ? on_one_host : Naps{});
}

}  // namespace hearsay::mpi
