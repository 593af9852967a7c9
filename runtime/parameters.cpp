#include "runtime/parameters.hpp"

#include <algorithm>
#include <functional>
#include <new>
#include <numeric>

#include "runtime/base/hash.hpp"
#include "runtime/device/device.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hearsay {

void Layout::append(std::string name, std::vector<std::int64_t> shape) {
  const auto length = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  segments_.push_back({std::move(name), std::move(shape), size_, static_cast<std::size_t>(length)});
  size_ += static_cast<std::size_t>(length);
}

namespace {

constexpr std::size_t cache_line = 64, huge_page = std::size_t{1} << 21;

std::size_t bytes_of(std::size_t length) { return std::max<std::size_t>(length, 1) * sizeof(float); }

std::align_val_t alignment_of(std::size_t length) {
  return std::align_val_t{bytes_of(length) >= 2 * huge_page ? huge_page : cache_line};
}

/// Before the memory is first touched. No success, no harm.
void ask_for_huge_pages(float* block, std::size_t length) {
#if defined(__linux__)
  if (bytes_of(length) >= 2 * huge_page) static_cast<void>(madvise(block, bytes_of(length), MADV_HUGEPAGE));
#else
  static_cast<void>(block), static_cast<void>(length);
#endif
}

}  // namespace

FloatBlock::FloatBlock(std::size_t length)
    : FloatBlock(static_cast<float*>(::operator new[](bytes_of(length), alignment_of(length))), length,
                 [alignment = alignment_of(length)](float* data) { ::operator delete[](data, alignment); }) {
  ask_for_huge_pages(data_.get(), length);
  std::fill_n(data_.get(), length_, 0.0F);
}

Parameters::Parameters(Layout l) : Parameters(std::move(l), processor()) {}
Parameters::Parameters(Layout l, std::shared_ptr<Device> where)
    : layout(std::move(l)),
      device(std::move(where)),
      values(device->block(layout.size())),
      gradients(device->block(layout.size())) {}

std::uint64_t replica_hash(std::span<const float> values) { return xxh3(std::as_bytes(values)); }

}  // namespace hearsay
