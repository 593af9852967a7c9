#pragma once
// Byte-pair encoding: frequent words are one token, rare ones several, and every text can be written.
//   learning:  the pair of neighbouring tokens that is most frequent becomes a token, again and again
//   encoding:  in every word, join the two neighbours whose text is the token of the lowest number, until none is
// sennrich2016neural, Algorithm 1.
// Deviates from the paper in: it begins with bytes, not characters, so that nothing is unknown; a word has the blank
// before it instead of a mark for its end, and runs of punctuation are words, so that decoding gives the line back.
// Cost: learning takes one pass over the text and, for every token learnt, one over the words that it is in; encoding
// a word of n bytes takes O(n²) steps.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hearsay {

class BytePairs {
 public:
  static constexpr std::int64_t padding = 0, begin = 1, end = 2;  ///< tokens without a text
  static constexpr std::int64_t first_byte = 3, smallest = first_byte + 256;

  /// From the texts of all tokens by their numbers; the first ones are as above.
  explicit BytePairs(std::vector<std::string> tokens);
  /// Learns up to `most` ≥ `smallest` tokens in all, fewer where no pair occurs twice. Of equally frequent pairs the
  /// one with the lower numbers comes first.
  static BytePairs learnt(std::span<const std::string_view> lines, std::size_t most);

  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  const std::vector<std::string>& tokens() const { return tokens_; }
  /// A line's tokens, without begin and end.
  std::vector<std::int64_t> encode(std::string_view line) const;
  /// The line that was encoded, its blanks being single ones. Tokens without a text are left out.
  std::string decode(std::span<const std::int64_t> line) const;

  /// Calls `each(word)` for the words of a line, each with the blank that parts it from the one before. Blanks are
  /// spaces, tabs and carriage returns.
  static void for_words(std::string_view line, const std::function<void(std::string_view word)>& each);

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::uint64_t, std::int64_t> joined_;  // two tokens → the one with their text
};

}  // namespace hearsay
