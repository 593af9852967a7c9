// Value events: those of all segments are one body, since one step counts them all.
//   SegmentHeader{first speaking segment, count = events, gain = speaking segments that say their gain, kind = 3}
//   | their gains, 2 bytes each | the codec's bytes: positions in the whole model and integers
// A segment speaks if one of its values is an event; one that does not takes no byte. With a header a segment headers
// alone would be a twentieth of the bytes of a small network.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.hpp"
#include "runtime/exchange/neighbour/link/link.hpp"

namespace hearsay {

// `take(s, first, end)`: events [first, end) of `indices_`, which are positions in the model, lie in segment s.
template <class Take>
void NeighbourLink::for_each_speaking(const Take& take) {
  std::size_t first = 0;
  for (SegmentId s = 0; s < layout_.count() && first < indices_.size(); ++s) {
    const std::size_t limit = layout_[s].offset + layout_[s].length;
    const auto end = std::lower_bound(indices_.begin() + static_cast<std::ptrdiff_t>(first), indices_.end(), limit);
    const auto stop = static_cast<std::size_t>(end - indices_.begin());
    if (stop > first) take(s, first, stop);
    first = stop;
  }
}

// Returns whether there was an event. What is sent counts for the segments by their numbers of events: bits of a coder
// belong to nobody.
bool NeighbourLink::append_events(OutgoingPacket& packet, std::span<const SegmentId> segments, FloatBlock& own_copy,
                                  const EdgeGains& gains) {
  std::vector<std::uint32_t> positions;
  std::vector<float> changes;
  std::vector<SegmentId> speaking;
  for (const SegmentId s : segments) {
    changes_->take(s, indices_, values_);
    if (indices_.empty()) continue;
    speaking.push_back(s);
    for (const std::uint32_t i : indices_) positions.push_back(static_cast<std::uint32_t>(layout_[s].offset + i));
    changes.insert(changes.end(), values_.begin(), values_.end());
  }
  if (positions.empty()) return false;
  const Codec& codec = *sparsifier_.codec;
  const std::size_t begin = packet.bytes.size(), said = gains.none() ? 0 : speaking.size() * bytes_of_gain;
  packet.bytes.resize(begin + sizeof(SegmentHeader) + said + codec.bound(positions.size(), layout_.size()));
  auto body = std::span(packet.bytes).subspan(begin + sizeof(SegmentHeader));
  for (std::size_t i = 0; i < speaking.size() && said > 0; ++i) {
    const auto gain = static_cast<std::uint16_t>(gains.bits(speaking[i]));
    std::memcpy(body.data() + i * bytes_of_gain, &gain, bytes_of_gain);
  }
  const EncodedSize size = codec.encode(positions, changes, layout_.size(), {}, body.subspan(said), step_);
  body = body.first(said + size.total());
  packet.bytes.resize(begin + sizeof(SegmentHeader) + body.size());
  const SegmentHeader header{.segment = speaking.front(),
                             .count = static_cast<std::uint32_t>(positions.size()),
                             .bytes = body.size(),
                             .gain = said / bytes_of_gain,
                             .kind = value_events};
  std::memcpy(packet.bytes.data() + begin, &header, sizeof header);
  codec.decode(body.subspan(said), positions.size(), layout_.size(), {}, indices_, values_);  // what will be read
  device_.add_entries(indices_, values_, own_copy.span());
  const auto share = [&](std::size_t events, std::size_t bytes) { return bytes * events / positions.size(); };
  for_each_speaking([&](SegmentId s, std::size_t first, std::size_t end) {
    note_events(sent_, s, first, end);
    packet.records.push_back({.segment = s,
                              .payload_bytes = share(end, size.payload_bytes) - share(first, size.payload_bytes),
                              .index_bytes = share(end, size.index_bytes) - share(first, size.index_bytes),
                              .values = end - first});
  });
  return true;
}

void NeighbourLink::note_events(EdgeNews& news, SegmentId s, std::size_t first, std::size_t end) {
  if (end - first == layout_[s].length) return news.add_all(s);
  std::vector<std::uint32_t> within(indices_.begin() + static_cast<std::ptrdiff_t>(first),
                                    indices_.begin() + static_cast<std::ptrdiff_t>(end));
  for (std::uint32_t& i : within) i -= static_cast<std::uint32_t>(layout_[s].offset);
  news.add(s, within);
}

void NeighbourLink::apply_events(std::size_t edge, const SegmentHeader& header, std::span<const std::byte> body) {
  Edge& link = links_[edge];
  const std::size_t speaking = header.gain, said = speaking * bytes_of_gain;
  if (said > body.size())
    throw CommunicationError(std::to_string(speaking) + " gains do not fit into " + std::to_string(body.size()) +
                             " bytes");
  sparsifier_.codec->decode(body.subspan(said), header.count, layout_.size(), {}, indices_, values_);
  std::size_t heard = 0;
  for_each_speaking([&](SegmentId, std::size_t, std::size_t) { ++heard; });
  if (speaking != (link.gains.none() ? 0 : heard))
    throw CommunicationError(std::to_string(speaking) + " gains of " + std::to_string(heard) + " parameters");
  std::vector<float> gains;
  for (std::size_t i = 0; i < speaking; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, body.data() + i * bytes_of_gain, bytes_of_gain);
    gains.push_back(gain_in(bits));
  }
  device_.add_entries(indices_, values_, link.theirs.span());
  std::size_t next = 0;
  for_each_speaking([&](SegmentId s, std::size_t first, std::size_t end) {
    link.news.note_end(s, other_end);
    if (!gains.empty()) link.gains.hear(s, gains[next++]);
    note_events(link.news, s, first, end);
  });
}

}  // namespace hearsay
