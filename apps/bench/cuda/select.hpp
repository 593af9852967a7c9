#pragma once
// The selection on the GPU, without CUDA's headers (algorithm and cost: runtime/gpu/kernels/topk_algorithm.hpp).
// Pointers are device pointers. `add_and_select` returns at once; `outcome` waits.
#include <cstdint>
#include <memory>

#include "runtime/gpu/kernels/topk_algorithm.hpp"
#include "runtime/gpu/machine/memory.hpp"

namespace hearsay::device {

/// What a call did, for reports.
struct Outcome {
  std::uint32_t candidates = 0;  // values that reached the level of the call before
  bool read_again = false;       // they were too few or too many: all values were searched
};

/// Exact top-k with error feedback, for one run of values, whose level it remembers.
class DeviceTopK {
 public:
  /// For k ≤ most_k ≤ n < 2³² (std::logic_error). Allocates about 32 most_k + n / 256 bytes.
  DeviceTopK(std::uint64_t n, std::uint32_t most_k);
  ~DeviceTopK();
  DeviceTopK(DeviceTopK&&) noexcept;
  DeviceTopK& operator=(DeviceTopK&&) noexcept;

  /// values ← values + scale · addend; entries ← the k largest, ascending by position; values ← 0 there.
  void add_and_select(StreamHandle stream, float* values, const float* addend, float scale, std::uint32_t k,
                      const Entries& entries);
  /// Waits for the stream. Throws DivergenceError (position and value) if a value was not finite: the addend has then
  /// been added, and the entries hold nothing of use. `values` are those of the last call.
  Outcome outcome(StreamHandle stream, const float* values) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearsay::device
