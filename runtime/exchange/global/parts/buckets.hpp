#pragma once
// Which segments travel together, and when a bucket is complete: last layers first, as the backward pass makes them.
//
// Buckets are started in one fixed order on every rank, whatever order gradients come in: collectives must match.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/replica/parameters.hpp"

namespace hearsay {

class Buckets {
 public:
  /// Neighbouring segments from the end of the block to its start, closed as soon as they have `bytes` or more.
  Buckets(const Layout& layout, std::size_t bytes);

  /// A slice of the block.
  struct Bucket {
    std::size_t offset = 0, length = 0;  ///< floats
    SegmentId first = 0, last = 0;       ///< its segments, both included
  };
  std::size_t count() const { return buckets_.size(); }
  const Bucket& operator[](std::size_t i) const { return buckets_[i]; }

  /// Before the backward pass of an iteration.
  void restart();
  /// Segment `s` has its gradient: calls `start(bucket)` for every bucket that is complete now and whose turn it is.
  /// Segments that were silent in the whole first iteration (buffers, frozen tensors) are not waited for later; one
  /// that is heard of after that is a std::logic_error, its bucket may have gone.
  void ready(SegmentId s, const std::function<void(const Bucket&)>& start);
  /// All gradients are there: starts the buckets that are left.
  void finish(const std::function<void(const Bucket&)>& start);

 private:
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;    // by segment
  std::vector<std::size_t> waiting_for_;  // segments, by bucket
  std::vector<std::uint8_t> speaks_;      // by segment: has ever been ready
  std::size_t next_ = 0;
  bool first_iteration_ = true;
};

}  // namespace hearsay
