// What comes in on a rank's edges: packets are checked, and become copies x̂_j.
#include <cstring>
#include <stdexcept>
#include <string>

#include "runtime/algorithms/neighbour/link.hpp"
#include "runtime/base/error.hpp"

namespace hearsay {
namespace {

template <class T>
T read_struct(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

void NeighbourLink::receive(Iteration k) {
  if (k < options_.delay) return;
  const auto [first, end] = in_edges(k);
  for (std::size_t e = first; e < end; ++e) {
    if (lockstep()) {
      wait_for([&] { return context_.mailbox.front(e).has_value(); });
      apply_front(e);
      if (links_[e].newest_packet != k - options_.delay)
        throw std::logic_error("lockstep: a packet of another iteration arrived");
    } else {
      while (context_.mailbox.front(e)) apply_front(e);
    }
    context_.ledger.mixed(e, k - links_[e].newest_packet);
  }
}

void NeighbourLink::apply_front(std::size_t edge) {
  const PhaseTimer timer(context_.ledger, Phase::mix);
  apply(edge, *context_.mailbox.front(edge));
  context_.mailbox.pop(edge);
}

void NeighbourLink::apply(std::size_t edge, std::span<const std::byte> packet) {
  const PacketHeader header = packet_header(packet);
  links_[edge].newest_packet = header.iteration;
  try {
    apply_segments(edge, packet.subspan(sizeof header), header.segments);
  } catch (const CommunicationError& error) {
    throw CommunicationError("the packet of iteration " + std::to_string(header.iteration) + " from rank " +
                             std::to_string(header.sender) + " to rank " + std::to_string(context_.neighbourhood.rank) +
                             " does not fit this rank's model: " + error.what() +
                             ". The ranks run different models, configurations or versions");
  }
}

void NeighbourLink::apply_segments(std::size_t edge, std::span<const std::byte> rest, std::uint32_t segments) {
  for (std::uint32_t i = 0; i < segments; ++i) {
    if (rest.size() < sizeof(SegmentHeader)) throw CommunicationError("it ends before its last segment");
    const auto header = read_struct<SegmentHeader>(rest);
    rest = rest.subspan(sizeof header);
    if (header.segment >= layout_.count()) {
      throw CommunicationError("segment " + std::to_string(header.segment) + " of " + std::to_string(layout_.count()));
    }
    if (header.bytes > rest.size()) throw CommunicationError("a segment is longer than its packet");
    apply_segment(edge, header, rest.first(header.bytes));
    rest = rest.subspan(header.bytes);
  }
  if (!rest.empty()) throw CommunicationError(std::to_string(rest.size()) + " bytes behind its last segment");
}

void NeighbourLink::apply_segment(std::size_t edge, const SegmentHeader& header, std::span<const std::byte> body) {
  Edge& link = links_[edge];
  const auto copy = link.theirs.segment(layout_[header.segment]);
  link.moved[header.segment] = 1;
  const Body agreed = body_of(sparsifier_, copy.size());
  const auto name = [&] { return "segment '" + layout_[header.segment].name + "'"; };
  if (header.dense != agreed) {
    throw CommunicationError(name() + " is of kind " + std::to_string(header.dense) + " instead of " +
                             std::to_string(agreed));
  }
  if (agreed != whole_segment) {
    decode_selected(header.segment, header.count, body);
    move_copy(copy);
    return;
  }
  if (body.size() != copy.size_bytes()) {
    throw CommunicationError(name() + " has " + std::to_string(body.size()) + " bytes instead of " +
                             std::to_string(copy.size_bytes()));
  }
  device_.put(body, copy);
}

}  // namespace hearsay
