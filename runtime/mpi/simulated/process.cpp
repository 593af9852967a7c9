#include "runtime/mpi/process.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/mpi/notices.hpp"
#include "runtime/mpi/waiting.hpp"

namespace hearsay::mpi {
namespace {

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

}  // namespace hearsay::mpi
