#pragma once
// Which values of a segment travel, and how they are written.
//
// A Selector picks positions; a Codec writes picked values and their positions as bytes and reads them back. Both are
// pure: what is not sent stays with the caller (the residual, or the reference of what a neighbour holds).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/table.hpp"

namespace hearsay {

/// How many of n values to keep: k = max(1, round(ρ·n)), at most n; 0 for n = 0.
std::size_t kept_count(double density, std::size_t n);

/// Throws DivergenceError (position and value of the first one) unless all values are finite. One read pass.
void require_finite(std::span<const float> values);

/// Picks positions of one segment, of fewer than 2³² values.
class Selector {
 public:
  virtual ~Selector() = default;
  /// Clears `indices` and fills it with the positions to keep in `values`, ascending and unique; how many is the
  /// selector's own matter (its `density`). Throws DivergenceError (position and value) if a value is not finite.
  virtual void select(std::span<const float> values, std::vector<std::uint32_t>& indices) = 0;
  /// The most positions `select` can ever return for n values: what a mailbox must have room for.
  virtual std::size_t most(std::size_t n) const = 0;
};

/// What an encoded segment is made of, in bytes; payload + index is the whole of it.
struct EncodedSize {
  std::size_t payload_bytes = 0;  ///< values
  std::size_t index_bytes = 0;    ///< positions
  std::size_t total() const { return payload_bytes + index_bytes; }
};

/// Writes k values and their positions, out of a segment of n, as bytes.
class Codec {
 public:
  virtual ~Codec() = default;
  /// Room that `encode` may need for any k ≤ count values out of n.
  virtual std::size_t bound(std::size_t count, std::size_t n) const = 0;
  /// `indices` ascending, < n; `values` the values at those positions. `out` has at least bound(k, n) bytes.
  virtual EncodedSize encode(std::span<const std::uint32_t> indices, std::span<const float> values, std::size_t n,
                             std::span<std::byte> out) const = 0;
  /// Inverse of encode for `count` values. Any bytes are safe: throws CommunicationError if they are not an encoding
  /// (wrong length, positions not ascending or ≥ n); `indices` and `values` then hold nothing of use.
  virtual void decode(std::span<const std::byte> in, std::size_t count, std::size_t n,
                      std::vector<std::uint32_t>& indices, std::vector<float>& values) const = 0;
};

using SelectorEntry = Entry<Selector>;
using CodecEntry = Entry<Codec>;
std::span<const SelectorEntry> selectors();
std::span<const CodecEntry> codecs();

}  // namespace hearsay
