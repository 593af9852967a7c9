#pragma once
// The α-β model: a message of w words of 4 bytes takes α + w β seconds. α and β are measured; what a collective should
// then take is computed from the messages and words of the rank that sends or receives most, one after the other.
//
// What ranks share, links, switches and cores, is in two factors for bytes that travel while others do (network.hpp).
#include <bit>

namespace hearsay {

inline constexpr double bytes_per_word = 4.0;
/// ⌈log2 P⌉.
inline double rounds(int ranks) { return static_cast<double>(std::bit_width(static_cast<unsigned>(ranks) - 1U)); }

struct AlphaBeta {
  double alpha_s = 0.0;  ///< of a message
  double beta_s = 0.0;   ///< of a word of 4 bytes
};

/// What the busiest rank does, one thing after the other.
struct CommunicationCost {
  double messages = 0.0, words = 0.0;
  double seconds(const AlphaBeta& model) const { return messages * model.alpha_s + words * model.beta_s; }
};

inline CommunicationCost operator+(const CommunicationCost& a, const CommunicationCost& b) {
  return {.messages = a.messages + b.messages, .words = a.words + b.words};
}

}  // namespace hearsay
