#pragma once
// All values of at least some magnitude, and the exact k largest of them.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sparsify/search/collect.hpp"

namespace hearsay {

/// Where the candidates were cut. Magnitudes as magnitude_bits has them.
struct Cut {
  std::int32_t largest = 0;  ///< of all candidates; ≥ infinity_bits: a value is not finite, and nothing was cut
  std::int32_t kth = 0;      ///< the smallest that was kept
  std::int32_t level = 0;    ///< what about `wanted` of the candidates reach
};

/// Keeps its memory from use to use.
class Candidates {
 public:
  /// Bytes of room for so many: 8 each, and for a quarter more of them.
  static constexpr std::size_t bytes(std::size_t most) {
    return (most + most / 4) * (sizeof(std::uint32_t) + sizeof(std::int32_t));
  }
  /// Collects the entries of magnitude ≥ `least`. False if there were more than `most`: they are of no use then.
  bool collect(std::span<const float> values, std::int32_t least, std::size_t most);
  /// Collects k entries where at most k of them are not 0: those, and the first zeros. False where more are not 0: what
  /// was collected is of no use then. Memory for k entries, where `collect` of all zeros would take that of all values.
  bool collect_sparse(std::span<const float> values, std::size_t k);
  /// `collect` of values ← values + scale · addend, which is always done in full.
  bool add_and_collect(std::span<float> values, std::span<const float> addend, float scale, std::int32_t least,
                       std::size_t most);
  std::size_t size() const { return size_; }

  /// Leaves the first k of them by (magnitude descending, position ascending); 1 ≤ k ≤ size(). `wanted` ≥ k: for
  /// Cut::level. A histogram of 4096 bins finds the bin of the k-th; its few candidates are ordered among themselves.
  /// Cost: 3 reads and 1 write of the candidates.
  Cut keep_largest(std::size_t k, std::size_t wanted);
  /// Ascending.
  std::span<const std::uint32_t> positions() const { return {positions_.get(), size_}; }

 private:
  struct Bin;
  EntryRoom room(std::size_t most);
  std::span<const std::int32_t> magnitudes() const { return {magnitudes_.get(), size_}; }
  Bin whole(std::int32_t largest) const;
  Bin bin_of(std::size_t k, std::int32_t largest);
  std::int32_t level_of(std::size_t wanted, const Bin& bin) const;
  std::int32_t trim(const Bin& bin, std::size_t k);
  void drop(std::span<const std::uint32_t> places);
  void add_first_zeros(std::size_t zeros);

  std::unique_ptr<std::uint32_t[]> positions_;
  std::unique_ptr<std::int32_t[]> magnitudes_;
  std::size_t capacity_ = 0, size_ = 0;
  std::int32_t least_ = 0;
  std::vector<std::uint32_t> counts_, in_bin_;
};

}  // namespace hearsay
