#pragma once
// How far a gradient moves the two ends of an edge, per segment: each end says it in its segments' headers, as the
// upper half of a float whose lower half is 0, and both go by the larger one: drift correction asks
// (runtime/exchange/neighbour/correction/gain.hpp).
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/state/archive.hpp"
#include "runtime/transport/packet.hpp"

namespace hearsay {

/// Empty while this rank has not said anything.
struct EdgeGains {
  bool none() const { return own.empty(); }
  /// What the next packet says, (segments).
  void set(std::span<const float> gains);
  /// Nothing has been said or heard.
  void forget();
  /// As a header has it.
  std::uint64_t bits(SegmentId s) const;
  void say(SegmentId s, float gain) { said[s] = gain, compare(s); }
  void hear(SegmentId s, float gain) { heard[s] = gain, compare(s); }
  void compare(SegmentId s) { larger[s] = std::max(said[s], heard[s]); }
  void state(Archive& archive, std::size_t segments);

  std::vector<float> own{};                                   ///< what the next packet says
  std::vector<float> said{}, said_next{}, heard{}, larger{};  ///< said_next: with a delay, of what mixes next
};

/// Throws CommunicationError for what is no gain. `bits`: as a header has it.
float gain_in(std::uint64_t bits);

}  // namespace hearsay
