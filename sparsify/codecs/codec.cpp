#include <algorithm>
#include <stdexcept>
#include <string>

#include "sparsify/bytes.hpp"
#include "sparsify/search/positions.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

/// Whether there is something to tell about positions: neither none nor all.
bool has_positions(std::size_t k, std::size_t n) { return k > 0 && k < n; }

/// Ends, in the values, of the groups that share a level: one for every row that has values, or one for all.
std::vector<std::size_t> group_ends(std::span<const std::uint32_t> indices, std::size_t n,
                                    std::span<const std::uint32_t> row_ends, bool by_rows) {
  std::vector<std::size_t> ends;
  if (indices.empty()) return ends;
  if (by_rows && !row_ends.empty()) {
    if (row_ends.back() != n) throw std::logic_error("codec: rows end at " + std::to_string(row_ends.back()));
    std::size_t end = 0;
    for (const std::uint32_t row_end : row_ends) {
      const std::size_t before = end;
      while (end < indices.size() && indices[end] < row_end) ++end;
      if (end > before) ends.push_back(end);
    }
  } else {
    ends.push_back(indices.size());
  }
  return ends;
}

}  // namespace

std::size_t Codec::bound(std::size_t count, std::size_t n) const {
  const std::size_t groups = by_rows() ? count : std::min<std::size_t>(count, 1);
  return (count > 0 ? positions_->bound(count, n) : 0) + quantiser_->bound(count, groups);
}

EncodedSize Codec::encode(std::span<const std::uint32_t> indices, std::span<const float> values, std::size_t n,
                          std::span<const std::uint32_t> row_ends, std::span<std::byte> out, float step) const {
  const std::size_t k = indices.size();
  if (values.size() != k || k > n || (k > 0 && indices.back() >= n))
    throw std::logic_error("codec: " + std::to_string(k) + " positions and " + std::to_string(values.size()) +
                           " values of " + std::to_string(n));
  const std::size_t index_bytes = has_positions(k, n) ? positions_->encode(indices, n, out) : 0;
  const auto groups = group_ends(indices, n, row_ends, by_rows());
  require_room("codec", index_bytes, out.size());
  const std::size_t payload_bytes = quantiser_->encode(values, groups, step, out.subspan(index_bytes));
  return {.payload_bytes = payload_bytes, .index_bytes = index_bytes};
}

EncodedSize Codec::encode_positions(std::span<const std::uint32_t> indices, std::size_t count, std::size_t n,
                                    std::span<const std::byte> payload, std::span<std::byte> out) const {
  if (payload.size() != payload_bytes(count) || (has_positions(count, n) && indices.size() != count))
    throw std::logic_error("codec: " + std::to_string(indices.size()) + " positions and " +
                           std::to_string(payload.size()) + " bytes of " + std::to_string(count) + " values");
  const std::size_t index_bytes = has_positions(count, n) ? positions_->encode(indices, n, out) : 0;
  require_room("codec", index_bytes + payload.size(), out.size());
  std::ranges::copy(payload, out.subspan(index_bytes).begin());
  return {.payload_bytes = payload.size(), .index_bytes = index_bytes};
}

std::size_t Codec::decode_positions(std::span<const std::byte> in, std::size_t count, std::size_t n,
                                    std::vector<std::uint32_t>& indices) const {
  if (count > n) refuse_positions("sparse", count, n, "more values than there are");
  if (has_positions(count, n)) return positions_->decode(in, count, n, indices);
  all_positions(count, indices);
  return 0;
}

EncodedSize Codec::decode(std::span<const std::byte> in, std::size_t count, std::size_t n,
                          std::span<const std::uint32_t> row_ends, std::vector<std::uint32_t>& indices,
                          std::vector<float>& values) const {
  const std::size_t index_bytes = decode_positions(in, count, n, indices);
  const auto groups = group_ends(indices, n, row_ends, by_rows());
  values.resize(count);
  quantiser_->decode(in.subspan(index_bytes), groups, values);
  return {.payload_bytes = in.size() - index_bytes, .index_bytes = index_bytes};
}

}  // namespace hearsay
