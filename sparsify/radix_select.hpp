#pragma once
// The k values of largest magnitude, exactly, without sorting.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hearsay {

/// Keeps its scratch memory from call to call.
///
/// How: |x| orders as an integer. A histogram over its leading 12 bits finds the band of magnitudes that holds the k-th
/// largest value. All positions at or above the band are collected in order, and the band's own magnitudes settle the
/// exact cut. Should the band hold much of the values (they are of nearly equal size), it is split again, by 10 and
/// then by 9 bits, so time and memory stay linear for any input.
/// Cost: 2 reads of the values (3 or 4 for nearly equal ones); 4 bytes for each position and each value of the band.
class RadixSelect {
 public:
  /// indices ← the first k positions by (|x_i| descending, i ascending), written ascending. Throws DivergenceError
  /// (position and value) if a value is not finite.
  void largest(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices);

 private:
  struct Band;
  Band find_band(std::span<const float> values, std::size_t k);
  Band split(std::span<const float> values, const Band& band, int bits, std::size_t k);
  void count_all(std::span<const float> values, int width);
  void count_band(std::span<const float> values, const Band& band, int bits);
  void trim(std::span<const float> values, const Band& band, std::size_t k, std::vector<std::uint32_t>& indices);

  std::vector<std::uint32_t> counts_;  // (tables, bins); the first table is their sum once all are counted
  std::vector<std::int32_t> in_band_;  // magnitudes of the band, in any order
};

}  // namespace hearsay
