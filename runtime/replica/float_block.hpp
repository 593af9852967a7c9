#pragma once
// A block of floats: what replicas, gradients, copies of neighbours and residuals are kept in.
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "runtime/replica/layout.hpp"

namespace hearsay {

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

}  // namespace hearsay
