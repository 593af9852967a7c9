#include "runtime/mpi/window.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/mpi/check.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/mpi/real/polite_flush.hpp"
#include "runtime/mpi/real/room.hpp"

namespace hearsay::mpi {
namespace {

bool library_is_mpich() { return Environment::library_version().starts_with("MPICH"); }

CommunicationError no_window(const std::string& reason) {
  const std::string remedy =
      library_is_mpich() ? "just `mpiexec.mpich -n P`, over TCP with UCX_TLS=tcp,self in the environment"
                         : "on one node nothing special, just `mpirun -n P`; over TCP `mpirun --mca pml ob1 --mca btl "
                           "tcp,self --mca osc ^ucx`; over UCX `mpirun --mca osc ucx`";
  return CommunicationError(
      "MPI cannot make a window for one-sided communication with the components it was started with (" + reason +
      "). Start with one of: " + remedy);
}

constexpr std::size_t line = PoliteFlush::line;

/// Whole lines: MPICH (4.0, on one node) lays windows side by side, and where one does not begin at a multiple of 16 it
/// puts to the multiple before.
std::size_t whole_lines(std::size_t bytes) { return (bytes + line - 1) / line * line; }

/// Where in a window that begins at `base` our memory does: at the start of a cache line, behind the bytes that
/// PoliteFlush reads. MPI need not begin there (Open MPI's osc/rdma: 8 bytes behind), and a packet of a line would then
/// touch two.
MPI_Aint front_of(const void* base) {
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  return static_cast<MPI_Aint>(line + (line - address % line) % line);
}

bool share_a_host(MPI_Comm ranks) {
  MPI_Comm host = MPI_COMM_NULL;
  int here = 0, all = 0;
  check(MPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  check(MPI_Comm_size(host, &here), "MPI_Comm_size");
  check(MPI_Comm_size(ranks, &all), "MPI_Comm_size");
  MPI_Comm_free(&host);
  return here == all;
}

/// Whether the user wants this component of Open MPI for windows.
bool asked_for(std::string_view component) {
  const char* const asked = std::getenv("OMPI_MCA_osc");
  return asked != nullptr && std::string_view(asked).starts_with(component);
}

/// Whether puts go by messages, to be carried out by the target's library: one that is dead never answers a flush. On
/// one node that is so where the user has asked for it. UCX keeps no order between a put and a get.
bool needs_answers(MPI_Comm ranks) { return asked_for("pt2pt") || (!share_a_host(ranks) && !asked_for("ucx")); }

std::vector<MPI_Aint> fronts_of_all(MPI_Aint own, MPI_Comm communicator) {
  int ranks = 0;
  check(MPI_Comm_size(communicator, &ranks), "MPI_Comm_size");
  std::vector<MPI_Aint> fronts(static_cast<std::size_t>(ranks));
  check(MPI_Allgather(&own, 1, MPI_AINT, fronts.data(), 1, MPI_AINT, communicator), "MPI_Allgather");
  return fronts;
}

}  // namespace

struct Window::Handle {
  MPI_Win window = MPI_WIN_NULL;
  // A receive that nothing ever matches: testing it drives every component's progress engine, which reading the window
  // alone does not (over osc/ucx not even MPI_Iprobe does).
  MPI_Comm idle_communicator = MPI_COMM_NULL;
  MPI_Request idle_request = MPI_REQUEST_NULL;
  std::byte idle_byte{};
  std::span<std::byte> memory;
  std::vector<MPI_Aint> fronts;  // of all ranks: what MPI's offsets there have that ours have not
  /// Shorter puts arrive sooner than a question about them.
  static constexpr std::size_t long_put = 32768;
  struct Question {  // for a word of another rank's
    MPI_Request request = MPI_REQUEST_NULL;
    std::uint64_t answer = 0;
  };
  std::map<int, Question> questions;  // a map does not move them
  std::optional<PoliteFlush> polite;
  std::size_t polite_from = std::numeric_limits<std::size_t>::max();  // bytes of a put
  bool fills_by_itself = false;
  bool says_when_it_has_left = true;  // a put that is asked about; MPICH answers questions after its puts as it is

  bool is_polite_to(int target) const { return polite_from == 0 || (polite && polite->is_open(target)); }
  MPI_Aint displacement(int target, std::size_t offset) const {
    return fronts[static_cast<std::size_t>(target)] + static_cast<MPI_Aint>(offset);
  }
};

Window::Window(std::size_t bytes, CommunicatorHandle of, const MemoryUse& use) : handle_(std::make_unique<Handle>()) {
  const auto ranks = of.as<MPI_Comm>();
  void* base = nullptr;
  const auto size = static_cast<MPI_Aint>(2 * line + whole_lines(bytes));
  require_room(static_cast<std::size_t>(size), ranks);
  const int code = MPI_Win_allocate(size, 1, MPI_INFO_NULL, ranks, &base, &handle_->window);
  if (code != MPI_SUCCESS) throw no_window(error_text(code));
  MPI_Win_set_errhandler(handle_->window, MPI_ERRORS_RETURN);
  int* model = nullptr;
  int found = 0;
  check(MPI_Win_get_attr(handle_->window, MPI_WIN_MODEL, &model, &found), "MPI_Win_get_attr");
  if (found == 0 || *model != MPI_WIN_UNIFIED) throw no_window("its memory model is not MPI_WIN_UNIFIED");
  const MPI_Aint front = front_of(base);
  handle_->memory = {static_cast<std::byte*>(base) + front, bytes};
  handle_->fronts = fronts_of_all(front, ranks);
  check(MPI_Win_lock_all(MPI_MODE_NOCHECK, handle_->window), "MPI_Win_lock_all");
  std::memset(base, 0, static_cast<std::size_t>(size));
  check(MPI_Win_sync(handle_->window), "MPI_Win_sync");
  const bool mpich = library_is_mpich();
  const bool network = !share_a_host(ranks), nobody_waits = use.haste == Haste::nobody_waits;
  const bool answers = (use.deaths == Deaths::others_go_on || nobody_waits) && !mpich && needs_answers(ranks);
  if (mpich || answers || (network && nobody_waits))
    handle_->polite_from = 0;
  else if (network)
    handle_->polite_from = Handle::long_put;
  handle_->says_when_it_has_left = !mpich;
  handle_->fills_by_itself = !network && !mpich && !asked_for("pt2pt") && !asked_for("ucx");
  handle_->polite.emplace(handle_->window, answers ? PoliteFlush::Behind::answer : PoliteFlush::Behind::flush);
  check(MPI_Comm_dup(ranks, &handle_->idle_communicator), "MPI_Comm_dup");
  check(MPI_Irecv(&handle_->idle_byte, 1, MPI_BYTE, MPI_ANY_SOURCE, 0, handle_->idle_communicator,
                  &handle_->idle_request),
        "MPI_Irecv");
  check(MPI_Barrier(ranks), "MPI_Barrier");  // nobody puts before everybody has zeroed
}

Window::~Window() {
  // MPI_Win_free waits for all ranks. One that leaves by an exception leaves alone; `main` then ends the job.
  if (std::uncaught_exceptions() > 0) return;
  if (handle_->idle_request != MPI_REQUEST_NULL) {
    MPI_Cancel(&handle_->idle_request);
    MPI_Wait(&handle_->idle_request, MPI_STATUS_IGNORE);
  }
  if (handle_->idle_communicator != MPI_COMM_NULL) MPI_Comm_free(&handle_->idle_communicator);
  if (handle_->window != MPI_WIN_NULL) {
    if (handle_->polite) handle_->polite->finish();
    for (auto& [target, question] : handle_->questions) MPI_Wait(&question.request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(handle_->window);
    MPI_Win_free(&handle_->window);
  }
}

std::span<std::byte> Window::own() { return handle_->memory; }

void Window::put(std::span<const std::byte> bytes, int target, std::size_t offset) {
  // MPI counts are ints: longer packets go in pieces, which one flush completes together.
  constexpr std::size_t piece = std::size_t{1} << 30;
  const bool polite = handle_->is_polite_to(target) || bytes.size() >= handle_->polite_from;
  for (std::size_t done = 0; done < bytes.size(); done += piece) {
    const auto count = static_cast<int>(std::min(piece, bytes.size() - done));
    const MPI_Aint there = handle_->displacement(target, offset + done);
    const auto* const from = bytes.data() + done;
    MPI_Request left = MPI_REQUEST_NULL;
    if (polite && handle_->says_when_it_has_left)
      check(MPI_Rput(from, count, MPI_BYTE, target, there, count, MPI_BYTE, handle_->window, &left), "MPI_Rput");
    else
      check(MPI_Put(from, count, MPI_BYTE, target, there, count, MPI_BYTE, handle_->window), "MPI_Put");
    if (polite) handle_->polite->started(target, left);
  }
}

void Window::store(const std::uint64_t& word, int target, std::size_t offset) {
  const bool polite = handle_->is_polite_to(target);
  const std::uint64_t& source = polite ? handle_->polite->keep(word, target) : word;
  check(MPI_Accumulate(&source, 1, MPI_UINT64_T, target, handle_->displacement(target, offset), 1, MPI_UINT64_T,
                       MPI_REPLACE, handle_->window),
        "MPI_Accumulate");
  if (polite) handle_->polite->started(target);
}

bool Window::flush(int target) {
  if (handle_->is_polite_to(target)) return handle_->polite->flush(target);
  check(MPI_Win_flush(target, handle_->window), "MPI_Win_flush");
  return true;
}

std::optional<std::uint64_t> Window::peek(int target, std::size_t offset) {
  constexpr int bytes = sizeof(std::uint64_t);
  Handle::Question& question = handle_->questions[target];
  const bool asked = question.request != MPI_REQUEST_NULL;
  int answered = 0;
  if (asked) check(MPI_Test(&question.request, &answered, MPI_STATUS_IGNORE), "MPI_Test");
  if (asked && answered == 0) return std::nullopt;
  const auto answer = asked ? std::optional(question.answer) : std::nullopt;
  check(MPI_Rget(&question.answer, bytes, MPI_BYTE, target, handle_->displacement(target, offset), bytes, MPI_BYTE,
                 handle_->window, &question.request),
        "MPI_Rget");
  return answer;
}

void Window::sync() {
  int arrived = 0;
  check(MPI_Test(&handle_->idle_request, &arrived, MPI_STATUS_IGNORE), "MPI_Test");
  check(MPI_Win_sync(handle_->window), "MPI_Win_sync");
}

// 64 bytes one way on one node, medians of four runs: 16 looks 0.47 µs, 32 0.44, 64 and 1000 0.40.
int Window::patience() const { return 64; }

bool Window::fills_by_itself() const { return handle_->fills_by_itself; }

void Window::look_again_within(double /*a nap is shorter*/) {}

void Window::wait(double seconds) {
  constexpr double nap_s = 1e-3;  // communication has a thread of its own
  std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, nap_s)));
}

}  // namespace hearsay::mpi
