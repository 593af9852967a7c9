#include "sparsify/search/candidates.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>

#include "sparsify/magnitude.hpp"

namespace hearsay {
namespace {

constexpr int bin_bits = 12;
constexpr std::size_t bins = std::size_t{1} << bin_bits;
constexpr std::size_t few = 512;  // candidates that are cheaper to order than to count

}  // namespace

/// Magnitudes in [low, end), of the 2^shift wide bins that begin at the least one.
struct Candidates::Bin {
  std::int32_t low = 0, end = 0;
  int shift = 0;
  std::size_t above = 0;  // candidates of larger magnitude, < k
};

EntryRoom Candidates::room(std::size_t most) {
  if (most > capacity_) {
    capacity_ = most + most / 4;
    positions_ = std::make_unique_for_overwrite<std::uint32_t[]>(capacity_ + EntryRoom::slack);
    magnitudes_ = std::make_unique_for_overwrite<std::int32_t[]>(capacity_ + EntryRoom::slack);
  }
  return {positions_.get(), magnitudes_.get(), most};
}

bool Candidates::collect(std::span<const float> values, std::int32_t least, std::size_t most) {
  size_ = hearsay::collect(values, least, room(most));
  least_ = least;
  return size_ <= most;
}

bool Candidates::collect_sparse(std::span<const float> values, std::size_t k) {
  if (!collect(values, 1, k)) return false;
  add_first_zeros(k - size_);
  least_ = 0;
  return true;
}

/// What is not among the candidates is 0. Up to the last of the zeros to add every position is taken, behind it only
/// the candidates are.
void Candidates::add_first_zeros(std::size_t zeros) {
  std::size_t front = zeros, below = 0;  // positions < front are taken; `below` of them are candidates
  while (below < size_ && positions_[below] < front) ++front, ++below;
  const std::size_t behind = size_ - below;
  std::memmove(positions_.get() + front, positions_.get() + below, behind * sizeof(std::uint32_t));
  std::memmove(magnitudes_.get() + front, magnitudes_.get() + below, behind * sizeof(std::int32_t));
  std::size_t end = front;  // from here on magnitudes are in place
  for (std::size_t c = below; c-- > 0;) {
    const std::size_t at = positions_[c];
    const std::int32_t magnitude = magnitudes_[c];
    std::fill(magnitudes_.get() + at + 1, magnitudes_.get() + end, 0);
    magnitudes_[at] = magnitude;
    end = at;
  }
  std::fill_n(magnitudes_.get(), end, 0);
  std::iota(positions_.get(), positions_.get() + front, 0U);
  size_ = front + behind;
}

bool Candidates::add_and_collect(std::span<float> values, std::span<const float> addend, float scale,
                                 std::int32_t least, std::size_t most) {
  size_ = hearsay::add_and_collect(values, addend, scale, least, room(most));
  least_ = least;
  return size_ <= most;
}

Cut Candidates::keep_largest(std::size_t k, std::size_t wanted) {
  if (k == 0 || k > size_)
    throw std::logic_error("candidates: " + std::to_string(k) + " of " + std::to_string(size_) + " to keep");
  Cut cut;
  for (const std::int32_t magnitude : magnitudes()) cut.largest = std::max(cut.largest, magnitude);
  if (cut.largest >= infinity_bits) return cut;
  const Bin bin = size_ <= few ? whole(cut.largest) : bin_of(k, cut.largest);
  cut.level = level_of(std::min(wanted, size_), bin);
  size_ = keep_from(bin.low, room(size_), size_);
  cut.kth = trim(bin, k);
  return cut;
}

/// A bin that holds all candidates.
Candidates::Bin Candidates::whole(std::int32_t largest) const {
  return {.low = least_, .end = largest + 1, .shift = 31, .above = 0};
}

/// The bin that holds the k-th largest. Leaves in counts_[b] how many candidates lie in bin b or above.
Candidates::Bin Candidates::bin_of(std::size_t k, std::int32_t largest) {
  const std::int32_t least = least_;  // a local: counting writes to memory that the compiler cannot tell from ours
  const int width = std::bit_width(static_cast<std::uint32_t>(largest - least));
  const int shift = std::max(0, width - bin_bits);
  counts_.assign(bins + 1, 0);
  std::uint32_t* const counts = counts_.data();
  for (const std::int32_t magnitude : magnitudes()) ++counts[(magnitude - least) >> shift];
  for (std::size_t b = bins; b-- > 0;) counts[b] += counts[b + 1];
  std::size_t bin = bins - 1;
  while (counts[bin] < k) --bin;
  const auto low = static_cast<std::int64_t>(least) + (static_cast<std::int64_t>(bin) << shift);
  const std::int64_t end = std::min<std::int64_t>(low + (std::int64_t{1} << shift), largest + 1);
  return {.low = static_cast<std::int32_t>(low),
          .end = static_cast<std::int32_t>(end),
          .shift = shift,
          .above = counts[bin + 1]};
}

/// To the accuracy of a bin, downwards; of a single bin exactly.
std::int32_t Candidates::level_of(std::size_t wanted, const Bin& bin) const {
  if (bin.shift == 31) {
    std::vector<std::int32_t> all(magnitudes().begin(), magnitudes().end());
    const auto place = all.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
    std::nth_element(all.begin(), place, all.end(), std::greater<>());
    return *place;
  }
  auto level = static_cast<std::size_t>((bin.low - least_) >> bin.shift);
  while (counts_[level] < wanted) --level;
  return least_ + static_cast<std::int32_t>(level << bin.shift);
}

/// Drops candidates of the bin until k candidates are left: the smallest magnitudes, of equal ones the highest
/// positions. Returns the smallest magnitude that stays.
std::int32_t Candidates::trim(const Bin& bin, std::size_t k) {
  find_below(bin.end, magnitudes(), in_bin_);
  const auto before = [this](std::uint32_t a, std::uint32_t b) {
    const std::int32_t x = magnitudes_[a], y = magnitudes_[b];
    return x != y ? x > y : a < b;
  };
  const auto last_kept = in_bin_.begin() + static_cast<std::ptrdiff_t>(k - bin.above - 1);
  std::nth_element(in_bin_.begin(), last_kept, in_bin_.end(), before);
  const std::int32_t kth = magnitudes_[*last_kept];
  std::sort(last_kept + 1, in_bin_.end());
  drop({last_kept + 1, in_bin_.end()});
  return kth;
}

/// `places` ascending. What lies between two of them moves as a whole.
void Candidates::drop(std::span<const std::uint32_t> places) {
  if (places.empty()) return;
  std::size_t to = places.front();
  for (std::size_t d = 0; d < places.size(); ++d) {
    const std::size_t from = places[d] + 1, end = d + 1 < places.size() ? places[d + 1] : size_;
    std::memmove(positions_.get() + to, positions_.get() + from, (end - from) * sizeof(std::uint32_t));
    to += end - from;
  }
  size_ = to;
}

}  // namespace hearsay
