// What comes in: packets become copies of the neighbours.
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "runtime/exchange/neighbour/link/link.hpp"

namespace hearsay {

void NeighbourLink::receive(Iteration k) {
  if (lockstep() && k - options_.delay < first_) return;  // nobody has sent that
  const auto [first, end] = in_edges(k);
  for (std::size_t e = first; e < end; ++e) {
    if (context_.edges.begins(e) && may_take(e)) hear_whole(e, *context_.mailbox.front(e));
    if (!context_.neighbourhood.hears(e) || !context_.edges.mixes(e)) continue;
    if (lockstep()) {
      wait_for([&] { return context_.mailbox.front(e).has_value(); });
      apply_front(e);
      if (links_[e].newest_packet != k - options_.delay)
        throw std::logic_error("lockstep: a packet of another iteration arrived");
    } else {
      std::uint32_t segments = 0;
      while (context_.mailbox.front(e)) segments += apply_front(e);
      if (segments == 0 && !options_.repeats) continue;
    }
    note_age(e, k);
  }
}

bool NeighbourLink::has_come() const {
  for (std::size_t e = 0; e < links_.size(); ++e)
    if (context_.edges.mixes(e) && context_.mailbox.front(e)) return true;
  return false;
}

void NeighbourLink::take_arrived() {
  if (lockstep()) return;
  for (std::size_t e = 0; e < links_.size(); ++e) {
    if (context_.edges.begins(e) && may_take(e)) hear_whole(e, *context_.mailbox.front(e));
    while (context_.edges.mixes(e) && context_.mailbox.front(e)) apply_front(e);
  }
}

/// On an edge that begins: the other end's model. What comes behind it is of an edge that has begun.
bool NeighbourLink::may_take(std::size_t edge) const {
  return !links_[edge].heard_whole && context_.mailbox.front(edge).has_value();
}

void NeighbourLink::hear_whole(std::size_t edge, std::span<const std::byte> packet) {
  const PhaseTimer timer(context_.ledger, Phase::mix);
  Edge& link = links_[edge];
  const PacketHeader header = packet_header(packet);
  take_whole_model(packet, layout_, context_.neighbourhood.rank, device_, link.theirs.span());
  link.newest_packet = header.iteration;
  link.newest_sent = {static_cast<std::uint32_t>(header.sent)};
  link.heard_whole = true;
  agree_if_whole(edge);
  device_.wait();  // it may read the mailbox by itself
  context_.mailbox.pop(edge);
}

// Returns how many segments the packet has.
std::uint32_t NeighbourLink::apply_front(std::size_t edge) {
  const PhaseTimer timer(context_.ledger, Phase::mix);
  const std::uint32_t segments = apply(edge, *context_.mailbox.front(edge));
  device_.wait();  // it may read the mailbox by itself
  context_.mailbox.pop(edge);
  return segments;
}

std::uint32_t NeighbourLink::apply(std::size_t edge, std::span<const std::byte> packet) {
  const PacketHeader header = packet_header(packet);
  links_[edge].newest_packet = header.iteration;
  links_[edge].newest_sent = {static_cast<std::uint32_t>(header.sent)};
  try {
    if (options_.alternating && std::exchange(links_[edge].sends_next, true))
      throw CommunicationError("its edge alternates, and the sender's last packet has no answer yet");
    heard_.clear(), heard_positions_.clear();
    for_each_segment(packet, layout_, [&](const SegmentHeader& segment, std::span<const std::byte> body) {
      apply_segment(edge, segment, body);
    });
    if (!heard_.empty()) quantiser_->add(heard_, heard_positions_);
  } catch (const CommunicationError& error) {
    throw misfit(header, context_.neighbourhood.rank, error.what());
  }
  return header.segments;
}

void NeighbourLink::apply_segment(std::size_t edge, const SegmentHeader& header, std::span<const std::byte> body) {
  Edge& link = links_[edge];
  const auto copy = link.theirs.segment(layout_[header.segment]);
  const Body agreed = body_of(sparsifier_, copy.size());
  const auto name = [&] { return "parameter '" + layout_[header.segment].name + "'"; };
  if (header.kind != agreed) {
    throw CommunicationError(name() + " is of kind " + std::to_string(header.kind) + " instead of " +
                             std::to_string(agreed));
  }
  if (agreed == value_events) return apply_events(edge, header, body);
  link.news.note_end(header.segment, other_end);
  if (!link.gains.none()) link.gains.hear(header.segment, gain_in(header.gain));
  if (agreed != whole_segment) {
    if (quantiser_) {
      hear_payload(header, body, copy);
    } else {
      decode_selected(header.segment, header.count, body);
      move_copy(copy);
    }
    note_positions(link.news, header.segment, header.count);
    return;
  }
  if (body.size() != copy.size_bytes()) {
    throw CommunicationError(name() + " has " + std::to_string(body.size()) + " bytes instead of " +
                             std::to_string(copy.size_bytes()));
  }
  device_.put(body, copy);
  link.news.add_all(header.segment);
}

// A sender has every segment once, in their order; the device adds all of them together.
void NeighbourLink::hear_payload(const SegmentHeader& header, std::span<const std::byte> body, std::span<float> copy) {
  if (!heard_.empty() && copy.data() < heard_.back().copy.data() + heard_.back().copy.size())
    throw CommunicationError("parameter '" + layout_[header.segment].name + "' is behind one that comes after it");
  const bool all = header.count == copy.size();
  const std::size_t index_bytes =
      all ? 0 : sparsifier_.codec->decode_positions(body, header.count, copy.size(), indices_);
  heard_.push_back({.copy = copy, .count = header.count, .bytes = body.subspan(index_bytes)});
  if (!all) heard_positions_.insert(heard_positions_.end(), indices_.begin(), indices_.end());
}

}  // namespace hearsay
