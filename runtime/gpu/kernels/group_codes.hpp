#pragma once
// The codes of sparsify/quantisers/ as kernels see them: what is measured of a group, levels of that, and each value by
// its levels. The arithmetic is the processor's, from the same headers.
//
// Kernels have as many threads as a piece has partial sums (sparsify/quantisers/sides.hpp). A code has
//   name                                of its quantiser
//   width, levels_sent                  bits of a value, floats of a group
//   rounds                              how often a group is measured
//   Measure, nothing(), joined(a, b)    what is measured; joined in pairs, in the order of sides.hpp
//   add(measure, value, before)         `before`: the levels after the round before; of the first one unspecified
//   levels(measure, round)              after that round; as they are sent after the last
//   to_code(value, levels), from_code(code, levels)
#include <cstdint>
#include <limits>

#include "runtime/gpu/kernels/selection.hpp"
#include "sparsify/quantisers/rounding.hpp"
#include "sparsify/quantisers/sides.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay::device {

/// What the values of a group share; of codes with one level, `low`.
struct GroupLevels {
  double low, high;
};

/// What codes have in common that measure magnitudes by their bits.
struct MeasuresMagnitude {
  static constexpr unsigned rounds = 1;
  static constexpr unsigned levels_sent = 1;
  using Measure = std::int32_t;
};

struct MeasuresLargest : MeasuresMagnitude {
  static constexpr Measure nothing() { return 0; }
  static constexpr Measure joined(Measure a, Measure b) { return a > b ? a : b; }
  static constexpr void add(Measure& most, float value, unsigned, const GroupLevels&) {
    most = joined(most, magnitude_bits(value));
  }
};

struct Int8Code : MeasuresLargest {
  static constexpr const char* name = "int8";
  static constexpr unsigned width = 8;
  static constexpr GroupLevels levels(Measure most, unsigned) { return {int8_scale(float_of(most)), 0.0}; }
  static constexpr unsigned to_code(float value, const GroupLevels& levels) {
    return static_cast<std::uint8_t>(to_int8(value, static_cast<float>(levels.low)));
  }
  static constexpr float from_code(unsigned code, const GroupLevels& levels) {
    return from_int8(static_cast<float>(levels.low), static_cast<std::int8_t>(code));
  }
};

struct Fp4Code : MeasuresLargest {
  static constexpr const char* name = "fp4";
  static constexpr unsigned width = 4;
  static constexpr GroupLevels levels(Measure most, unsigned) { return {fp4_top(float_of(most)), 0.0}; }
  static constexpr unsigned to_code(float value, const GroupLevels& levels) {
    return to_fp4(value, static_cast<float>(levels.low));
  }
  static constexpr float from_code(unsigned code, const GroupLevels& levels) {
    return from_fp4(static_cast<float>(levels.low), code);
  }
};

/// A sign each.
struct SignCode {
  static constexpr const char* name = "one_bit";
  static constexpr unsigned width = 1;
  static constexpr unsigned to_code(float value, const GroupLevels&) { return value < 0.0F ? 1 : 0; }
  static constexpr float from_code(unsigned code, const GroupLevels& levels) {
    return code != 0 ? -static_cast<float>(levels.high) : static_cast<float>(levels.low);
  }
};

/// ±min |v| of what is not 0.
struct ThresholdCode : SignCode, MeasuresMagnitude {
  static constexpr Measure nothing() { return no_level; }
  static constexpr Measure joined(Measure a, Measure b) { return a < b ? a : b; }
  static constexpr void add(Measure& least, float value, unsigned, const GroupLevels&) {
    if (value != 0.0F) least = joined(least, magnitude_bits(value));
  }
  static constexpr GroupLevels levels(Measure least, unsigned) {
    const double magnitude = least == no_level ? 0.0F : level(float_of(least));
    return {magnitude, magnitude};
  }
};

/// What codes have in common that measure sums on both sides of two limits.
struct MeasuresSides {
  static constexpr unsigned levels_sent = 2;
  using Measure = Sides;
  static constexpr Measure nothing() { return {}; }
  static constexpr Measure joined(const Measure& a, const Measure& b) {
    return {{a.sums[0] + b.sums[0], a.sums[1] + b.sums[1]}, {a.counts[0] + b.counts[0], a.counts[1] + b.counts[1]}};
  }
  static constexpr void add_between(Measure& sides, float value, double low, double high) {
    const double magnitude = float_of(magnitude_bits(value));
    const bool second = side_of(value, low, high) == 1;
    sides.sums[0] += second ? 0.0 : magnitude;
    sides.sums[1] += second ? magnitude : 0.0;
    sides.counts[0] += second ? 0.0 : 1.0;
    sides.counts[1] += second ? 1.0 : 0.0;
  }
  static constexpr double everything = std::numeric_limits<double>::infinity();
};

/// The means of the values ≥ 0 and of those < 0.
struct MeanCode : SignCode, MeasuresSides {
  static constexpr unsigned rounds = 1;
  static constexpr void add(Measure& sides, float value, unsigned, const GroupLevels&) {
    add_between(sides, value, 0.0, everything);
  }
  static constexpr GroupLevels levels(const Measure& sides, unsigned) {
    return {mean_level(sides, 0), mean_level(sides, 1)};
  }
};

struct TwoBitCode : MeasuresSides {
  static constexpr const char* name = "two_bit";
  static constexpr unsigned width = 2;
  static constexpr unsigned rounds = 1 + boundary_moves;
  static constexpr void add(Measure& sides, float value, unsigned round, const GroupLevels& before) {
    const double boundary = round == 0 ? everything : Centres{before.low, before.high}.boundary();
    add_between(sides, value, -boundary, boundary);
  }
  static constexpr GroupLevels levels(const Measure& sides, unsigned round) {
    const Centres centres = round + 1 < rounds ? centres_of(sides) : as_sent(centres_of(sides));
    return {centres.low, centres.high};
  }
  static constexpr unsigned to_code(float value, const GroupLevels& levels) {
    const bool high = nearer_high(float_of(magnitude_bits(value)), levels.low, levels.high);
    return (value < 0.0F ? 1U : 0U) | (high ? 2U : 0U);
  }
  static constexpr float from_code(unsigned code, const GroupLevels& levels) {
    const auto magnitude = static_cast<float>((code & 2) != 0 ? levels.high : levels.low);
    return (code & 1) != 0 ? -magnitude : magnitude;
  }
};

/// make(code) of the code that has this name; Result() of none.
template <class Result, class Make>
Result with_code(GroupCode code, const Make& make) {
  switch (code) {
    case GroupCode::int8:
      return make(Int8Code());
    case GroupCode::fp4:
      return make(Fp4Code());
    case GroupCode::two_bit:
      return make(TwoBitCode());
    case GroupCode::one_bit_threshold:
      return make(ThresholdCode());
    case GroupCode::one_bit_mean:
      return make(MeanCode());
    case GroupCode::none:
      break;
  }
  return Result();
}

}  // namespace hearsay::device
