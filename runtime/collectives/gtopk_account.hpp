#pragma once
// Book-keeping that tree and butterfly share: what becomes of everything that a merge cuts off. Private to them.
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/collectives/gtopk.hpp"

namespace hearsay {

class GTopKAccount {
 public:
  GTopKAccount(const SparseVector& own, const SparseWire& wire, const GTopKOptions& options);

  /// sum of both, cut to k. `share` of `shares` members hold the same sum; each entry cut off is booked by one of them.
  SparseVector merge(const SparseVector& lower, const SparseVector& higher, int share, int shares);
  /// Books what rounding has kept back from a message; shares as above.
  void rounded(const SparseVector& rest, int share, int shares);
  /// The positions of the own contribution that no merge on its path has cut off (`owner`).
  void survivors(std::span<const std::uint32_t> positions);
  GTopKResult finish(SparseVector result);

 private:
  const SparseVector& own_;
  GTopKOptions options_;
  Truncation truncation_;
  SparseVector cut_off_;  // booked here: by merges; under `published` magnitudes
  SparseVector rounded_;  // by rounding
  std::vector<std::uint32_t> survivors_;
};

/// What two ascending lists have in common.
std::vector<std::uint32_t> intersection(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b);
/// One bit for each of `asked` (ascending): whether it is in `alive` (ascending).
std::vector<std::byte> flags_of(std::span<const std::uint32_t> asked, std::span<const std::uint32_t> alive);

/// A result for a folded or lower member: `flags` in front of the wire's bytes.
OwnedMessage with_flags(std::span<const std::byte> flags, const OwnedMessage& message);
/// The same as it is received from rank `from`: which of the positions `sent` are alive (`owner` only), and the
/// result's bytes. Throws CommunicationError if the flags are not whole.
struct Told {
  std::vector<std::uint32_t> alive;
  std::vector<std::byte> result;
};
Told read_told(std::vector<std::byte> bytes, std::span<const std::uint32_t> sent, ResidualRule rule, int from);

}  // namespace hearsay
