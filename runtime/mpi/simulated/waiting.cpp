#include "runtime/mpi/waiting.hpp"

#include <sys/mman.h>

#include <cstring>
#include <simgrid/s4u.hpp>

#include "runtime/mpi/check.hpp"

namespace hearsay::mpi {
namespace {

/// Room for a message of any length of which only the pages that are written to exist.
class Scratch {
 public:
  static constexpr std::size_t bytes = std::size_t{1} << 30;
  Scratch()
      : memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED) throw CommunicationError("no address space for a message; raise `ulimit -v`");
  }
  ~Scratch() { ::munmap(memory_, bytes); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return memory_; }

 private:
  void* memory_;
};

}  // namespace

bool complete(std::span<MPI_Request> requests, const std::function<void()>& idle, double seconds) {
  const int count = static_cast<int>(requests.size());
  if (seconds == std::numeric_limits<double>::infinity()) {
    check(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    return true;
  }
  constexpr double between_looks_s = 1e-3;
  for (double waited = 0.0; waited < seconds; waited += between_looks_s) {
    int done = 0;
    check(MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    if (done != 0) return true;
    idle();
    simgrid::s4u::this_actor::sleep_for(between_looks_s);
  }
  return false;
}

// SMPI's MPI_Iallreduce adds to what it finds in memory that nobody has written (3.32, with MPI_IN_PLACE).
void all_reduce(void* values, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator,
                const std::function<void()>& /*idle*/) {
  check(MPI_Allreduce(MPI_IN_PLACE, values, count, type, operation, communicator), "MPI_Allreduce");
}

// SMPI has no MPI_Mprobe, and MPI_Probe looks at intervals, which would lengthen simulated time.
void receive_any_length(int from, int tag, MPI_Comm communicator, const std::function<void()>& /*idle*/,
                        std::vector<std::byte>& in) {
  const Scratch scratch;
  MPI_Status status;
  check(MPI_Recv(scratch.data(), static_cast<int>(Scratch::bytes), MPI_BYTE, from, tag, communicator, &status),
        "MPI_Recv");
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  in.resize(static_cast<std::size_t>(bytes));
  if (bytes > 0) std::memcpy(in.data(), scratch.data(), in.size());
}

}  // namespace hearsay::mpi
