#pragma once
// A sparse vector in canonical form: positions ascend, no value is zero. The canonical form makes merging one pass,
// fixes the order of every sum, and is what position coders want.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/collectives/gather.hpp"
#include "runtime/transport/ledger.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

class SumStep;

struct SparseVector {
  std::vector<std::uint32_t> indices{};
  std::vector<float> values{};

  std::size_t size() const { return indices.size(); }
  bool empty() const { return indices.empty(); }
  void push_back(std::uint32_t index, float value) {
    indices.push_back(index);
    values.push_back(value);
  }
  void resize(std::size_t size) {
    indices.resize(size);
    values.resize(size);
  }
  bool operator==(const SparseVector&) const = default;
};

/// a + b; positions whose sum is zero are left out. One pass over both.
SparseVector sum(const SparseVector& a, const SparseVector& b);
/// a − b. One pass over both.
SparseVector difference(const SparseVector& a, const SparseVector& b);
/// Sum of all, pairwise in their order: the same bits wherever it is computed. ⌈log2(count)⌉ passes.
SparseVector sum(std::span<const SparseVector> vectors);
/// The positions of `a` that `chosen` (ascending) contains, or does not.
SparseVector restricted(const SparseVector& a, std::span<const std::uint32_t> chosen);
SparseVector without(const SparseVector& a, std::span<const std::uint32_t> chosen);
/// Σ |value|, in double precision.
double mass(const SparseVector& a);
/// values[index] += value for every entry.
void add_to(std::span<float> values, const SparseVector& a);

/// Cuts sparse vectors to their k entries of largest magnitude, ties by lower position, exactly.
class Truncation {
 public:
  Truncation();
  /// Leaves min(k, size) entries in `v` and returns the others.
  SparseVector keep_largest(SparseVector& v, std::size_t k);

 private:
  std::unique_ptr<Selector> selector_;
  std::vector<std::uint32_t> kept_;
  std::vector<std::uint8_t> is_kept_;  // of every entry
};

/// Sparse vectors of n positions as messages: 8 bytes of header (count), then the codec's bytes.
class SparseWire {
 public:
  /// `row_ends` as Codec::encode wants them. `codec` must outlive the wire, and so must `ledger`, which is charged with
  /// the time of encoding and decoding, phase `communicate_encode`; null where another phase contains it. Throws
  /// ConfigError for n of 2³² or more. `step`, which must outlive the wire, too, says what integers count and is told
  /// what messages take; null where the codec chooses.
  SparseWire(const Codec& codec, std::size_t n, std::vector<std::uint32_t> row_ends, Ledger* ledger = nullptr,
             SumStep* step = nullptr);

  bool exact() const { return codec_->exact(); }
  /// Bytes of the longest message of `count` entries or fewer.
  std::size_t bound(std::size_t count) const;
  OwnedMessage encode(const SparseVector& v) const;
  /// Throws CommunicationError for bytes that are no encoding, and for more values than `step` lets anybody send.
  /// Values that a quantiser has rounded to zero are left out.
  SparseVector decode(std::span<const std::byte> bytes) const;
  /// The same, and the message with its account, to be passed on.
  struct Received {
    SparseVector vector;
    OwnedMessage message;
  };
  Received receive(std::vector<std::byte> bytes) const;
  /// What the others will read, and what rounding keeps back: v = received + rest.
  struct Sent {
    OwnedMessage message;
    SparseVector received, rest;
  };
  Sent prepare(const SparseVector& v) const;

 private:
  /// Entries.
  using Header = std::uint64_t;
  EncodedSize read(std::span<const std::byte> bytes, SparseVector& v) const;

  const Codec* codec_;
  std::size_t n_;
  std::vector<std::uint32_t> row_ends_;
  Ledger* ledger_;
  SumStep* step_;
};

}  // namespace hearsay
