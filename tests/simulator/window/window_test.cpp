// The simulated window where ranks are threads, as in a training: what is put arrives, and nobody waits for ever.
#include "runtime/mpi/window.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/mpi/environment.hpp"
#include "runtime/mpi/simulated/cluster.hpp"

namespace hearsay::window_test {
namespace {

constexpr int ranks = 5;
constexpr double between_s = 50e-6;  // less than the latency: each announces itself while the one before is on its way

/// Whether the word of every other rank is there.
bool all_have_come(mpi::Window& window) {
  std::vector<std::uint64_t> words(ranks);
  std::memcpy(words.data(), window.own().data(), window.own().size());
  for (std::uint64_t rank = 1; rank < ranks; ++rank)
    if (words[rank] != rank) return false;
  return true;
}

/// All others put a word into rank 0's window, one soon after another, and wait until it is there.
void run_rank(std::vector<bool>& done) {
  const mpi::Environment mpi;
  mpi::Window window(ranks * sizeof(std::uint64_t));
  if (mpi.rank() == 0) {
    for (window.sync(); !all_have_come(window); window.sync()) window.wait();
  } else {
    window.wait(between_s * mpi.rank());
    window.store(static_cast<std::uint64_t>(mpi.rank()), 0,
                 sizeof(std::uint64_t) * static_cast<std::size_t>(mpi.rank()));
    while (!window.flush(0)) window.wait();
  }
  done[static_cast<std::size_t>(mpi.rank())] = true;
}

TEST_CASE("ranks that announce themselves while others are announced are not forgotten") {
  const char* const platform = std::getenv("HEARSAY_PLATFORM");
  REQUIRE(platform != nullptr);
  std::vector<bool> done(ranks);
  mpi::run_cluster({.platform = platform, .ranks = ranks, .threads = true}, [&] { run_rank(done); });
  CHECK(done == std::vector<bool>(ranks, true));
}

}  // namespace
}  // namespace hearsay::window_test
