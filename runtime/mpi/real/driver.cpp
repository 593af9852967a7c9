#include "runtime/mpi/driver.hpp"

#include <errno.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "base/launchers.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/mpi/real/room.hpp"

namespace hearsay::mpi {
namespace {

/// Open MPI's ranks spin while they wait. Where ranks outnumber cores, a spinning one keeps a working one from running:
/// ask them to yield.
void yield_if_crowded() {
  const char* ranks_here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (ranks_here == nullptr || std::atol(ranks_here) <= ::sysconf(_SC_NPROCESSORS_ONLN)) return;
  constexpr int keep = 0;
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", keep);
}

/// What Open MPI's TCP does to the living when a rank dies. A message to the dead closes the connection and then
/// watches the closed descriptor: `poll` accepts that, the descriptor's next owner makes the list of events a ring, and
/// no call of MPI returns again; `epoll` refuses. Each failed try to connect takes away one count of open connections:
/// at zero the sockets are looked at every 10 ms, heartbeats come late, and living ranks are taken for dead; so look
/// every 100 us.
void outlive_the_dead_over_tcp() {
  constexpr int keep = 0;
  ::setenv("OMPI_MCA_opal_event_include", "epoll", keep);
  ::setenv("OMPI_MCA_mpi_event_tick_rate", "100", keep);
}

}  // namespace

/// The user's own choices stay.
void prepare_process() {
  yield_if_crowded();
  outlive_the_dead_over_tcp();
  choose_roomy_folder();
}

int needed_thread_level() { return MPI_THREAD_SERIALIZED; }

void require_whole_job() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 1) return;
  const std::string whole = Environment::library_version(), library = whole.substr(0, whole.find(','));
  if (const auto launch = unheard_launch(own_lineage(), library))
    throw ConfigError(unheard_text(*launch, library, ::program_invocation_short_name));
}

void end_job(CommunicatorHandle all, int exit_code) {
  MPI_Abort(all.as<MPI_Comm>(), exit_code);
  std::_Exit(exit_code);
}

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
