#include "python/core/departures.hpp"

#include <atomic>

namespace hearsay::python {
namespace {

constexpr int rank_bits = 24;
constexpr std::uint64_t rank_mask = (std::uint64_t{1} << rank_bits) - 1;

std::atomic_ref<std::uint64_t> word_of(mpi::Window& window) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(window.own().data()));
}

}  // namespace

Departures::Departures(mpi::CommunicatorHandle ranks, int rank, int size)
    : rank_(rank), size_(size), window_(sizeof(std::uint64_t), ranks) {}

void Departures::tell(std::int64_t steps) {
  const std::uint64_t word =
      (static_cast<std::uint64_t>(steps + 1) << rank_bits) | (static_cast<std::uint64_t>(rank_) & rank_mask);
  for (int target = 0; target < size_; ++target) {
    if (target == rank_) continue;
    window_.store(word, target, 0);
    while (!window_.flush(target)) window_.sync();
  }
}

std::optional<Departure> Departures::seen() const {
  const std::uint64_t word = word_of(const_cast<mpi::Window&>(window_)).load(std::memory_order_acquire);
  if (word == 0) return std::nullopt;
  return Departure{.rank = static_cast<int>(word & rank_mask),
                   .steps = static_cast<std::int64_t>(word >> rank_bits) - 1};
}

void Departures::forget() { word_of(window_).store(0, std::memory_order_release); }

}  // namespace hearsay::python
