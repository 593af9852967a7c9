#include "runtime/transport/packet.hpp"

#include <cstring>

#include "base/hash.hpp"

namespace hearsay {
namespace {

std::uint64_t checksum(std::span<const std::byte> packet) { return xxh3(packet.subspan(sizeof(std::uint64_t))); }

}  // namespace

std::shared_ptr<OutgoingPacket> PacketPool::lend() {
  std::unique_ptr<OutgoingPacket> packet;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->free.empty()) {
      packet = std::move(state_->free.back());
      state_->free.pop_back();
    }
  }
  if (!packet) packet = std::make_unique<OutgoingPacket>();
  packet->records.clear();
  return {packet.release(), [state = state_](OutgoingPacket* returned) {
            const std::lock_guard lock(state->mutex);
            state->free.emplace_back(returned);
          }};
}

void seal_packet(std::span<std::byte> packet, int sender, Iteration k, std::uint32_t segments, Stamp sent) {
  PacketHeader header{.checksum = 0,
                      .bytes = packet.size(),
                      .sent = sent.count,
                      .iteration = k,
                      .sender = static_cast<std::uint32_t>(sender),
                      .segments = segments};
  std::memcpy(packet.data(), &header, sizeof header);
  header.checksum = checksum(packet);
  std::memcpy(packet.data(), &header.checksum, sizeof header.checksum);
}

PacketHeader start_anew(int sender, Iteration k) {
  PacketHeader header{.checksum = 0,
                      .bytes = 0,
                      .sent = 0,
                      .iteration = k,
                      .sender = static_cast<std::uint32_t>(sender),
                      .segments = 0};
  header.checksum = checksum(std::as_bytes(std::span(&header, 1)));
  return header;
}

PacketHeader packet_header(std::span<const std::byte> packet) {
  PacketHeader header;
  std::memcpy(&header, packet.data(), sizeof header);
  return header;
}

bool checksum_agrees(std::span<const std::byte> packet) { return packet_header(packet).checksum == checksum(packet); }

}  // namespace hearsay
