// One-sided writes between two processes: sockets beside MPI, in the same run.
//
//   mpirun -n 2 windows
//
// The same two processes have a window of each kind: MPI's, one over sockets as members of one host have it (shared
// memory), one over sockets as members of different hosts have it (TCP, here over the loopback). In turns, blocks of
// round trips: a put of so many bytes with its flush, then a word after it that the other one polls for. Times are one
// way. The word's value and the last byte of each block are compared.
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/timing.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/mpi/window.hpp"
#include "runtime/sockets/meeting.hpp"
#include "runtime/sockets/shared_folder.hpp"
#include "runtime/sockets/transport.hpp"

namespace {

using namespace hearsay;

constexpr std::size_t largest = 1'000'000;
constexpr std::size_t word_at = (largest + 63) / 64 * 64;

/// A kind of window, with its times.
struct Kind {
  const char* name;
  RemoteMemory* memory;
  std::vector<double> seconds{};
  std::uint64_t sent = 0, expected = 0;
};

class Side {
 public:
  explicit Side(int rank) : rank_(rank), bytes_(largest) {}

  /// Seconds one way, of so many round trips.
  void bounce(Kind& kind, std::size_t bytes, int rounds) {
    for (int i = 0; i < rounds; ++i)
      kind.seconds.push_back(0.5 * seconds_taken([&] {
                               rank_ == 0 ? send(kind, bytes) : take(kind, bytes);
                               rank_ == 0 ? take(kind, bytes) : send(kind, bytes);
                             }));
  }

 private:
  void complete(RemoteMemory& memory) const {
    while (!memory.flush(1 - rank_)) memory.sync();
  }
  void send(Kind& kind, std::size_t bytes) {
    const std::uint64_t word = ++kind.sent;
    bytes_[bytes - 1] = static_cast<std::byte>(word);
    kind.memory->put(std::span(bytes_).first(bytes), 1 - rank_, 0);
    complete(*kind.memory);
    kind.memory->store(word, 1 - rank_, word_at);
    complete(*kind.memory);
  }
  void take(Kind& kind, std::size_t bytes) const {
    const auto own = kind.memory->own();
    auto* const word = reinterpret_cast<std::uint64_t*>(own.data() + word_at);
    ++kind.expected;
    while (std::atomic_ref(*word).load(std::memory_order_acquire) != kind.expected) kind.memory->sync();
    if (own[bytes - 1] != static_cast<std::byte>(kind.expected)) throw std::logic_error("windows: a torn block");
  }

  int rank_;
  std::vector<std::byte> bytes_;
};

/// A folder of rank 0's, known to both.
class Meeting {
 public:
  explicit Meeting(mpi::Communicator& world) : world_(world), name_("/tmp/hearsay-windows-XXXXXX") {
    if (world.rank() == 0 && ::mkdtemp(name_.data()) == nullptr) throw std::runtime_error("windows: no folder");
    world.broadcast(std::as_writable_bytes(std::span(name_)), 0);
  }
  ~Meeting() {
    if (world_.rank() == 0) std::filesystem::remove_all(name_);
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  std::shared_ptr<sockets::Network> network(const std::string& job, const std::string& host) const {
    sockets::SharedFolder place(name_, job);
    return sockets::meet(place, {.rank = world_.rank(), .ranks = world_.size()}, {},
                         {.job = job, .interface = "127.0.0.1", .host = host});
  }

 private:
  mpi::Communicator& world_;
  std::string name_;
};

void line(std::size_t bytes, const Kind& kind, const Kind& floor) {
  std::printf("%8zu B  %-14s p10 %9.2f µs  p50 %9.2f µs  p99 %9.2f µs   ratio to MPI %.2f\n", bytes, kind.name,
              1e6 * quantile(kind.seconds, 0.1), 1e6 * median(kind.seconds), 1e6 * quantile(kind.seconds, 0.99),
              median(kind.seconds) / median(floor.seconds));
}

void run(const mpi::Environment& environment, int blocks) {
  if (environment.ranks() != 2) throw std::invalid_argument("needs two ranks: mpirun -n 2 windows");
  mpi::Communicator world;
  const Meeting meeting(world);
  mpi::Window window(word_at + 64, mpi::all_ranks(), {});
  sockets::Transport shared(meeting.network("shared", "one")),
      tcp(meeting.network("tcp", std::to_string(world.rank())));
  std::vector<Kind> kinds{{.name = "MPI", .memory = &window},
                          {.name = "shared memory", .memory = &shared.open_memory(word_at + 64, {})},
                          {.name = "TCP loopback", .memory = &tcp.open_memory(word_at + 64, {})}};
  Side side(world.rank());
  struct Size {
    std::size_t bytes;
    int rounds;
  };
  for (const Size size : {Size{.bytes = 64, .rounds = 2000}, Size{.bytes = largest, .rounds = 50}}) {
    for (int block = -1; block < blocks; ++block)
      for (Kind& kind : kinds) {
        world.barrier();
        if (block <= 0) kind.seconds.clear();  // the first warms up
        side.bounce(kind, size.bytes, size.rounds);
      }
    if (world.rank() == 0)
      for (const Kind& kind : kinds) line(size.bytes, kind, kinds.front());
  }
  world.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  int blocks = 10;
  CLI::App app("One-sided writes over MPI, shared memory and TCP", "windows");
  app.add_option("--blocks", blocks, "in turns")->capture_default_str()->check(CLI::Range(1, 10000));
  CLI11_PARSE(app, argc, argv);
  const mpi::Environment environment;
  try {
    run(environment, blocks);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "windows: %s\n", error.what());
    environment.abort(1);
  }
  return 0;
}
