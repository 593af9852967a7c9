#pragma once
// Looks for values of the replica that are not finite, without a pass over the model in every iteration.
//   every iteration:  the next piece of x, so that a model of up to a piece is known to the iteration, and of a larger
//                     one every value is looked at once in n / piece iterations
//   on request:       all of it, before anything is said of the model: a summary, an average, the end
// What is not a number stays none: mixing and steps do not mend it. So whenever it is found, it is known after which
// iteration the same values were finite.
// Cost: `piece` floats read in an iteration, which the optimizer has just written; 8 bytes a piece of memory.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/replica/parameters.hpp"

namespace hearsay {

struct NotFinite {
  std::int64_t first, last;  ///< iterations: it was finite before `first`, and not after `last` any more
  std::string what;          ///< "value 3 of parameter 'w' is nan"
};

/// The first of `values`, which begin at `offset` of the block, that is not finite.
std::optional<std::string> not_finite(const Layout& layout, std::size_t offset, std::span<const float> values);

class FiniteWatch {
 public:
  static constexpr std::size_t piece = 1 << 14;

  explicit FiniteWatch(const Parameters& replica);
  /// After the step of iteration k. Where the replica does not lie in the processor's memory, nothing is looked at.
  std::optional<NotFinite> look(std::int64_t k);
  /// At all of it, after iteration k.
  std::optional<NotFinite> look_at_all(std::int64_t k);

 private:
  std::optional<NotFinite> look_at(std::size_t at, std::span<const float> values, std::int64_t k);

  const Parameters& replica_;
  std::vector<std::int64_t> finite_after_;  // by piece
  std::size_t next_ = 0;
};

}  // namespace hearsay
