#include "runtime/mpi/simulated/failure.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <simgrid/s4u.hpp>

namespace hearsay::mpi {
namespace {

namespace sim = simgrid::s4u;

constexpr const char* instant = "fails at";  // a property of the actor, as all that is a rank's alone is here

}  // namespace

void fail_after(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%a", sim::Engine::get_clock() + seconds);
  sim::Actor::self()->set_property(instant, text);
}

double seconds_to_live() {
  const char* const text = sim::Actor::self()->get_property(instant);
  if (text == nullptr) return std::numeric_limits<double>::infinity();
  return std::max(0.0, std::strtod(text, nullptr) - sim::Engine::get_clock());
}

void fail_if_due() {
  if (seconds_to_live() <= 0.0) stand_still();
}

// SimGrid ends daemons when there are no others left.
void stand_still() {
  sim::Actor::self()->daemonize();
  for (;;) sim::this_actor::suspend();
}

}  // namespace hearsay::mpi
