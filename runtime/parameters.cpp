#include "runtime/parameters.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hearsay {

void Layout::append(std::string name, std::vector<std::int64_t> shape) {
  const auto length = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  segments_.push_back({std::move(name), std::move(shape), size_, static_cast<std::size_t>(length)});
  size_ += static_cast<std::size_t>(length);
}

FloatBlock::FloatBlock(std::size_t length)
    : data_(static_cast<float*>(::operator new[](std::max<std::size_t>(length, 1) * sizeof(float), alignment))),
      length_(length) {
  std::fill_n(data_.get(), length_, 0.0F);
}

std::uint64_t replica_hash(std::span<const float> values) { return XXH3_64bits(values.data(), values.size_bytes()); }

}  // namespace hearsay
