#pragma once
// Quantisers on the GPU: the same bytes as those of the processor's quantisers, which decode what these encode.
// Cost: encode: 1 launch for levels, with one block a group (so the levels of a single group of very many values are slow
// to find: 1 pass of one block, 5 for two_bit), and 1 launch that writes; decode: 2 launches.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/gpu/kernels/quantiser_formats.hpp"
#include "runtime/gpu/machine/block.hpp"

namespace hearsay::device {

enum class QuantiserKind { none, fp16, int8, one_bit_threshold, one_bit_mean, two_bit };

constexpr unsigned unit_threads = 256;
constexpr std::uint32_t all_valid = 0xffffffffU;

/// Values in groups, in the machine's memory: group g is [ends[g − 1], ends[g]), none is empty.
struct GroupsView {
  std::uint64_t count;  // of values
  const std::uint64_t* ends;
  std::uint32_t groups;

  HEARSAY_DEVICE std::uint64_t first(std::uint32_t group) const { return group == 0 ? 0 : ends[group - 1]; }
  /// The group of value i.
  HEARSAY_DEVICE std::uint32_t of(std::uint64_t i) const {
    std::uint32_t low = 0, high = groups - 1;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (i < ends[middle]) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
};

/// levels ← those of every group.
template <class Format>
struct FindLevels {
  static constexpr unsigned threads = level_threads;
  struct Shared {
    typename Format::Scratch scratch[level_threads];
  };
  const float* values;
  GroupsView groups;
  float* levels;  // (groups, Format::levels)

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    for (std::uint32_t group = block.index(); group < groups.groups; group += block.blocks()) {
      const std::uint64_t first = group == 0 ? 0 : block.read(groups.ends + group - 1);
      float found[Format::levels];
      Format::find_levels(block, shared.scratch, {values, first, block.read(groups.ends + group)}, found);
      block.phase([&](unsigned t) {
        if (t < Format::levels)
          levels[std::uint64_t{group} * Format::levels + t] = t == 0 ? found[0] : found[Format::levels - 1];
      });
    }
  }
};

/// One thread a unit of the output.
template <class Format>
struct EncodeUnits {
  static constexpr unsigned threads = unit_threads;
  struct Shared {};
  const float* values;
  GroupsView groups;
  const float* levels;
  typename Format::Unit* units;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    block.phase([&](unsigned t) {
      const std::uint64_t step = std::uint64_t{block.blocks()} * unit_threads;
      const std::uint64_t count = ceil_div(groups.count, Format::values);
      for (std::uint64_t i = std::uint64_t{block.index()} * unit_threads + t; i < count; i += step)
        units[i] = encoded(i);
    });
  }

 private:
  HEARSAY_DEVICE typename Format::Unit encoded(std::uint64_t i) const {
    typename Format::Unit unit{};
    for (unsigned place = 0; place < Format::values; ++place) {
      const std::uint64_t value = i * Format::values + place;
      if (value >= groups.count) break;
      const std::uint64_t group = Format::levels == 0 ? 0 : groups.of(value);
      Format::put(unit, place, values[value], levels + group * Format::levels);
    }
    return unit;
  }
};

/// One block: all levels finite and not negative? first_bad ← the first value of the first group for which that is not
/// so, or all_valid.
template <class Format>
struct CheckLevels {
  static constexpr unsigned threads = unit_threads;
  struct Shared {};
  GroupsView groups;
  const float* levels;
  std::uint32_t* first_bad;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    block.phase([&](unsigned t) {
      if (t == 0) *first_bad = all_valid;
    });
    block.phase([&](unsigned t) {
      const std::uint64_t count = std::uint64_t{groups.groups} * Format::levels;
      for (std::uint64_t i = t; i < count; i += unit_threads) {
        const bool valid = levels[i] >= 0.0F && magnitude_bits(levels[i]) < infinity_bits;
        const auto group = static_cast<std::uint32_t>(Format::levels == 0 ? 0 : i / Format::levels);
        if (!valid) Block::lower(first_bad, static_cast<std::uint32_t>(groups.first(group)));
      }
    });
  }
};

/// One thread a unit of the input. Any bytes are safe.
template <class Format>
struct DecodeUnits {
  static constexpr unsigned threads = unit_threads;
  struct Shared {};
  const typename Format::Unit* units;
  GroupsView groups;
  const float* levels;
  float* values;
  std::uint32_t* first_bad;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    block.phase([&](unsigned t) {
      const std::uint64_t step = std::uint64_t{block.blocks()} * unit_threads;
      const std::uint64_t count = ceil_div(groups.count, Format::values);
      for (std::uint64_t i = std::uint64_t{block.index()} * unit_threads + t; i < count; i += step) decode<Block>(i);
    });
  }

 private:
  template <class Block>
  HEARSAY_DEVICE void decode(std::uint64_t i) const {
    const typename Format::Unit unit = units[i];
    if (!Format::valid(unit)) Block::lower(first_bad, static_cast<std::uint32_t>(i * Format::values));
    for (unsigned place = 0; place < Format::values; ++place) {
      const std::uint64_t value = i * Format::values + place;
      if (value >= groups.count) break;
      const std::uint64_t group = Format::levels == 0 ? 0 : groups.of(value);
      values[value] = Format::get(unit, place, levels + group * Format::levels);
    }
  }
};

/// Calls `use(Format{})` with the format of `kind`.
template <class Use>
auto with_format(QuantiserKind kind, Use use) {
  switch (kind) {
    case QuantiserKind::none:
      return use(NoneFormat{});
    case QuantiserKind::fp16:
      return use(Fp16Format{});
    case QuantiserKind::int8:
      return use(Int8Format{});
    case QuantiserKind::one_bit_threshold:
      return use(SmallestMagnitude{});
    case QuantiserKind::one_bit_mean:
      return use(MeanMagnitudes{});
    case QuantiserKind::two_bit:
      break;
  }
  return use(TwoBitFormat{});
}

template <class Format>
constexpr std::uint64_t level_bytes(std::uint32_t groups) {
  return sizeof(float) * Format::levels * std::uint64_t{groups};
}

/// Bytes of `count` values in `groups` groups, as Quantiser::bytes.
inline std::uint64_t quantised_bytes(QuantiserKind kind, std::uint64_t count, std::uint32_t groups) {
  return with_format(kind, [&]<class Format>(Format) {
    return level_bytes<Format>(groups) + ceil_div(count, Format::values) * sizeof(typename Format::Unit);
  });
}

template <class Machine>
unsigned unit_blocks(const Machine& machine, std::uint64_t units) {
  const std::uint64_t wanted = ceil_div(units, unit_threads), most = 4 * machine.resident_blocks();
  return static_cast<unsigned>(wanted < most ? wanted : most);
}

/// out ← the levels of the groups, then the units. `out` lies on a multiple of 4 bytes.
template <class Machine>
void quantise(Machine& machine, QuantiserKind kind, const float* values, const GroupsView& groups, std::byte* out) {
  if (groups.count == 0) return;
  with_format(kind, [&]<class Format>(Format) {
    auto* const levels = reinterpret_cast<float*>(out);
    auto* const units = reinterpret_cast<typename Format::Unit*>(out + level_bytes<Format>(groups.groups));
    if constexpr (Format::levels > 0) {
      const unsigned most = machine.resident_blocks();
      machine.run(groups.groups < most ? groups.groups : most, FindLevels<Format>{values, groups, levels});
    }
    machine.run(unit_blocks(machine, ceil_div(groups.count, Format::values)),
                EncodeUnits<Format>{values, groups, levels, units});
  });
}

/// values ← what `in`, as long as quantised_bytes says, encodes; first_bad ← the first value that is not finite, or
/// all_valid.
template <class Machine>
void dequantise(Machine& machine, QuantiserKind kind, const std::byte* in, const GroupsView& groups, float* values,
                std::uint32_t* first_bad) {
  with_format(kind, [&]<class Format>(Format) {
    const auto* const levels = reinterpret_cast<const float*>(in);
    const auto* const units = reinterpret_cast<const typename Format::Unit*>(in + level_bytes<Format>(groups.groups));
    machine.run(1, CheckLevels<Format>{groups, levels, first_bad});
    machine.run(unit_blocks(machine, ceil_div(groups.count, Format::values)),
                DecodeUnits<Format>{units, groups, levels, values, first_bad});
  });
}

}  // namespace hearsay::device
