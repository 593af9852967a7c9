#pragma once
// Sparse entries and blocks of values on the GPU: gather, scatter, scatter with addition, a step along a difference.
// Positions of one list are unique, so no atomics are needed; lists of several ranks are added one launch after the
// other, in the caller's order, which keeps replicas equal to the last bit.
// Cost: one launch; 4 bytes a position, 4 a value, and a sector of 32 bytes for every scattered access.
#include <cstdint>

#include "runtime/gpu/machine/block.hpp"

namespace hearsay::device {

constexpr unsigned entry_threads = 256;

enum class EntryMove { gather, scatter, scatter_add };

/// Calls f(i) for all i < count, shared out among the threads of all blocks.
template <class Block, class Function>
HEARSAY_DEVICE void each_entry(Block& block, std::uint64_t count, const Function& f) {
  block.phase([&](unsigned t) {
    const std::uint64_t step = std::uint64_t{block.blocks()} * entry_threads;
    for (std::uint64_t i = std::uint64_t{block.index()} * entry_threads + t; i < count; i += step) f(i);
  });
}

template <class Machine, class Kernel>
void run_entries(Machine& machine, std::uint64_t count, const Kernel& kernel) {
  const std::uint64_t wanted = ceil_div(count, entry_threads), most = 4 * machine.resident_blocks();
  machine.run(static_cast<unsigned>(wanted < most ? wanted : most), kernel);
}

/// gather: entries ← block[positions]; scatter: block[positions] ← entries;
/// scatter_add: block[positions] ← block[positions] + scale · entries.
template <EntryMove Move>
struct MoveEntries {
  static constexpr unsigned threads = entry_threads;
  struct Shared {};
  const std::uint32_t* positions;
  std::uint32_t count;
  float* entries;  // read only, unless gathered
  float* block_values;
  float scale;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    each_entry(block, count, [&](std::uint64_t i) {
      float& value = block_values[positions[i]];
      if constexpr (Move == EntryMove::gather) entries[i] = value;
      if constexpr (Move == EntryMove::scatter) value = entries[i];
      if constexpr (Move == EntryMove::scatter_add) value += scale * entries[i];
    });
  }
};

template <EntryMove Move, class Machine>
void move_entries(Machine& machine, const std::uint32_t* positions, std::uint32_t count, float* entries, float* block,
                  float scale) {
  run_entries(machine, count, MoveEntries<Move>{positions, count, entries, block, scale});
}

template <class Machine>
void gather(Machine& machine, const float* block, const std::uint32_t* positions, std::uint32_t count, float* entries) {
  move_entries<EntryMove::gather>(machine, positions, count, entries, const_cast<float*>(block), 1.0F);
}

template <class Machine>
void scatter(Machine& machine, const float* entries, const std::uint32_t* positions, std::uint32_t count,
             float* block) {
  move_entries<EntryMove::scatter>(machine, positions, count, const_cast<float*>(entries), block, 1.0F);
}

template <class Machine>
void scatter_add(Machine& machine, float scale, const float* entries, const std::uint32_t* positions,
                 std::uint32_t count, float* block) {
  move_entries<EntryMove::scatter_add>(machine, positions, count, const_cast<float*>(entries), block, scale);
}

/// x[positions] ← x[positions] + weight · (theirs − ours)[positions].
struct AddDifferenceAt {
  static constexpr unsigned threads = entry_threads;
  struct Shared {};
  const std::uint32_t* positions;
  std::uint32_t count;
  const float* theirs;
  const float* ours;
  float* x;
  float weight;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    each_entry(block, count, [&](std::uint64_t i) {
      const std::uint32_t at = positions[i];
      x[at] += weight * (theirs[at] - ours[at]);
    });
  }
};

template <class Machine>
void add_difference_at(Machine& machine, float weight, const float* theirs, const float* ours,
                       const std::uint32_t* positions, std::uint32_t count, float* x) {
  run_entries(machine, count, AddDifferenceAt{positions, count, theirs, ours, x, weight});
}

/// theirs and ours step towards each other: m = weight · (theirs − ours), theirs ← theirs − m, ours ← ours + m; at
/// `positions`, or, where these are null, everywhere.
struct CloseDifference {
  static constexpr unsigned threads = entry_threads;
  struct Shared {};
  const std::uint32_t* positions;
  std::uint64_t count;
  float* theirs;
  float* ours;
  float weight;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    each_entry(block, count, [&](std::uint64_t i) {
      const std::uint64_t at = positions != nullptr ? positions[i] : i;
      const float move = weight * (theirs[at] - ours[at]);
      theirs[at] -= move;
      ours[at] += move;
    });
  }
};

template <class Machine>
void close_difference_at(Machine& machine, float weight, float* theirs, float* ours, const std::uint32_t* positions,
                         std::uint64_t count) {
  run_entries(machine, count, CloseDifference{positions, count, theirs, ours, weight});
}

template <class Machine>
void close_difference(Machine& machine, float weight, float* theirs, float* ours, std::uint64_t n) {
  close_difference_at(machine, weight, theirs, ours, nullptr, n);
}

}  // namespace hearsay::device
