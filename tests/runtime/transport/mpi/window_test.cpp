// The window: what MPI promises of one, and what Hearsay asks beyond that of an MPI whose flushes poll.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/mpi/window.hpp"

namespace hearsay::window_test {
namespace {

using Words = std::vector<std::uint64_t>;

void wait_for_flush(mpi::Window& window, int target) {
  while (!window.flush(target)) {
    window.sync();  // others flush, too
    window.wait(1e-5);
  }
}

/// A simulated rank takes what has come one message after the other; on a real window the first look is enough.
void look(mpi::Window& window) {
  for (int message = 0; message < 4; ++message) {
    window.sync();
    window.wait(1e-5);
  }
}

Words words_in(mpi::Window& window, std::size_t count) {
  Words words(count);
  std::memcpy(words.data(), window.own().data(), count * sizeof words[0]);
  return words;
}

/// `count` words that no other rank and round has.
Words words_of(int rank, std::size_t count) {
  Words words(count);
  std::iota(words.begin(), words.end(), static_cast<std::uint64_t>(rank) << 32 | count << 8);
  return words;
}

TEST_CASE("every rank's memory begins at a cache line, whatever the others' lengths, and zero") {
  mpi::Communicator world;
  for (const std::size_t bytes : {1, 64, 72, 100, 5000}) {
    mpi::Window window(bytes + static_cast<std::size_t>(world.rank()));
    const auto own = window.own();
    CHECK(own.size() >= bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(own.data()) % 64 == 0);
    CHECK(std::ranges::all_of(own, [](std::byte b) { return b == std::byte{0}; }));
  }
}

/// A limit of this process for as long as it lives.
class Limit {
 public:
  Limit(__rlimit_resource of, rlim_t value) : of_(of) {
    ::getrlimit(of_, &before_);
    const rlimit now{.rlim_cur = value, .rlim_max = before_.rlim_max};
    ::setrlimit(of_, &now);
  }
  ~Limit() { ::setrlimit(of_, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  __rlimit_resource of_;
  rlimit before_{};
};

rlim_t mapped_bytes() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

/// What the refusal of so large a window says.
std::string refusal_of(std::size_t bytes) {
  try {
    mpi::Window window(bytes);
  } catch (const CommunicationError& error) {
    return error.what();
  }
  return "it was made";
}

TEST_CASE("a window that a limit of the process does not permit is refused on all ranks, and the limit named") {
  if (mpi::Environment::library_version().starts_with("SMPI")) return;  // simulated windows are plain memory
  if (!mpi::Window(1).fills_by_itself()) return;                        // between hosts MPI allocates, and UCX crashes
  constexpr std::size_t megabyte = 1 << 20;
  mpi::Communicator world;
  {
    const Limit limit(RLIMIT_AS, mapped_bytes() + 64 * megabyte);
    CHECK(refusal_of(std::size_t{1} << 45).find("(ulimit -v)") != std::string::npos);
  }
  if (world.rank() == world.size() - 1) {
    const Limit limit(RLIMIT_FSIZE, megabyte);
    CHECK(refusal_of(megabyte).find("(ulimit -f)") != std::string::npos);
  } else {
    CHECK(refusal_of(megabyte).find("(ulimit -f)") != std::string::npos);
  }
  CHECK(refusal_of(megabyte) == "it was made");
}

TEST_CASE("what is flushed is there, whatever then becomes of its source") {
  mpi::Communicator world;
  const int next = (world.rank() + 1) % world.size(), previous = (world.rank() + world.size() - 1) % world.size();
  constexpr std::size_t most = 100'000;
  mpi::Window window((most + 1) * sizeof(std::uint64_t));
  mpi::Communicator served([&] { window.sync(); });
  for (const std::size_t count : {std::size_t{1}, std::size_t{100}, most}) {
    Words words = words_of(world.rank(), count);
    std::uint64_t last = ~words[0];
    window.put(std::as_bytes(std::span(words)), next, 0);
    window.store(last, next, count * sizeof last);
    wait_for_flush(window, next);
    words.assign(count, 0);
    last = 0;
    served.barrier();  // everybody's have been flushed
    look(window);
    Words expected = words_of(previous, count);
    expected.push_back(~expected[0]);
    CHECK(words_in(window, count + 1) == expected);
    served.barrier();
  }
}

// A rank that polls for one that computes takes the core away from it.
TEST_CASE("on MPICH a flush does not wait for a target that computes") {
  if (!mpi::Environment::library_version().starts_with("MPICH")) return;
  using Clock = std::chrono::steady_clock;  // the same on all ranks of a machine
  mpi::Communicator world;
  mpi::Window window(64);
  const bool computes = world.rank() == world.size() - 1;
  const std::uint64_t word = 1;
  world.barrier();
  if (computes) std::this_thread::sleep_for(std::chrono::seconds(1));
  double returned_s = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  double woke[1] = {computes ? returned_s : 0.0};
  if (!computes) {
    window.store(word, world.size() - 1, 0);
    window.flush(world.size() - 1);
    returned_s = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  }
  world.maximum(woke);
  if (!computes) CHECK(returned_s < woke[0]);
  mpi::Communicator served([&] { window.sync(); });
  if (!computes) wait_for_flush(window, world.size() - 1);
  served.barrier();
}

}  // namespace
}  // namespace hearsay::window_test
