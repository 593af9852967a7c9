#pragma once
// What a segment becomes on its way, and what packets and copies take: bytes and work.
#include "runtime/exchange/neighbour/link/options.hpp"
#include "runtime/exchange/segments.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

/// Whether a segment of n values travels as it is: where nothing is selected and nothing rounded, and below
/// `dense_below`. A Sparsifier without a codec (`{}`) sends everything so.
bool travels_whole(const Sparsifier& sparsifier, std::size_t n);
Body body_of(const Sparsifier& sparsifier, std::size_t n);
/// Bytes that one fired segment of n values takes at most, its header included.
std::size_t segment_bound(const Sparsifier& sparsifier, std::size_t n);

/// What an iteration of a neighbour exchange costs: packets of at most `packet_bound` bytes, of whose segments a
/// fraction fires; `selection` is the work of choosing what of them travels, if all fire; `own_copy`: whether mixing
/// reads what neighbours hold of this rank.
ExchangeCost link_cost(const Layout& layout, const Topology& topology, std::size_t packet_bound,
                       const LocalWork& selection, bool own_copy, const CostAssumptions& assumptions);

/// Bytes of a link's copies and of the packets that it builds, each of at most `packet_bound` bytes.
std::size_t link_bytes(const Layout& layout, const LinkOptions& options, const Sparsifier& sparsifier,
                       std::size_t neighbours, std::size_t packet_bound);

}  // namespace hearsay
