// The emulator shows what is wrong about a kernel: another order of threads, another result.
#include <doctest/doctest.h>

#include <set>

#include "runtime/gpu/machine/emulator.hpp"

namespace hearsay::device {
namespace {

/// Every thread reads what its neighbour writes in the same phase: forbidden.
struct Racing {
  static constexpr unsigned threads = 64;
  struct Shared {
    int values[threads];
  };
  int* out;

  template <class Block>
  void operator()(Block& block, Shared& shared) const {
    block.phase([&](unsigned t) { shared.values[t] = static_cast<int>(t); });
    block.phase([&](unsigned t) { shared.values[t] = shared.values[(t + 1) % threads]; });
    block.phase([&](unsigned t) { out[t] = shared.values[t]; });
  }
};

/// Each thread in a phase of its own order: what comes first is written first.
struct Ordering {
  static constexpr unsigned threads = 32;
  struct Shared {
    unsigned next;
  };
  unsigned* order;  // (blocks, threads)
  unsigned* blocks_seen;

  template <class Block>
  void operator()(Block& block, Shared& shared) const {
    block.phase([&](unsigned t) {
      if (t == 0) shared.next = 0;
    });
    block.phase([&](unsigned t) { order[block.index() * threads + shared.next++] = t; });
    block.phase([&](unsigned t) {
      if (t == 0) blocks_seen[block.index()] += 1;
    });
  }
};

/// Every block writes its number; the last one adds them all up.
struct Adding {
  static constexpr unsigned threads = 32;
  struct Shared {};
  unsigned* numbers;  // one a block
  std::uint32_t* arrivals;
  unsigned* sum;

  template <class Block>
  void operator()(Block& block, Shared&) const {
    block.phase([&](unsigned t) {
      if (t == 0) numbers[block.index()] = block.index() + 1;
    });
    if (!block.is_last(arrivals)) return;
    block.phase([&](unsigned t) {
      if (t != 0) return;
      for (unsigned b = 0; b < block.blocks(); ++b) *sum += numbers[b];
    });
  }
};

TEST_CASE("the last block of a grid sees what all have written, also when blocks run side by side") {
  for (const unsigned workers : {1U, 2U, 4U}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      std::vector<unsigned> numbers(50);
      std::uint32_t arrivals = 0;
      unsigned sum = 0;
      Emulator(seed, 50, workers).run(50, Adding{numbers.data(), &arrivals, &sum});
      CHECK(sum == 50 * 51 / 2);
    }
  }
}

TEST_CASE("a race between threads of a phase gives different results in different orders") {
  std::set<std::vector<int>> results;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<int> out(Racing::threads);
    Emulator(seed).run(1, Racing{out.data()});
    results.insert(out);
  }
  CHECK(results.size() > 1);
}

TEST_CASE("every thread of every block runs once a phase, in its own order for seed 0 and in others for others") {
  for (const std::uint64_t seed : {0ULL, 1ULL, 2ULL, 77ULL}) {
    std::vector<unsigned> order(5 * Ordering::threads), seen(5);
    Emulator(seed).run(5, Ordering{order.data(), seen.data()});
    CHECK(seen == std::vector<unsigned>(5, 1));
    for (unsigned block = 0; block < 5; ++block) {
      const auto first = order.begin() + block * Ordering::threads;
      CHECK(std::set<unsigned>(first, first + Ordering::threads).size() == Ordering::threads);
      if (seed == 0) CHECK(std::is_sorted(first, first + Ordering::threads));
    }
  }
}

TEST_CASE("what CUDA would fault on, the emulator refuses: 16 bytes off their multiple, copies beyond the end") {
  EmulatedBuffer<float> buffer(8);
  CHECK_THROWS_AS(EmulatedBlock<32>::load(buffer.data() + 1), std::logic_error);
  CHECK_NOTHROW(EmulatedBlock<32>::load(buffer.data() + 4));
  const std::vector<float> nine(9);
  CHECK_THROWS_AS(buffer.upload(std::span<const float>(nine)), std::logic_error);
}

}  // namespace
}  // namespace hearsay::device
