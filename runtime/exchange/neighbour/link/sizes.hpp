#pragma once
// What a segment becomes on its way, and what packets and copies take: bytes and work.
#include "runtime/exchange/neighbour/link/options.hpp"
#include "runtime/exchange/segments.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

/// Whether a segment of n values travels as it is: where nothing is selected and nothing rounded, and below
/// `dense_below`. A Sparsifier without a codec (`{}`) sends everything so.
bool travels_whole(const Sparsifier& sparsifier, std::size_t n);
/// Where single values are events, counted in one step for all: that of the codec. Nothing elsewhere.
std::optional<StepRule> step_rule_of(const Sparsifier& sparsifier);
/// Whether they are: those of all segments then travel as one body.
inline bool counts_in_steps(const Sparsifier& sparsifier) { return step_rule_of(sparsifier).has_value(); }
constexpr std::size_t bytes_of_gain = 2;  // in such a body
/// Bytes of a packet of these segments (segments[s] ≠ 0), at most.
std::size_t packet_bound(const Sparsifier& sparsifier, const Layout& layout, std::span<const std::uint8_t> segments);
/// Bytes of a packet in which a fraction of all values are events, in no order: a sign each, and what their positions
/// say, n H(fraction) bits.
double packet_of_events(const Layout& layout, double fraction);
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
