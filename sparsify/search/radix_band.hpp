#pragma once
// The band of magnitudes that holds the k-th largest value, without sorting and without luck.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hearsay {

/// The magnitudes [low, low + 2^width), as magnitude_bits has them.
struct Band {
  std::int32_t low = 0;
  int width = 31;
  std::size_t inside = 0;  ///< values in the band
  std::size_t above = 0;   ///< values of larger magnitude, < k

  bool holds(std::int32_t magnitude) const { return (magnitude >> width) == (low >> width); }
};

/// |x| orders as an integer. A histogram over its leading 12 bits finds the band; should that hold much of the values
/// (they are of nearly equal size), it is split again, by 10 and then by 9 bits, so time stays linear for any input
/// (radix select: Alabi et al., JEA 2012, alabi2012fast). Keeps its scratch memory from call to call.
/// Cost: 1 read of the values, 2 or 3 for nearly equal ones; a table of 64 KB.
class RadixBand {
 public:
  /// 1 ≤ k ≤ values.size(). Throws DivergenceError (position and value) if a value is not finite.
  Band find(std::span<const float> values, std::size_t k);

 private:
  Band split(std::span<const float> values, const Band& band, int bits, std::size_t k);
  void count_all(std::span<const float> values, int width);
  void count_band(std::span<const float> values, const Band& band, int bits);

  std::vector<std::uint32_t> counts_;  // (tables, bins); the first table is their sum once all are counted
};

}  // namespace hearsay
