#pragma once
// What a packet of a model's segments looks like: headers, each with a body behind it.
#include <cstring>
#include <span>
#include <string>

#include "base/error.hpp"
#include "runtime/replica/parameters.hpp"
#include "runtime/transport/packet.hpp"

namespace hearsay {

/// What is said of a packet that came whole and cannot be what was agreed: names both ranks. `why`: what of it does not
/// fit.
inline CommunicationError misfit(const PacketHeader& header, int receiver, const std::string& why) {
  return CommunicationError("the packet of iteration " + std::to_string(header.iteration) + " from rank " +
                            std::to_string(header.sender) + " to rank " + std::to_string(receiver) +
                            " does not fit this rank's model: " + why +
                            ". The ranks run different models, configurations or versions");
}

/// What stands behind a SegmentHeader: its field `kind`.
enum Body : std::uint32_t { encoded_values = 0, whole_segment = 1, encoded_changes = 2, value_events = 3 };

/// Hands over the segments of a packet, `take(header, body)`. Throws CommunicationError for what is no packet of this
/// layout's.
template <class Take>
void for_each_segment(std::span<const std::byte> packet, const Layout& layout, const Take& take) {
  const std::uint32_t segments = packet_header(packet).segments;
  auto rest = packet.subspan(sizeof(PacketHeader));
  for (std::uint32_t i = 0; i < segments; ++i) {
    if (rest.size() < sizeof(SegmentHeader)) throw CommunicationError("it ends before its last parameter");
    SegmentHeader header;
    std::memcpy(&header, rest.data(), sizeof header);
    rest = rest.subspan(sizeof header);
    if (header.segment >= layout.count()) {
      throw CommunicationError("parameter " + std::to_string(header.segment) + " of " + std::to_string(layout.count()));
    }
    if (header.bytes > rest.size()) throw CommunicationError("a parameter is longer than its packet");
    take(header, rest.first(header.bytes));
    rest = rest.subspan(header.bytes);
  }
  if (!rest.empty()) throw CommunicationError(std::to_string(rest.size()) + " bytes after its last parameter");
}

/// Bytes of a packet that is all of a model: every segment, as it is, in order.
inline std::size_t whole_model_bytes(const Layout& layout) {
  return sizeof(PacketHeader) + layout.count() * sizeof(SegmentHeader) + layout.size() * sizeof(float);
}

/// block ← the model in a packet that is all of one. Throws CommunicationError, naming `receiver`, if it is not.
inline void take_whole_model(std::span<const std::byte> packet, const Layout& layout, int receiver, Device& device,
                             std::span<float> block) {
  SegmentId next = 0;
  try {
    for_each_segment(packet, layout, [&](const SegmentHeader& header, std::span<const std::byte> body) {
      const Segment& segment = layout[header.segment];
      if (header.segment != next++ || header.kind != whole_segment || body.size() != segment.length * sizeof(float))
        throw CommunicationError("parameter '" + segment.name + "' is not what a whole model has there");
      device.put(body, block.subspan(segment.offset, segment.length));
    });
    if (next != layout.count()) throw CommunicationError("it is not a whole model");
  } catch (const CommunicationError& error) {
    throw misfit(packet_header(packet), receiver, error.what());
  }
}

}  // namespace hearsay
