#pragma once
// Adding a gradient to a residual and finding the k largest in the same pass over memory.
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sparsify/search/candidates.hpp"
#include "sparsify/search/exact_select.hpp"

namespace hearsay {

/// From one iteration to the next the k-th largest magnitude moves little, or grows as it grew before. A call remembers
/// a level that somewhat more than k values reached. The next one collects, while it adds, the positions that reach it:
/// if they are k or more, the k largest of them are the k largest of all, exactly. If not, the block is searched again
/// from the start (ExactSelect), and the level is set with more room. Levels are remembered for every run of values,
/// told apart by its address.
/// Cost: the addition's 2 reads and 1 write; then passes over the candidates only. First call and failure: 1 to 3 reads
/// more.
class CarriedSelect {
 public:
  /// values ← values + scale · addend; indices ← the first k positions by (|value| descending, position ascending),
  /// written ascending. Throws DivergenceError (position and value) if a value is then not finite.
  void add_and_select(std::span<float> values, std::span<const float> addend, float scale, std::size_t k,
                      std::vector<std::uint32_t>& indices);

  /// How many candidates it may look for to find k of n values.
  static std::size_t most_wanted(std::size_t k, std::size_t n);

 private:
  struct Memory {
    float level = 0.0F;  // for the next call; 0: none
    float kth = 0.0F;    // the k-th largest magnitude of the last call
    double room;         // candidates that are wanted, in k
    std::size_t k = 0;
  };

  std::map<const float*, Memory> memories_;
  ExactSelect search_;
  Candidates candidates_;
};

}  // namespace hearsay
