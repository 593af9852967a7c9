#pragma once
// Changes become codes on the GPU, of all segments of a packet together:
//   c ← levels of the segment and a few bits a value, as Quantiser::encode writes them;  x̂ ← x̂ + q(c), which the
//   receiver will add, too
// The codes and their sources: sparsify/quantisers/. Bit for bit the processor's: what is measured of a segment is
// joined in the order of sparsify/quantisers/sides.hpp, from which pieces and threads are taken.
//
// A change that is no number shows in `first_bad`; what is written of its segment is then of no use, and x̂ stays.
// Cost: one launch, however many segments there are; 8 bytes a value and round (1; two_bit 5), 12 to write, and the
// code. What has come: one launch, 8 bytes a value.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/gpu/kernels/group_codes.hpp"

namespace hearsay::device {

/// What of one segment travels, or has come. Pointers are the GPU's.
struct CodedRun {
  const float* values;             // the changes; or x …; null of what has come
  const float* minus;              // … less this; null: nothing
  const std::uint32_t* positions;  // of the values in the segment; null: all of it
  float* copy;                     // x̂ of the segment
  const std::uint32_t* failed;     // the selection's first bad position; null: nothing was selected
  std::uint64_t count;
  std::uint64_t code;         // where its bytes begin
  std::uint32_t first_piece;  // among those of all runs

  HEARSAY_DEVICE float value(std::uint64_t i) const { return minus == nullptr ? values[i] : values[i] - minus[i]; }
  HEARSAY_DEVICE float& copied(std::uint64_t i) const { return copy[positions == nullptr ? i : positions[i]]; }
};

template <class Code>
struct Join {
  HEARSAY_DEVICE auto operator()(const typename Code::Measure& a, const typename Code::Measure& b) const {
    return Code::joined(a, b);
  }
};

constexpr std::uint64_t pieces_in(std::uint64_t count) { return ceil_div(count, values_of_piece); }

/// What the kernels share; passed by value. Pointers are the GPU's.
template <class Code>
struct CodedView {
  const CodedRun* runs;
  std::uint32_t run_count;
  std::uint32_t piece_count;
  std::uint32_t* owners;             // the run of each piece
  typename Code::Measure* measures;  // of each piece
  std::uint32_t* first_bad;          // of each run
  GroupLevels* levels;               // of each run
  std::uint8_t* bytes;

  /// Calls f(piece, owner, run, its first value in the run) for this block's pieces of runs that are there.
  template <class Block, class Function>
  HEARSAY_DEVICE void each_piece(Block& block, const Function& f) const {
    for (std::uint32_t piece = block.index(); piece < piece_count; piece += block.blocks()) {
      const std::uint32_t owner = block.read(owners + piece);
      const CodedRun run = block.read(runs + owner);
      if (run.failed != nullptr && block.read(run.failed) != no_position) continue;
      f(piece, owner, run, std::uint64_t{piece - run.first_piece} * values_of_piece);
    }
  }
};

/// owners ← the run of each piece; first_bad ← those of the selections.
template <class Code>
struct BeginRuns {
  static constexpr unsigned threads = partial_sums;
  struct Shared {};
  CodedView<Code> view;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    for (std::uint32_t r = block.index(); r < view.run_count; r += block.blocks()) {
      const CodedRun run = block.read(view.runs + r);
      block.phase([&](unsigned t) {
        for (std::uint64_t p = t; p < pieces_in(run.count); p += Block::threads) view.owners[run.first_piece + p] = r;
        if (t == 0) view.first_bad[r] = run.failed == nullptr ? no_position : *run.failed;
      });
    }
  }
};

/// measures ← that of each piece. The first round also looks whether all are numbers.
template <class Code>
struct MeasurePieces {
  static constexpr unsigned threads = partial_sums;
  struct Shared {
    typename Code::Measure measures[partial_sums];
  };
  CodedView<Code> view;
  unsigned round;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    typename Block::template PerThread<typename Code::Measure> measures;
    view.each_piece(block, [&](std::uint32_t piece, std::uint32_t owner, const CodedRun& run, std::uint64_t first) {
      const GroupLevels before = round == 0 ? GroupLevels{} : block.read(view.levels + owner);
      block.phase([&](unsigned t) { measures[t] = measured<Block>(run, owner, first, before, t); });
      const auto all = reduce(block, shared.measures, measures, Join<Code>());
      block.phase([&](unsigned t) {
        if (t == 0) view.measures[piece] = all;
      });
    });
  }

 private:
  template <class Block>
  HEARSAY_DEVICE typename Code::Measure measured(const CodedRun& run, std::uint32_t owner, std::uint64_t first,
                                                 const GroupLevels& before, unsigned t) const {
    auto measure = Code::nothing();
    for (unsigned j = 0; j < values_of_partial_sum; ++j) {
      const std::uint64_t i = first + place_in_piece(t, j);
      if (i >= run.count) break;
      const float value = run.value(i);
      Code::add(measure, value, round, before);
      if (round == 0 && magnitude_bits(value) >= infinity_bits)
        Block::lower(view.first_bad + owner, static_cast<std::uint32_t>(i));
    }
    return measure;
  }
};

/// levels ← those of each run; after the last round they are written, too.
template <class Code>
struct FindLevels {
  static constexpr unsigned threads = partial_sums;
  struct Shared {
    typename Code::Measure measures[partial_sums];
  };
  CodedView<Code> view;
  unsigned round;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    typename Block::template PerThread<typename Code::Measure> measures;
    for (std::uint32_t r = block.index(); r < view.run_count; r += block.blocks()) {
      const CodedRun run = block.read(view.runs + r);
      if (run.count == 0 || (run.failed != nullptr && block.read(run.failed) != no_position)) continue;
      block.phase([&](unsigned t) {
        measures[t] = Code::nothing();
        for (std::uint64_t p = t; p < pieces_in(run.count); p += Block::threads)
          measures[t] = Code::joined(measures[t], view.measures[run.first_piece + p]);
      });
      const auto all = reduce(block, shared.measures, measures, Join<Code>());
      block.phase([&](unsigned t) {
        if (t == 0) set(r, run, Code::levels(all, round));
      });
    }
  }

 private:
  HEARSAY_DEVICE void set(std::uint32_t r, const CodedRun& run, const GroupLevels& levels) const {
    view.levels[r] = levels;
    if (round + 1 == Code::rounds) write(run.code, levels);
  }
  HEARSAY_DEVICE void write(std::uint64_t at, const GroupLevels& levels) const {
    const float sent[2] = {static_cast<float>(levels.low), static_cast<float>(levels.high)};
    for (unsigned b = 0; b < Code::levels_sent * sizeof(float); ++b) {
      const auto bits = std::bit_cast<std::uint32_t>(sent[b / sizeof(float)]);
      view.bytes[at + b] = static_cast<std::uint8_t>(bits >> (8 * (b % sizeof(float))));
    }
  }
};

/// The codes of all values, and what they stand for into the copies.
template <class Code>
struct WriteCodes {
  static constexpr unsigned threads = partial_sums;
  struct Shared {
    std::uint8_t codes[values_of_piece];
  };
  CodedView<Code> view;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared& shared) const {
    view.each_piece(block, [&](std::uint32_t, std::uint32_t owner, const CodedRun& run, std::uint64_t first) {
      if (block.read(view.first_bad + owner) != no_position) return;
      const GroupLevels levels = block.read(view.levels + owner);
      const std::uint64_t count = run.count - first < values_of_piece ? run.count - first : values_of_piece;
      block.phase([&](unsigned t) {
        for (std::uint64_t i = t; i < count; i += Block::threads) {
          const unsigned code = Code::to_code(run.value(first + i), levels);
          shared.codes[i] = static_cast<std::uint8_t>(code);
          run.copied(first + i) += Code::from_code(code, levels);
        }
      });
      std::uint8_t* const bytes = view.bytes + run.code + Code::levels_sent * sizeof(float) + first / values_of_byte;
      block.phase([&](unsigned t) {
        for (std::uint64_t b = t; b * values_of_byte < count; b += Block::threads) bytes[b] = packed(shared, b, count);
      });
    });
  }

 private:
  static constexpr unsigned values_of_byte = 8 / Code::width;

  static HEARSAY_DEVICE std::uint8_t packed(const Shared& shared, std::uint64_t b, std::uint64_t count) {
    unsigned byte = 0;
    for (unsigned c = 0; c < values_of_byte; ++c) {
      const std::uint64_t i = b * values_of_byte + c;
      if (i < count) byte |= unsigned{shared.codes[i]} << (Code::width * c);
    }
    return static_cast<std::uint8_t>(byte);
  }
};

/// What has come, into the copies.
template <class Code>
struct AddCodes {
  static constexpr unsigned threads = partial_sums;
  struct Shared {};
  CodedView<Code> view;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    view.each_piece(block, [&](std::uint32_t, std::uint32_t, const CodedRun& run, std::uint64_t first) {
      block.phase([&](unsigned t) {
        const GroupLevels levels = {level(run, 0), level(run, Code::levels_sent - 1)};
        for (std::uint64_t i = first + t; i < run.count && i < first + values_of_piece; i += Block::threads)
          run.copied(i) += Code::from_code(code(run, i), levels);
      });
    });
  }

 private:
  HEARSAY_DEVICE float level(const CodedRun& run, unsigned which) const {
    std::uint32_t bits = 0;
    for (unsigned b = 0; b < sizeof bits; ++b)
      bits |= std::uint32_t{view.bytes[run.code + which * sizeof bits + b]} << (8 * b);
    return std::bit_cast<float>(bits);
  }
  HEARSAY_DEVICE unsigned code(const CodedRun& run, std::uint64_t i) const {
    const std::uint64_t bit = i * Code::width;
    const unsigned byte = view.bytes[run.code + Code::levels_sent * sizeof(float) + bit / 8];
    return byte >> (bit % 8) & ((1U << Code::width) - 1);
  }
};

/// What the codes of a packet take.
struct CodedRoom {
  std::size_t runs = 0, pieces = 0, bytes = 0;
  bool holds(const CodedRoom& other) const {
    return other.runs <= runs && other.pieces <= pieces && other.bytes <= bytes;
  }
  CodedRoom larger(const CodedRoom& other) const {
    return {std::max(runs, other.runs), std::max(pieces, other.pieces), std::max(bytes, other.bytes)};
  }
};

/// Codes of up to so many runs at a time, with the memory that they need. Machine: Gpu or Emulator.
template <class Machine, class Code>
class Quantise {
 public:
  explicit Quantise(const CodedRoom& room)
      : runs_(room.runs),
        owners_(room.pieces),
        measures_(room.pieces),
        first_bad_(room.runs),
        levels_(room.runs),
        bytes_(room.bytes) {}

  /// Bytes of `count` values.
  static constexpr std::uint64_t bytes_of(std::uint64_t count) {
    return count == 0 ? 0 : Code::levels_sent * sizeof(float) + ceil_div(count * Code::width, 8);
  }

  /// Writes the runs that are in `runs()`, of `pieces` pieces together.
  void write(Machine& machine, std::uint32_t runs, std::uint32_t pieces) {
    const CodedView<Code> view = view_of(runs, pieces);
    const unsigned blocks = blocks_for(machine, view);
    const auto measure = [&](unsigned round) { return MeasurePieces<Code>{view, round}; };
    const auto levels = [&](unsigned round) { return FindLevels<Code>{view, round}; };
    if constexpr (Code::rounds == 1) {
      machine.run_in_turn(blocks, BeginRuns<Code>{view}, measure(0), levels(0), WriteCodes<Code>{view});
    } else {
      static_assert(Code::rounds == 5);
      machine.run_in_turn(blocks, BeginRuns<Code>{view}, measure(0), levels(0), measure(1), levels(1), measure(2),
                          levels(2), measure(3), levels(3), measure(4), levels(4), WriteCodes<Code>{view});
    }
  }

  /// Adds what is in `bytes()` to the copies of the runs that are in `runs()`.
  void add(Machine& machine, std::uint32_t runs, std::uint32_t pieces) {
    const CodedView<Code> view = view_of(runs, pieces);
    machine.run_in_turn(blocks_for(machine, view), BeginRuns<Code>{view}, AddCodes<Code>{view});
  }

  // Where the machine keeps what goes in and comes out.
  CodedRun* runs() { return runs_.data(); }
  const std::uint32_t* first_bad() const { return first_bad_.data(); }
  std::uint8_t* bytes() { return bytes_.data(); }

 private:
  CodedView<Code> view_of(std::uint32_t runs, std::uint32_t pieces) {
    return {.runs = runs_.data(),
            .run_count = runs,
            .piece_count = pieces,
            .owners = owners_.data(),
            .measures = measures_.data(),
            .first_bad = first_bad_.data(),
            .levels = levels_.data(),
            .bytes = bytes_.data()};
  }
  static unsigned blocks_for(const Machine& machine, const CodedView<Code>& view) {
    return std::min(std::max(view.run_count, view.piece_count), machine.resident_blocks());
  }

  template <class T>
  using Buffer = typename Machine::template Buffer<T>;

  Buffer<CodedRun> runs_;
  Buffer<std::uint32_t> owners_;
  Buffer<typename Code::Measure> measures_;
  Buffer<std::uint32_t> first_bad_;
  Buffer<GroupLevels> levels_;
  Buffer<std::uint8_t> bytes_;
};

}  // namespace hearsay::device
