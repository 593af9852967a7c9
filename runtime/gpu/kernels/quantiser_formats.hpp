#pragma once
// How each quantiser writes a unit of its output (a number, or a byte of packed bits), and the levels of a group.
// The equations, citations and errors are those of the files in sparsify/quantisers/; rounding is shared with them.
// The means of one_bit and two_bit are summed in another order than on the processor: as they are rounded to 12 bits of
// the 53, the bytes are the same unless a mean lies within some 2⁻⁵⁰ of itself from a boundary.
#include <cstdint>

#include "runtime/gpu/machine/block.hpp"
#include "sparsify/magnitude.hpp"
#include "sparsify/quantisers/rounding.hpp"

namespace hearsay::device {

constexpr unsigned level_threads = 512;

HEARSAY_DEVICE inline float magnitude(float value) { return float_of(magnitude_bits(value)); }

/// Sums and numbers of magnitudes on two sides of something.
struct Sides {
  double sums[2];
  std::uint32_t counts[2];

  /// No index that is known at run time only, so that a GPU keeps it all in registers.
  HEARSAY_DEVICE void take(bool second, float magnitude_of_value) {
    sums[0] += second ? 0.0 : magnitude_of_value;
    sums[1] += second ? magnitude_of_value : 0.0;
    counts[0] += second ? 0 : 1;
    counts[1] += second ? 1 : 0;
  }
  HEARSAY_DEVICE double mean_first() const { return sums[0] / static_cast<double>(counts[0]); }
  HEARSAY_DEVICE double mean_second() const { return sums[1] / static_cast<double>(counts[1]); }
  friend HEARSAY_DEVICE Sides operator+(const Sides& a, const Sides& b) {
    return {{a.sums[0] + b.sums[0], a.sums[1] + b.sums[1]}, {a.counts[0] + b.counts[0], a.counts[1] + b.counts[1]}};
  }
};

/// The values of one group.
struct Group {
  const float* values;
  std::uint64_t first, end;
};

/// Visits every value of a group with the accumulator of its thread, then combines the accumulators.
template <class Block, class T, class Visit, class Combine>
HEARSAY_DEVICE T fold(Block& block, T* scratch, const Group& group, T start, Visit visit, Combine combine) {
  typename Block::template PerThread<T> values;
  block.phase([&](unsigned t) {
    T own = start;
    for (std::uint64_t i = group.first + t; i < group.end; i += Block::threads) visit(own, group.values[i]);
    values[t] = own;
  });
  return reduce(block, scratch, values, combine);
}

struct NoneFormat {
  using Unit = float;
  static constexpr unsigned values = 1, levels = 0;
  static HEARSAY_DEVICE void put(Unit& unit, unsigned, float value, const float*) { unit = value; }
  static HEARSAY_DEVICE float get(Unit unit, unsigned, const float*) { return unit; }
  static HEARSAY_DEVICE bool valid(Unit unit) { return magnitude_bits(unit) < infinity_bits; }
};

struct Fp16Format {
  using Unit = std::uint16_t;
  static constexpr unsigned values = 1, levels = 0;
  static HEARSAY_DEVICE void put(Unit& unit, unsigned, float value, const float*) { unit = to_half(value); }
  static HEARSAY_DEVICE float get(Unit unit, unsigned, const float*) { return to_float(unit); }
  static HEARSAY_DEVICE bool valid(Unit unit) { return is_finite_half(unit); }
};

struct Int8Format {
  using Unit = std::int8_t;
  using Scratch = std::int32_t;
  static constexpr unsigned values = 1, levels = 1;
  static HEARSAY_DEVICE void put(Unit& unit, unsigned, float value, const float* level) {
    unit = to_int8(value, level[0]);
  }
  static HEARSAY_DEVICE float get(Unit unit, unsigned, const float* level) { return from_int8(level[0], unit); }
  static HEARSAY_DEVICE bool valid(Unit) { return true; }

  template <class Block>
  static HEARSAY_DEVICE void find_levels(Block& block, Scratch* scratch, const Group& group, float* level) {
    const auto larger = [](std::int32_t a, std::int32_t b) { return a > b ? a : b; };
    const std::int32_t most = fold(
        block, scratch, group, std::int32_t{0},
        [&](std::int32_t& own, float value) { own = larger(own, magnitude_bits(value)); }, larger);
    level[0] = int8_scale(float_of(most));
  }
};

/// `Levels` 1: the smallest magnitude; 2: the means of the values ≥ 0 and of those < 0.
template <unsigned Levels>
struct OneBitFormat {
  using Unit = std::uint8_t;
  static constexpr unsigned values = 8, levels = Levels;
  static HEARSAY_DEVICE void put(Unit& unit, unsigned place, float value, const float*) {
    if (value < 0.0F) unit |= static_cast<Unit>(1U << place);
  }
  static HEARSAY_DEVICE float get(Unit unit, unsigned place, const float* level) {
    return ((unit >> place) & 1U) != 0 ? -level[Levels - 1] : level[0];
  }
  static HEARSAY_DEVICE bool valid(Unit) { return true; }
};

struct SmallestMagnitude : OneBitFormat<1> {
  using Scratch = std::int32_t;
  template <class Block>
  static HEARSAY_DEVICE void find_levels(Block& block, Scratch* scratch, const Group& group, float* level_found) {
    constexpr std::int32_t nothing = 0x7fffffff;
    const auto smaller = [](std::int32_t a, std::int32_t b) { return a < b ? a : b; };
    const std::int32_t least = fold(
        block, scratch, group, nothing,
        [&](std::int32_t& own, float value) {
          if (value != 0.0F) own = smaller(own, magnitude_bits(value));
        },
        smaller);
    level_found[0] = least == nothing ? 0.0F : level(float_of(least));
  }
};

struct MeanMagnitudes : OneBitFormat<2> {
  using Scratch = Sides;
  template <class Block>
  static HEARSAY_DEVICE void find_levels(Block& block, Scratch* scratch, const Group& group, float* level_found) {
    const Sides sides = fold(
        block, scratch, group, Sides{}, [](Sides& own, float value) { own.take(value < 0.0F, magnitude(value)); },
        [](const Sides& a, const Sides& b) { return a + b; });
    level_found[0] = sides.counts[0] == 0 ? 0.0F : level(sides.mean_first());
    level_found[1] = sides.counts[1] == 0 ? 0.0F : level(sides.mean_second());
  }
};

struct TwoBitFormat {
  using Unit = std::uint8_t;
  using Scratch = Sides;
  static constexpr unsigned values = 4, levels = 2;
  static constexpr int boundary_moves = 4;
  static HEARSAY_DEVICE void put(Unit& unit, unsigned place, float value, const float* level) {
    if (value < 0.0F) unit |= static_cast<Unit>(1U << (2 * place));
    if (nearer_high(magnitude(value), level[0], level[1])) unit |= static_cast<Unit>(2U << (2 * place));
  }
  static HEARSAY_DEVICE float get(Unit unit, unsigned place, const float* level) {
    const unsigned bits = unit >> (2 * place);
    const float found = level[(bits >> 1) & 1U];
    return (bits & 1U) != 0 ? -found : found;
  }
  static HEARSAY_DEVICE bool valid(Unit) { return true; }

  /// The group is not empty.
  template <class Block>
  static HEARSAY_DEVICE void find_levels(Block& block, Scratch* scratch, const Group& group, float* level_found) {
    const auto plus = [](const Sides& a, const Sides& b) { return a + b; };
    const Sides all = fold(
        block, scratch, group, Sides{}, [](Sides& own, float value) { own.take(false, magnitude(value)); }, plus);
    double low = all.mean_first(), high = low;
    for (int move = 0; move < boundary_moves; ++move) {
      const Sides sides = fold(
          block, scratch, group, Sides{},
          [&](Sides& own, float value) { own.take(nearer_high(magnitude(value), low, high), magnitude(value)); }, plus);
      low = sides.counts[0] > 0 ? sides.mean_first() : sides.mean_second();
      high = sides.counts[1] > 0 ? sides.mean_second() : sides.mean_first();
    }
    level_found[0] = level(low);
    level_found[1] = level(high);
  }
};

}  // namespace hearsay::device
