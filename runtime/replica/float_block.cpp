#include "runtime/replica/float_block.hpp"

#include <algorithm>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hearsay {
namespace {

constexpr std::size_t line_bytes = 64, huge_page = std::size_t{1} << 21;

std::size_t bytes_of(std::size_t length) { return std::max<std::size_t>(length, 1) * sizeof(float); }

std::align_val_t alignment_of(std::size_t length) {
  return std::align_val_t{bytes_of(length) >= 2 * huge_page ? huge_page : line_bytes};
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

}  // namespace hearsay
