// What goes out: fired segments become packets.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/exchange/neighbour/link/link.hpp"

namespace hearsay {
namespace {

/// Room for a segment of at most `bytes` behind its header.
std::span<std::byte> append_body(RawBytes& packet, std::size_t bytes) {
  packet.resize(packet.size() + sizeof(SegmentHeader) + bytes);
  return std::span(packet).last(bytes);
}

/// The header of the body that begins at `body`.
void write_header(std::span<std::byte> body, const SegmentHeader& header) {
  std::memcpy(body.data() - sizeof header, &header, sizeof header);
}

/// The header of a body whose bytes are not yet known.
SegmentHeader header_of(SegmentId s, std::size_t count, std::uint64_t gain, Body kind) {
  return {.segment = s, .count = static_cast<std::uint32_t>(count), .bytes = 0, .gain = gain, .kind = kind};
}

/// Appends what `encode` writes into at most `room` bytes.
template <class Encode>
std::span<const std::byte> append_encoded(OutgoingPacket& packet, SegmentHeader header, std::size_t room,
                                          const Encode& encode) {
  auto body = append_body(packet.bytes, room);
  const EncodedSize size = encode(body);
  body = body.first(size.total());
  packet.bytes.resize(packet.bytes.size() - room + body.size());
  header.bytes = body.size();
  write_header(body, header);
  packet.records.push_back(
      {.segment = header.segment, .payload_bytes = size.payload_bytes, .index_bytes = size.index_bytes});
  return body;
}

/// into ← into or more, flag by flag.
void join(std::span<std::uint8_t> into, std::span<const std::uint8_t> more) {
  for (std::size_t s = 0; s < into.size(); ++s) into[s] = static_cast<std::uint8_t>(into[s] | more[s]);
}

}  // namespace

void NeighbourLink::send(Iteration k, std::span<const std::uint8_t> fired) {
  if (links_.empty()) return;
  starts_.begin(context_.ledger.since_start());
  if (lockstep()) {
    send_lockstep(k, fired);
  } else {
    const PhaseTimer timer(context_.ledger, Phase::encode);
    for (std::size_t e = 0; e < links_.size(); ++e) send_asynchronous(k, e, fired);
  }
  context_.engine.wake();
}

void NeighbourLink::send(Iteration k) {
  for (SegmentId s = 0; s < every_segment_.size(); ++s) context_.ledger.event(s);
  send(k, every_segment_);
}

// One packet, shared by all edges, if they all hold the same of this rank.
void NeighbourLink::send_lockstep(Iteration k, std::span<const std::uint8_t> fired) {
  const auto encoded = [&](std::size_t e) {
    const PhaseTimer timer(context_.ledger, Phase::encode);
    return encode(k, fired, own_copies_.empty() ? nullptr : &own_copy(e), links_[e].gains);
  };
  if (first_ < 0) first_ = k;
  const auto [first, end] = out_edges(k);
  if (options_.edge_copies) {
    for (std::size_t e = first; e < end; ++e) post_lockstep(e, encoded(e), fired);
    return;
  }
  const SharedPacket packet = encoded(0);
  if (options_.delay > 0) last_packet_ = packet;
  for (std::size_t e = first; e < end; ++e) post_lockstep(e, packet, fired);
}

void NeighbourLink::post_lockstep(std::size_t edge, const SharedPacket& packet, std::span<const std::uint8_t> fired) {
  if (!context_.neighbourhood.sends_to(edge)) return;
  wait_for([&] { return context_.mailbox.fits(edge, packet->bytes.size()); });
  post(edge, packet, fired);
}

void NeighbourLink::post(std::size_t edge, const SharedPacket& packet, std::span<const std::uint8_t> segments) {
  posted_bytes_ += packet->bytes.size();
  context_.mailbox.post(edge, packet);
  note_sent(edge, segments);
}

/// What this rank sends first where an edge begins, if there is room already.
void NeighbourLink::send_whole(Iteration k, std::size_t edge, std::span<const std::uint8_t> fired) {
  Edge& link = links_[edge];
  if (link.sent_whole) return join(link.pending, fired);
  if (!context_.mailbox.fits(edge, whole_model_bytes(layout_))) return;
  FloatBlock* const own = own_copies_.empty() ? nullptr : &own_copy(edge);
  auto packet = pool_.lend();
  make_room(*packet, whole_model_bytes(layout_));
  for (SegmentId s = 0; s < layout_.count(); ++s) append_whole(*packet, s, own, 0);
  device_.wait();
  seal_packet(packet->bytes, context_.neighbourhood.rank, k, static_cast<std::uint32_t>(layout_.count()),
              Stamp::of(context_.ledger.since_start()));
  context_.mailbox.post(edge, std::move(packet));
  link.sent_whole = true;
  agree_if_whole(edge);
}

void NeighbourLink::send_asynchronous(Iteration k, std::size_t edge, std::span<const std::uint8_t> fired) {
  Edge& link = links_[edge];
  if (context_.edges.lost(edge)) return;
  if (context_.edges.begins(edge)) return send_whole(k, edge, fired);
  wanted_.assign(link.pending.begin(), link.pending.end());
  join(wanted_, fired);
  const auto messages = static_cast<std::size_t>(std::ranges::count(wanted_, std::uint8_t{1}));
  if (messages == 0 && !options_.alternating) return;
  if (!may_send(edge) || !context_.mailbox.fits(edge, bound(wanted_))) {
    link.pending = wanted_;
    context_.ledger.defer(edge, messages);
    return;
  }
  post(edge, encode(k, wanted_, own_copies_.empty() ? nullptr : &own_copy(edge), link.gains), wanted_);
  std::ranges::fill(link.pending, std::uint8_t{0});
  link.sends_next = false;
}

void NeighbourLink::send_pending(Iteration k) {
  const PhaseTimer timer(context_.ledger, Phase::encode);
  const std::vector<std::uint8_t> none(layout_.count());
  for (std::size_t e = 0; e < links_.size(); ++e)
    if (owes(e)) send_asynchronous(k, e, none);
  context_.engine.wake();
}

bool NeighbourLink::owes() const {
  for (std::size_t e = 0; e < links_.size(); ++e)
    if (owes(e)) return true;
  return false;
}

bool NeighbourLink::owes(std::size_t edge) const {
  const auto& pending = links_[edge].pending;
  if (!context_.edges.mixes(edge) || !may_send(edge)) return false;
  return std::ranges::find(pending, std::uint8_t{1}) != pending.end();
}

bool NeighbourLink::may_send(std::size_t edge) const {
  return options_.alternating ? links_[edge].sends_next : context_.mailbox.under_way(edge) < options_.in_flight;
}

std::size_t NeighbourLink::bound(std::span<const std::uint8_t> segments) const {
  return packet_bound(sparsifier_, layout_, segments);
}

// The device fills in bodies until `wait`: they must not move.
void NeighbourLink::make_room(OutgoingPacket& packet, std::size_t bytes) {
  packet.bytes.resize(sizeof(PacketHeader));
  if (packet.bytes.capacity() < bytes) {
    packet.pin.reset();
    packet.bytes.reserve(device_.is_processor() ? bytes : std::max(bytes, whole_model_bytes(layout_)));
  }
  if (!packet.pin) packet.pin = device_.pin({packet.bytes.data(), packet.bytes.capacity()});
}

SharedPacket NeighbourLink::encode(Iteration k, std::span<const std::uint8_t> segments, FloatBlock* own_copy,
                                   const EdgeGains& gains) {
  auto packet = pool_.lend();
  const double density = changes_ || quantiser_ ? sparsifier_.density(context_.iterations_per_epoch.epoch(k)) : 1.0;
  make_room(*packet, bound(segments));
  // Changes that are counted in steps: only those that have left the dead zone; none while the step is not known.
  const auto rule = step_rule_of(sparsifier_);
  const float zone = rule ? dead_zone(*rule, step_) : 0.0F;
  std::vector<SegmentId> selected;
  for (SegmentId s = 0; s < segments.size(); ++s) {
    if (segments[s] == 0) continue;
    sent_.clear(s);
    const Segment& segment = layout_[s];
    if (travels_whole(sparsifier_, segment.length)) {
      sent_.add_all(s);
      append_whole(*packet, s, own_copy, gains.bits(s));
    } else if (!rule || zone > 0.0F) {
      const auto x = context_.replica.values.segment(segment), copy = own_copy->segment(segment);
      const std::size_t kept = kept_count(density, segment.length);
      if (quantiser_)
        quantiser_->begin(s, x, copy, kept);
      else
        changes_->begin(s, x, copy, kept, zone);
      selected.push_back(s);
    }
  }
  if (quantiser_) quantiser_->launch();
  if (changes_) changes_->launch();
  device_.wait();
  std::size_t bodies = packet->records.size();
  if (rule) {
    bodies += append_events(*packet, selected, *own_copy, gains) ? 1 : 0;
  } else {
    for (const SegmentId s : selected) {
      if (quantiser_)
        append_quantised(*packet, s, gains.bits(s));
      else
        append_selected(*packet, s, *own_copy, gains.bits(s));
    }
    bodies += selected.size();
  }
  seal_packet(packet->bytes, context_.neighbourhood.rank, k, static_cast<std::uint32_t>(bodies),
              Stamp::of(context_.ledger.since_start()));
  return packet;
}

void NeighbourLink::append_whole(OutgoingPacket& packet, SegmentId s, FloatBlock* own_copy, std::uint64_t gain) {
  const std::span<const float> values = context_.replica.values.segment(layout_[s]);
  const auto body = append_body(packet.bytes, values.size_bytes());
  write_header(body, {.segment = s, .count = 0, .bytes = values.size_bytes(), .gain = gain, .kind = whole_segment});
  device_.fetch(values, body);
  packet.records.push_back({.segment = s, .payload_bytes = values.size_bytes(), .index_bytes = 0});
  if (own_copy != nullptr) device_.copy(values, own_copy->segment(layout_[s]));
}

// The positions that changed most since j last heard of them travel; the rest stays owed, as the difference between x
// and the copy, and so does what a quantiser rounds off. Exact codecs carry the values themselves, so that copies are x
// to the last bit; others the changes, which are small where values are not, so that a rounded copy comes ever closer.
void NeighbourLink::append_selected(OutgoingPacket& packet, SegmentId s, FloatBlock& own_copy, std::uint64_t gain) {
  const Codec& codec = *sparsifier_.codec;
  const std::size_t n = layout_[s].length;
  changes_->take(s, indices_, values_);
  const auto body = append_encoded(
      packet, header_of(s, indices_.size(), gain, body_of(sparsifier_, n)), codec.bound(indices_.size(), n),
      [&](std::span<std::byte> out) { return codec.encode(indices_, values_, n, row_ends_[s], out); });
  if (!codec.exact()) decode_selected(s, indices_.size(), body);  // what the receiver will read
  move_copy(own_copy.segment(layout_[s]));
  note_positions(sent_, s, indices_.size());
}

// The same where the device has written the values, and has moved the copy.
void NeighbourLink::append_quantised(OutgoingPacket& packet, SegmentId s, std::uint64_t gain) {
  const Codec& codec = *sparsifier_.codec;
  const std::size_t n = layout_[s].length;
  const auto payload = quantiser_->take(s, indices_);
  const std::size_t count = indices_.empty() ? n : indices_.size();
  append_encoded(packet, header_of(s, count, gain, body_of(sparsifier_, n)), codec.bound(count, n),
                 [&](std::span<std::byte> out) { return codec.encode_positions(indices_, count, n, payload, out); });
  note_positions(sent_, s, count);
}

void NeighbourLink::note_sent(std::size_t edge, std::span<const std::uint8_t> segments) {
  Edge& link = links_[edge];
  for (SegmentId s = 0; s < segments.size(); ++s) {
    if (segments[s] == 0) continue;
    if (sent_.crossed[s] == nothing) continue;  // no value of it was an event
    EdgeNews& news = options_.delay > 0 ? link.next : link.news;
    news.add(s, sent_);
    news.note_end(s, own_end);
    if (link.gains.none()) continue;
    if (options_.delay == 0)
      link.gains.say(s, link.gains.own[s]);
    else
      link.gains.said_next[s] = link.gains.own[s];
  }
}

}  // namespace hearsay
