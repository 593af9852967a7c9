#include "runtime/mpi/driver.hpp"

namespace hearsay::mpi {

void pass_time(double seconds, CommunicationEngine& engine, Window& window) {
  const auto rest = [end = clock()() + std::chrono::duration<double>(seconds)] {
    return std::chrono::duration<double>(end - clock()()).count();
  };
  constexpr double resolution_s = 1e-9;  // of a Clock
  engine.poll();
  for (double left = rest(); left >= resolution_s; left = rest()) {
    window.wait(left);
    engine.poll();
  }
}

}  // namespace hearsay::mpi
