#pragma once
// Texts from a grammar whose entropy is known: what a model can learn of them, and not a bit more.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hearsay {

struct GeneratedText {
  std::string text;                     ///< documents with a blank line after each, cut off at the wanted size
  std::vector<std::uint32_t> topics{};  ///< of each document, in [0, grammar_topics)
  double bits = 0.0;                    ///< −log₂ of the probability of all draws that made it
};

inline constexpr std::uint32_t grammar_topics = 8;

/// `size` characters; equal seeds give equal texts, and a longer one begins with a shorter one.
GeneratedText generate_text(std::size_t size, std::uint64_t seed);

/// One sentence, of a topic that is drawn too: "the small sailors follow a boat."
std::string generate_sentence(std::uint64_t seed);

/// Bits a character that no model can do without, given all that comes before: the entropy of a document divided by
/// its mean length. Its texts have one derivation each, so it is exact.
double grammar_entropy();

}  // namespace hearsay
