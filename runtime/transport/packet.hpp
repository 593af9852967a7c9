#pragma once
// A packet: everything a rank sends to one neighbour at one iteration.
//
//   PacketHeader | SegmentHeader, positions, values | SegmentHeader, positions, values | …
//
// Parts are of any length, numbers in the machine's byte order (ranks of a job run on like machines).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/raw_bytes.hpp"
#include "runtime/transport/age.hpp"

namespace hearsay {

struct PacketHeader {
  std::uint64_t checksum;            ///< XXH3 of everything behind this word
  std::uint64_t bytes : 40;          ///< length of the packet, this header included; 0: go on at the start of the ring
  std::uint64_t sent : Stamp::bits;  ///< when
  std::int64_t iteration;            ///< k
  std::uint32_t sender;              ///< rank
  std::uint32_t segments;            ///< how many segments follow
};
static_assert(sizeof(PacketHeader) == 32);

struct SegmentHeader {
  std::uint32_t segment;
  std::uint32_t count;       ///< encoded values, whose positions have 32 bits; of a whole segment 0, its length says it
  std::uint64_t bytes : 40;  ///< positions and values behind this header
  /// Upper half of a float: how far a gradient moves the sender, where the ends of an edge alternate between two
  /// events of the edge; 0: it does not say.
  std::uint64_t gain : 16 = 0;
  /// 1: the segment's values as they are; 0: values, 2: changes encoded by the run's codec; 3: value events of this and
  /// later segments, `gain` being how many of them say theirs (runtime/exchange/neighbour/link/events.cpp).
  std::uint64_t kind : 8;
};
static_assert(sizeof(SegmentHeader) == 16);

/// What a packet carries of one segment, for the ledger.
struct SegmentRecord {
  static constexpr SegmentId none = UINT32_MAX;  ///< values of several segments: counted for the edge only
  SegmentId segment;
  std::size_t payload_bytes;
  std::size_t index_bytes;
  std::size_t values = 0;  ///< value events; 0 where values do not fire by themselves
};

/// A packet on its way out, with its account.
struct OutgoingPacket {
  RawBytes bytes;
  std::vector<SegmentRecord> records;
  std::shared_ptr<void> pin;  // what a device has to do with the memory of `bytes`; gone before the memory is
};
/// One packet may go to several neighbours; it is read-only from the moment it is posted.
using SharedPacket = std::shared_ptr<const OutgoingPacket>;

/// Lends packets and takes them back when their last reader is done, so that large blocks are allocated once.
class PacketPool {
 public:
  PacketPool() : state_(std::make_shared<State>()) {}
  std::shared_ptr<OutgoingPacket> lend();

 private:
  struct State {
    std::mutex mutex;
    std::vector<std::unique_ptr<OutgoingPacket>> free;
  };
  std::shared_ptr<State> state_;
};

/// Writes header fields and the checksum into the first 32 bytes of a finished packet.
void seal_packet(std::span<std::byte> packet, int sender, Iteration k, std::uint32_t segments, Stamp sent = {});
/// What stands where `sender` leaves the rest of the ring unused: a header alone, of no length. `k` is the next
/// packet's.
PacketHeader start_anew(int sender, Iteration k);
/// The header of a packet; `packet` has at least 32 bytes.
PacketHeader packet_header(std::span<const std::byte> packet);
/// Whether the checksum agrees with the bytes.
bool checksum_agrees(std::span<const std::byte> packet);

}  // namespace hearsay
