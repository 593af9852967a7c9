#include "runtime/mpi/driver.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <utility>

#include "runtime/mpi/notices.hpp"
#include "runtime/mpi/waiting.hpp"

namespace hearsay::mpi {
namespace {

std::chrono::nanoseconds simulated_time() {
  const std::chrono::duration<double> now(simgrid::s4u::Engine::get_clock());
  return std::chrono::round<std::chrono::nanoseconds>(now);
}

/// The simulator starts all ranks, and they all come.
class Notices final : public hearsay::Notices {
 public:
  explicit Notices(CommunicatorHandle of) : of_(of) {}
  void post(Notice) override {}
  void withdraw(Notice) override {}
  bool has_posted(int, Notice) override { return false; }
  void await_all(const std::function<void()>& idle) override { barrier(of_.as<MPI_Comm>(), idle); }

 private:
  CommunicatorHandle of_;
};

}  // namespace

std::unique_ptr<hearsay::Notices> make_notices(CommunicatorHandle of) { return std::make_unique<Notices>(of); }

void prepare_process() {}

// Simulated ranks run one at a time.
int needed_thread_level() { return MPI_THREAD_SINGLE; }

void require_whole_job() {}

// All ranks are one process.
void end_job(CommunicatorHandle, int exit_code) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

Clock clock() { return simulated_time; }
const char* clock_name() { return "simulated"; }

std::unique_ptr<CommunicationEngine> make_engine(ProgressStep step, Window& window) {
  return std::make_unique<InlineEngine>(
      std::move(step), [&window] { window.wait(); }, clock());
}

}  // namespace hearsay::mpi
