// What goes out on a rank's edges: fired segments become packets, and what a full ring has no room for stays owed.
#include "runtime/algorithms/neighbour/link.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

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

/// into ← into or more, flag by flag.
void join(std::span<std::uint8_t> into, std::span<const std::uint8_t> more) {
  for (std::size_t s = 0; s < into.size(); ++s) into[s] = static_cast<std::uint8_t>(into[s] | more[s]);
}

/// Ends of the rows of a segment, its first dimension; a vector is one row, not rows of one value.
std::vector<std::uint32_t> row_ends(const Segment& segment) {
  const auto rows =
      static_cast<std::size_t>(segment.shape.size() < 2 ? 1 : std::max<std::int64_t>(segment.shape[0], 1));
  std::vector<std::uint32_t> ends(rows);
  for (std::size_t r = 0; r < rows; ++r) ends[r] = static_cast<std::uint32_t>(segment.length / rows * (r + 1));
  return ends;
}

FloatBlock copy_of(const FloatBlock& block, Device& device) {
  FloatBlock copy = device.block(block.size());
  device.copy(block.span(), copy.span());
  return copy;
}

}  // namespace

bool travels_whole(const Sparsifier& sparsifier, std::size_t n) {
  if (!sparsifier.codec || n < sparsifier.dense_below) return true;
  return sparsifier.dense && sparsifier.codec->exact();
}

Body body_of(const Sparsifier& sparsifier, std::size_t n) {
  if (travels_whole(sparsifier, n)) return whole_segment;
  return sparsifier.codec->exact() ? encoded_values : encoded_changes;
}

std::size_t segment_bound(const Sparsifier& sparsifier, std::size_t n) {
  if (travels_whole(sparsifier, n)) return sizeof(SegmentHeader) + n * sizeof(float);
  const std::size_t k = kept_count(sparsifier.largest_density(), n);
  return sizeof(SegmentHeader) + sparsifier.codec->bound(sparsifier.selector->most(k, n), n);
}

NeighbourLink::NeighbourLink(const ExchangeContext& context, Options options, Sparsifier sparsifier)
    : context_(context),
      device_(context.device()),
      layout_(context.replica.layout),
      options_(options),
      sparsifier_(std::move(sparsifier)) {
  const FloatBlock& initial = context.replica.values;
  const std::size_t degree = context.neighbourhood.neighbours.size();
  for (std::size_t e = 0; e < degree; ++e) {
    links_.push_back({.theirs = copy_of(initial, device_),
                      .pending = std::vector<std::uint8_t>(layout_.count()),
                      .moved = std::vector<std::uint8_t>(layout_.count())});
  }
  const auto segments = layout_.segments();
  if (sparsifier_.codec && sparsifier_.codec->by_rows())
    std::ranges::transform(segments, std::back_inserter(row_ends_), row_ends);
  row_ends_.resize(layout_.count());
  const auto whole = [&](const Segment& s) { return travels_whole(sparsifier_, s.length); };
  const bool all_whole = std::ranges::all_of(segments, whole);
  if (!all_whole) changes_ = device_.select_changes(layout_, sparsifier_);
  if (options_.keep_own_copies || !all_whole) {
    const std::size_t copies = lockstep() ? std::min<std::size_t>(degree, 1) : degree;
    for (std::size_t c = 0; c < copies; ++c) own_copies_.push_back(copy_of(initial, device_));
  }
  for (std::size_t e = 0; e < degree; ++e) {
    const Neighbourhood& row = context.neighbourhood;
    edges_.push_back({.weight = static_cast<float>(row.turns.empty() ? row.weights[e] : row.turn_weight),
                      .theirs = links_[e].theirs.span(),
                      .ours = own_copies_.empty() ? std::span<const float>{} : own_copy(e).span(),
                      .moved = links_[e].moved});
  }
}

void NeighbourLink::send(Iteration k, std::span<const std::uint8_t> fired) {
  if (links_.empty()) return;
  if (lockstep()) {
    send_lockstep(k, fired);
  } else {
    const PhaseTimer timer(context_.ledger, Phase::encode);
    for (std::size_t e = 0; e < links_.size(); ++e) send_asynchronous(k, e, fired);
  }
  context_.engine.wake();
}

void NeighbourLink::mixed() {
  for (Edge& link : links_) std::ranges::fill(link.moved, std::uint8_t{0});
}

// One packet, shared by all edges: in lockstep they all hold the same of this rank.
void NeighbourLink::send_lockstep(Iteration k, std::span<const std::uint8_t> fired) {
  SharedPacket packet;
  {
    const PhaseTimer timer(context_.ledger, Phase::encode);
    packet = encode(k, fired, own_copies_.empty() ? nullptr : &own_copies_.front());
  }
  const auto [first, end] = out_edges(k);
  for (std::size_t e = first; e < end; ++e) {
    wait_for([&] { return context_.mailbox.fits(e, packet->bytes.size()); });
    context_.mailbox.post(e, packet);
    join(links_[e].moved, fired);
  }
}

void NeighbourLink::send_asynchronous(Iteration k, std::size_t edge, std::span<const std::uint8_t> fired) {
  Edge& link = links_[edge];
  wanted_.assign(link.pending.begin(), link.pending.end());
  join(wanted_, fired);
  const auto messages = static_cast<std::size_t>(std::ranges::count(wanted_, std::uint8_t{1}));
  if (messages == 0) return;
  if (!context_.mailbox.fits(edge, bound(wanted_))) {
    link.pending = wanted_;
    context_.ledger.defer(edge, messages);
    return;
  }
  context_.mailbox.post(edge, encode(k, wanted_, own_copies_.empty() ? nullptr : &own_copy(edge)));
  std::ranges::fill(link.pending, std::uint8_t{0});
  join(link.moved, wanted_);
}

std::size_t NeighbourLink::bound(std::span<const std::uint8_t> segments) const {
  std::size_t bytes = sizeof(PacketHeader);
  for (SegmentId s = 0; s < segments.size(); ++s) {
    if (segments[s] != 0) bytes += segment_bound(sparsifier_, layout_[s].length);
  }
  return bytes;
}

SharedPacket NeighbourLink::encode(Iteration k, std::span<const std::uint8_t> segments, FloatBlock* own_copy) {
  auto packet = pool_.lend();
  const double epoch = static_cast<double>(k) / static_cast<double>(context_.iterations_per_epoch);
  const double density = changes_ ? sparsifier_.density(epoch) : 1.0;
  packet->bytes.resize(sizeof(PacketHeader));
  packet->bytes.reserve(bound(segments));  // the device fills in bodies until `wait`: they must not move
  std::vector<SegmentId> selected;
  for (SegmentId s = 0; s < segments.size(); ++s) {
    if (segments[s] == 0) continue;
    const Segment& segment = layout_[s];
    if (travels_whole(sparsifier_, segment.length)) {
      append_whole(*packet, s, own_copy);
    } else {
      changes_->begin(s, context_.replica.values.segment(segment), own_copy->segment(segment),
                      kept_count(density, segment.length));
      selected.push_back(s);
    }
  }
  device_.wait();
  for (const SegmentId s : selected) append_selected(*packet, s, *own_copy);
  seal_packet(packet->bytes, context_.neighbourhood.rank, k, static_cast<std::uint32_t>(packet->records.size()));
  return packet;
}

void NeighbourLink::append_whole(OutgoingPacket& packet, SegmentId s, FloatBlock* own_copy) {
  const std::span<const float> values = context_.replica.values.segment(layout_[s]);
  const auto body = append_body(packet.bytes, values.size_bytes());
  write_header(body, {.segment = s,
                      .count = static_cast<std::uint32_t>(values.size()),
                      .bytes = static_cast<std::uint32_t>(values.size_bytes()),
                      .dense = whole_segment});
  device_.fetch(values, body);
  packet.records.push_back({.segment = s, .payload_bytes = values.size_bytes(), .index_bytes = 0});
  if (own_copy != nullptr) device_.copy(values, own_copy->segment(layout_[s]));
}

// The positions that changed most since j last heard of them travel; the rest stays owed, as the difference between x
// and the copy, and so does what a quantiser rounds off. Exact codecs carry the values themselves, so that copies are x
// to the last bit; others the changes, which are small where values are not, so that a rounded copy comes ever closer.
void NeighbourLink::append_selected(OutgoingPacket& packet, SegmentId s, FloatBlock& own_copy) {
  const Codec& codec = *sparsifier_.codec;
  const std::size_t n = layout_[s].length;
  changes_->take(s, indices_, values_);
  const std::size_t room = codec.bound(indices_.size(), n);
  auto body = append_body(packet.bytes, room);
  const EncodedSize size = codec.encode(indices_, values_, n, row_ends_[s], body);
  body = body.first(size.total());
  packet.bytes.resize(packet.bytes.size() - room + body.size());
  write_header(body, {.segment = s,
                      .count = static_cast<std::uint32_t>(indices_.size()),
                      .bytes = static_cast<std::uint32_t>(body.size()),
                      .dense = body_of(sparsifier_, n)});
  packet.records.push_back({.segment = s, .payload_bytes = size.payload_bytes, .index_bytes = size.index_bytes});
  if (!codec.exact()) decode_selected(s, indices_.size(), body);  // what the receiver will read
  move_copy(own_copy.segment(layout_[s]));
}

void NeighbourLink::decode_selected(SegmentId s, std::size_t count, std::span<const std::byte> body) {
  sparsifier_.codec->decode(body, count, layout_[s].length, row_ends_[s], indices_, values_);
}

// The same on both ends of an edge: their copies agree bit for bit.
void NeighbourLink::move_copy(std::span<float> copy) {
  if (sparsifier_.codec->exact())
    device_.set_entries(indices_, values_, copy);
  else
    device_.add_entries(indices_, values_, copy);
}

void NeighbourLink::wait_for(const std::function<bool()>& ready) {
  if (ready()) return;
  const PhaseTimer timer(context_.ledger, Phase::wait);
  context_.engine.wait_until([&] { return ready() || context_.interrupted(); });
  if (!ready()) throw WaitInterrupted();
}

}  // namespace hearsay
