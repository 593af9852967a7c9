#pragma once
// How a replica's block of floats is cut: into segments, one a parameter tensor, and into parts, one a rank.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace hearsay {

/// One parameter tensor's slice of the block.
struct Segment {
  std::string name;  ///< as LibTorch names it, e.g. "conv1.weight"
  std::vector<std::int64_t> shape;
  std::size_t offset = 0;  ///< floats from the start of the block
  std::size_t length = 0;  ///< floats
};

/// The segments of a replica, in the model's order, without gaps.
class Layout {
 public:
  Layout() = default;
  /// Appends a segment behind the last one.
  void append(std::string name, std::vector<std::int64_t> shape);
  std::span<const Segment> segments() const { return segments_; }
  const Segment& operator[](SegmentId id) const { return segments_[id]; }
  std::size_t count() const { return segments_.size(); }
  std::size_t size() const { return size_; }  ///< floats in all segments
  std::vector<std::size_t> lengths() const;   ///< floats in each

 private:
  std::vector<Segment> segments_;
  std::size_t size_ = 0;
};

/// The part of `n` values that member `index` of `parts` is responsible for: [begin, begin + length). Parts differ by
/// one value at most; with fewer values than parts the last ones are empty.
struct Part {
  std::size_t begin = 0, length = 0;
  std::span<float> of(std::span<float> values) const { return values.subspan(begin, length); }
  std::span<const float> of(std::span<const float> values) const { return values.subspan(begin, length); }
};
Part part_of(std::size_t n, int parts, int index);

/// Ends of the rows of all tensors in the block, for quantisers that go by rows: a row has the same first index.
std::vector<std::uint32_t> row_ends(const Layout& layout);
/// The same for a part of the block, counted from its start; a row that is cut ends, or goes on, at the cut.
std::vector<std::uint32_t> row_ends(const Layout& layout, const Part& part);

}  // namespace hearsay
