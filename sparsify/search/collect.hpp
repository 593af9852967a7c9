#pragma once
// The streaming passes of selection: values of at least some magnitude, with their positions, in order. Each has code
// for AVX2 and a portable form; the processor is asked at run time, and results are the same.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hearsay {

/// Where collected entries go, from the front: positions, and magnitudes as magnitude_bits has them.
struct EntryRoom {
  std::uint32_t* positions;
  std::int32_t* magnitudes;
  std::size_t capacity;  ///< entries; both arrays are `slack` longer, which stores of whole vectors may touch
  static constexpr std::size_t slack = 32;
};

/// Entries whose magnitude is ≥ `least`, ascending by position (NaN counts as larger than ∞). Returns how many there
/// are; more than `room.capacity` if they did not fit: what is stored is then of no use. One read of the values.
std::size_t collect(std::span<const float> values, std::int32_t least, const EntryRoom& room);
/// The same of values ← values + scale · addend, which is always done in full. 2 reads and 1 write, as of the sum
/// alone.
std::size_t add_and_collect(std::span<float> values, std::span<const float> addend, float scale, std::int32_t least,
                            const EntryRoom& room);
/// Drops those of the first `count` entries whose magnitude is < `least`, in place and in order; returns how many stay.
std::size_t keep_from(std::int32_t least, const EntryRoom& entries, std::size_t count);
/// found ← the places i with magnitudes[i] < limit, ascending; quick where they are rare.
void find_below(std::int32_t limit, std::span<const std::int32_t> magnitudes, std::vector<std::uint32_t>& found);

/// The same without AVX2, whatever the processor (for tests).
namespace portable {
std::size_t collect(std::span<const float> values, std::int32_t least, const EntryRoom& room);
std::size_t add_and_collect(std::span<float> values, std::span<const float> addend, float scale, std::int32_t least,
                            const EntryRoom& room);
std::size_t keep_from(std::int32_t least, const EntryRoom& entries, std::size_t count);
}  // namespace portable

}  // namespace hearsay
