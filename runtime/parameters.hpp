#pragma once
// A replica: all trainable floats of a rank in one contiguous block, and their gradients in a second one.
//
// One block makes communication, norms and mixing plain loops over floats. LibTorch's tensors are views into it
// (runtime/training/model.cpp); this header knows nothing of LibTorch.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trigger/trigger.hpp"

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

 private:
  std::vector<Segment> segments_;
  std::size_t size_ = 0;
};

/// `length` floats, zero at first. Move-only.
class FloatBlock {
 public:
  /// In the processor's memory, on a 64-byte boundary. Long ones lie in huge pages where the system has them to give
  /// (Linux, `madvise`): passes over several blocks then wait less for address translation.
  explicit FloatBlock(std::size_t length = 0);
  using Free = std::function<void(float*)>;
  /// In a memory that is given back by `free`.
  FloatBlock(float* data, std::size_t length, Free free) : data_(data, std::move(free)), length_(length) {}
  std::span<float> span() { return {data_.get(), length_}; }
  std::span<const float> span() const { return {data_.get(), length_}; }
  std::span<float> segment(const Segment& s) { return span().subspan(s.offset, s.length); }
  std::span<const float> segment(const Segment& s) const { return span().subspan(s.offset, s.length); }
  std::size_t size() const { return length_; }

 private:
  std::unique_ptr<float[], Free> data_;
  std::size_t length_;
};

class Device;

/// The replica x and its gradient g, both laid out alike, where a device has its memory (runtime/device/device.hpp).
struct Parameters {
  /// In the processor's memory.
  explicit Parameters(Layout layout);
  Parameters(Layout layout, std::shared_ptr<Device> device);
  Layout layout;
  std::shared_ptr<Device> device;
  FloatBlock values;
  FloatBlock gradients;
};

/// 64-bit hash (XXH3) of the bytes of a block: equal hashes, equal replicas.
std::uint64_t replica_hash(std::span<const float> values);

}  // namespace hearsay
