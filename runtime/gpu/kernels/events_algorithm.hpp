#pragma once
// Events of single values on the GPU: of all segments of a packet together, the positions whose change has left the
// dead zone, |x_i − x̂_i| ≥ θΔ, in their order, and the changes there. As the processor's, bit for bit: magnitudes are
// compared by their bits.
//
// The first pass counts the news of each piece; its last
// block adds the counts up, which says where each piece's entries go; the second pass writes them. Nobody waits for the
// processor in between. Where entries do not fit the memory, they are counted all the same, and the second pass is run
// again with more of it: x and x̂ stay as they are until then.
// Cost: 8 bytes a value and pass, 2 passes; 8 bytes an event; 3 launches, however many segments there are.
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/gpu/kernels/changes.hpp"
#include "runtime/gpu/kernels/selection.hpp"

namespace hearsay::device {

/// What the kernels of one selection share; passed by value. Pointers are the GPU's.
struct EventsView {
  Changes changes;
  std::uint32_t piece_count;
  const std::uint32_t* owner;  // the segment of each piece
  const std::uint64_t* begin;  // of each segment in the block
  const std::uint32_t* end;    // where each segment's pieces end
  std::uint32_t segments;
  const std::int32_t* least;  // of each segment: magnitude bits from which a change is news; no_level: nobody asks
  std::uint32_t* counts;      // of each piece; later how many come before it
  std::uint32_t* ends;        // of each segment's entries
  std::uint32_t* first_bad;   // of each segment: the first position whose change is not finite
};

/// Which of the four values from `first` on are news, a bit each; `least` > 0, so what is not of the piece is none.
constexpr std::uint32_t news_among(const Float4& changes, std::int32_t least) {
  std::uint32_t hits = 0;
  for (unsigned c = 0; c < 4; ++c)
    if (magnitude_bits(changes.at[c]) >= least) hits |= 1U << c;
  return hits;
}
constexpr std::uint32_t ones(std::uint32_t bits) {
  std::uint32_t count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}

/// Nothing counted, nothing bad. The work of one block.
struct BeginEvents {
  static constexpr unsigned threads = norm_threads;
  struct Shared {};
  std::uint32_t* first_bad;
  std::uint32_t segments;
  std::uint32_t* arrivals;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    block.phase([&](unsigned t) {
      for (std::uint32_t s = t; s < segments; s += Block::threads) first_bad[s] = no_position;
      if (t == 0) *arrivals = 0;
    });
  }
};

struct CountEvents {
  static constexpr unsigned threads = norm_threads;
  struct Shared {};
  EventsView view;
  std::uint32_t* arrivals;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    const std::uint32_t segment = block.read(view.owner + block.index());
    const std::int32_t least = block.read(view.least + segment);
    typename Block::template PerThread<std::uint32_t> counts;
    if (least != no_level) {
      const Piece piece = block.read(view.changes.pieces + block.index());
      const std::uint64_t begin = block.read(view.begin + segment);
      block.phase([&](unsigned t) { counts[t] = count<Block>(piece, segment, begin, least, t); });
    } else {
      block.phase([&](unsigned t) { counts[t] = 0; });
    }
    const std::uint32_t sum = block.exclusive_scan(counts);
    block.phase([&](unsigned t) {
      if (t == 0) view.counts[block.index()] = sum;
    });
    if (block.is_last(arrivals)) accumulate(block);
  }

 private:
  template <class Block>
  HEARSAY_DEVICE std::uint32_t count(const Piece& piece, std::uint32_t segment, std::uint64_t begin, std::int32_t least,
                                     unsigned t) const {
    std::uint32_t found = 0;
    for (std::uint64_t row = piece.first / piece_size * piece_size; row < piece.end; row += change_row) {
      const Float4 changes = view.changes.at<Block>(piece, row + 4 * t);
      for (unsigned c = 0; c < 4; ++c) {
        const std::int32_t bits = magnitude_bits(changes.at[c]);
        if (bits < least) continue;
        ++found;
        if (bits >= infinity_bits)
          Block::lower(view.first_bad + segment, static_cast<std::uint32_t>(row + 4 * t + c - begin));
      }
    }
    return found;
  }

  /// counts ← how many come before each piece; ends of the segments.
  template <class Block>
  HEARSAY_DEVICE void accumulate(Block& block) const {
    typename Block::template PerThread<std::uint32_t> counts;
    std::uint32_t before = 0;
    for (std::uint32_t first = 0; first < view.piece_count; first += Block::threads) {
      block.phase([&](unsigned t) { counts[t] = first + t < view.piece_count ? view.counts[first + t] : 0; });
      const std::uint32_t sum = block.exclusive_scan(counts);
      block.phase([&](unsigned t) {
        if (first + t < view.piece_count) view.counts[first + t] = before + counts[t];
      });
      before += sum;
    }
    block.phase([&](unsigned t) {
      for (std::uint32_t s = t; s < view.segments; s += Block::threads)
        view.ends[s] = view.end[s] < view.piece_count ? view.counts[view.end[s]] : before;
    });
  }
};

/// Writes the entries that fit: positions within their segments.
struct EmitEvents {
  static constexpr unsigned threads = norm_threads;
  struct Shared {};
  EventsView view;
  std::uint32_t* positions;
  float* values;
  std::uint32_t capacity;

  template <class Block>
  HEARSAY_DEVICE void operator()(Block& block, Shared&) const {
    const std::uint32_t segment = block.read(view.owner + block.index());
    const std::int32_t least = block.read(view.least + segment);
    if (least == no_level) return;
    const Piece piece = block.read(view.changes.pieces + block.index());
    const std::uint64_t begin = block.read(view.begin + segment);
    std::uint32_t at = block.read(view.counts + block.index());
    typename Block::template PerThread<Float4> changes;
    typename Block::template PerThread<std::uint32_t> before;
    for (std::uint64_t row = piece.first / piece_size * piece_size; row < piece.end; row += change_row) {
      block.phase([&](unsigned t) {
        changes[t] = view.changes.at<Block>(piece, row + 4 * t);
        before[t] = ones(news_among(changes[t], least));
      });
      const std::uint32_t sum = block.exclusive_scan(before);
      if (sum == 0) continue;
      block.phase([&](unsigned t) { write(changes[t], least, row + 4 * t - begin, at + before[t]); });
      at += sum;
    }
  }

 private:
  HEARSAY_DEVICE void write(const Float4& changes, std::int32_t least, std::uint64_t position, std::uint32_t at) const {
    const std::uint32_t hits = news_among(changes, least);
    for (unsigned c = 0; c < 4; ++c) {
      if (((hits >> c) & 1U) == 0) continue;
      if (at < capacity) {
        positions[at] = static_cast<std::uint32_t>(position + c);
        values[at] = changes.at[c];
      }
      ++at;
    }
  }
};

/// The events of a replica with these segments, of fewer than 2³² values each and together. Machine: Gpu or Emulator.
template <class Machine>
class Events {
 public:
  explicit Events(std::span<const SegmentRange> segments) {
    std::vector<Piece> pieces;
    std::vector<std::uint32_t> owner, end;
    std::vector<std::uint64_t> begin;
    for (const SegmentRange& segment : segments) {
      for (const Piece& piece : pieces_of(segment)) {
        pieces.push_back(piece);
        owner.push_back(static_cast<std::uint32_t>(begin.size()));
      }
      begin.push_back(segment.offset);
      end.push_back(static_cast<std::uint32_t>(pieces.size()));
    }
    upload(pieces_, pieces), upload(owner_, owner), upload(begin_, begin), upload(end_, end);
    counts_ = Buffer<std::uint32_t>(pieces.size());
    ends_ = Buffer<std::uint32_t>(segments.size());
    first_bad_ = Buffer<std::uint32_t>(segments.size());
    arrivals_ = Buffer<std::uint32_t>(1);
  }

  /// Counts the changes whose magnitude bits are at least those of their segment, which are > 0; `no_level`: none. All
  /// pointers are in the machine's memory. x and copy: whole blocks.
  void count(Machine& machine, const float* x, const float* copy, const std::int32_t* least) {
    const EventsView view = view_of(x, copy, least);
    machine.run(1, BeginEvents{first_bad_.data(), view.segments, arrivals_.data()});
    machine.run(blocks(), CountEvents{view, arrivals_.data()});
  }
  /// After `count`: the first `capacity` of them.
  void emit(Machine& machine, const float* x, const float* copy, const std::int32_t* least, std::uint32_t* positions,
            float* values, std::uint32_t capacity) {
    machine.run(blocks(), EmitEvents{view_of(x, copy, least), positions, values, capacity});
  }
  /// Where the machine keeps what `count` has found, one a segment: the end of its entries, and the first position that
  /// is not finite.
  const std::uint32_t* ends() const { return ends_.data(); }
  const std::uint32_t* first_bad() const { return first_bad_.data(); }

 private:
  template <class T>
  using Buffer = typename Machine::template Buffer<T>;

  template <class T>
  static void upload(Buffer<T>& buffer, const std::vector<T>& values) {
    buffer = Buffer<T>(values.size());
    buffer.upload(std::span<const T>(values));
  }
  unsigned blocks() const { return static_cast<unsigned>(pieces_.size()); }
  EventsView view_of(const float* x, const float* copy, const std::int32_t* least) {
    return {.changes = changes_of(x, copy, pieces_.data()),
            .piece_count = static_cast<std::uint32_t>(pieces_.size()),
            .owner = owner_.data(),
            .begin = begin_.data(),
            .end = end_.data(),
            .segments = static_cast<std::uint32_t>(end_.size()),
            .least = least,
            .counts = counts_.data(),
            .ends = ends_.data(),
            .first_bad = first_bad_.data()};
  }

  Buffer<Piece> pieces_;
  Buffer<std::uint32_t> owner_, end_;
  Buffer<std::uint64_t> begin_;
  Buffer<std::uint32_t> counts_, ends_, first_bad_, arrivals_;
};

}  // namespace hearsay::device
