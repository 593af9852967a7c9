#include "runtime/mpi/waiting.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <simgrid/s4u.hpp>

#include "runtime/mpi/check.hpp"
#include "runtime/mpi/simulated/failure.hpp"

namespace hearsay::mpi {
namespace {

/// Room for a message, of which only the pages that are written to exist.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes)
      : bytes_(bytes),
        memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED) throw CommunicationError("no address space for a message; raise `ulimit -v`");
  }
  ~Scratch() { ::munmap(memory_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return memory_; }

 private:
  std::size_t bytes_;
  void* memory_;
};

}  // namespace

bool complete(std::span<MPI_Request> requests, const std::function<void()>& idle, double seconds) {
  const int count = static_cast<int>(requests.size());
  if (seconds == std::numeric_limits<double>::infinity()) {
    check(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    return true;
  }
  constexpr double first_look_s = 1e-3, longest_s = 1e-2;
  double look_s = first_look_s;
  for (double waited = 0.0; waited < seconds; waited += look_s) {
    int done = 0;
    check(MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    if (done != 0) return true;
    idle();
    look_s = std::min(longest_s, 1.1 * look_s);
    simgrid::s4u::this_actor::sleep_for(std::min(look_s, seconds_to_live()));
    fail_if_due();
  }
  return false;
}

// SMPI's collectives that do not block, and MPI_Gatherv, are P messages that rank 0 waits for together; it looks at all
// of them whenever one has come, P² looks in all.
void barrier(MPI_Comm communicator, const std::function<void()>& /*idle*/) {
  check(MPI_Barrier(communicator), "MPI_Barrier");
}

void gather(std::span<const std::byte> part, std::span<const int> counts, std::span<std::byte> all,
            MPI_Comm communicator, const std::function<void()>& /*idle*/) {
  constexpr int tag = 0;
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  if (rank != 0 && !part.empty())
    check(MPI_Send(part.data(), static_cast<int>(part.size()), MPI_BYTE, 0, tag, communicator), "MPI_Send");
  if (rank != 0) return;
  std::ranges::copy(part, all.begin());
  std::byte* to = all.data() + part.size();
  for (int from = 1; from < static_cast<int>(counts.size()); ++from) {
    const int count = counts[static_cast<std::size_t>(from)];
    if (count > 0) check(MPI_Recv(to, count, MPI_BYTE, from, tag, communicator, MPI_STATUS_IGNORE), "MPI_Recv");
    to += count;
  }
}

// SMPI's MPI_Iallreduce adds to what it finds in memory that nobody has written (3.32, with MPI_IN_PLACE).
void all_reduce(void* values, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator,
                const std::function<void()>& /*idle*/) {
  check(MPI_Allreduce(MPI_IN_PLACE, values, count, type, operation, communicator), "MPI_Allreduce");
}

// SMPI has no MPI_Mprobe, and MPI_Probe looks at intervals, which would lengthen simulated time.
void receive_behind(std::vector<std::byte>& bytes, const Expected& expected, MPI_Comm communicator,
                    const std::function<void()>& /*idle*/) {
  const Scratch scratch(expected.most_bytes);
  MPI_Status status;
  check(MPI_Recv(scratch.data(), static_cast<int>(expected.most_bytes), MPI_BYTE, expected.from, expected.tag,
                 communicator, &status),
        "MPI_Recv");
  int length = 0;
  MPI_Get_count(&status, MPI_BYTE, &length);
  const auto* const first = static_cast<const std::byte*>(scratch.data());
  bytes.insert(bytes.end(), first, first + length);
}

}  // namespace hearsay::mpi
