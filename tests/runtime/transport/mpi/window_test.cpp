// The window: what MPI promises of one, and what Hearsay asks beyond that of an MPI whose flushes poll.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/mpi/window.hpp"

namespace hearsay {
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
}  // namespace hearsay
