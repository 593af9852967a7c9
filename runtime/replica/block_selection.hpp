#pragma once
// What a sparsifier keeps of a whole replica, be it one run of values or segment by segment.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/replica/layout.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

/// Lengths of selections and positions of a whole replica.
class BlockSelection {
 public:
  BlockSelection(const Sparsifier& sparsifier, const Layout& layout) : sparsifier_(sparsifier), layout_(layout) {}
  /// Entries that a density asks for: Σ over segments where the scope is the segment.
  std::size_t count(double density) const;
  /// Positions in the block to keep, ascending. Throws DivergenceError naming the segment if a value is not finite.
  void select(std::span<const float> block, double density, std::vector<std::uint32_t>& positions);
  /// block ← block + scale · addend, then `select`; in one pass over memory where the selector can.
  void add_and_select(std::span<float> block, std::span<const float> addend, float scale, double density,
                      std::vector<std::uint32_t>& positions);

 private:
  bool one_run() const;
  void select_block(std::span<const float> block, double density, std::vector<std::uint32_t>& positions);
  void append_segment(std::span<const float> block, const Segment& segment, std::size_t k,
                      std::vector<std::uint32_t>& positions);

  const Sparsifier& sparsifier_;
  const Layout& layout_;
  std::vector<std::uint32_t> scratch_;
  std::vector<float> packed_;
};

}  // namespace hearsay
