#pragma once
// Texts as sequences of tokens of which every next one is to be foretold: example i has the tokens t … t+T−1 for inputs
// and t+1 … t+T for targets.
//
// A text stays where it is. An example is remembered by where it begins (8 bytes) and is cut into tokens whenever it is
// wanted.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apps/datasets/mapped_text.hpp"
#include "runtime/data/examples.hpp"

namespace hearsay {

/// Cuts a text into tokens, from its beginning or from the beginning of any token.
class Tokeniser {
 public:
  virtual ~Tokeniser() = default;
  virtual std::int64_t vocabulary() const = 0;  ///< tokens are in [0, vocabulary)
  /// What the tokens stand for, by their numbers.
  virtual std::vector<std::string> tokens() const = 0;
  /// The first token's beginning.
  virtual const char* begin(std::string_view text) const { return text.data(); }
  /// The token at `at` < `end`; moves `at` to the next token, or to `end`.
  virtual std::int64_t next(const char*& at, const char* end) const = 0;
};

/// Bytes: 256 tokens.
std::shared_ptr<const Tokeniser> byte_tokens();
/// The code points that occur in these texts, in ascending order. Throws DataError, naming file and byte, where one is
/// not UTF-8.
std::shared_ptr<const Tokeniser> character_tokens(std::span<const Text> texts);
/// Words between blanks, and the ends of lines, in the order of their number in `training`; a word that is not
/// among them is <unk>. Of equally frequent ones, the first in the alphabet comes first. `most`: keep so many tokens at
/// most, 0: all. Throws DataError, naming file and line, for a word of `others` that is not known where no <unk> is.
std::shared_ptr<const Tokeniser> word_tokens(std::span<const Text> training, std::span<const Text> others,
                                             std::size_t most);

/// Throws DataError, naming file and byte, where a text is not UTF-8; `instead`: what else could be done.
void require_utf8(const Text& text, std::string_view instead);

/// A vocabulary as it is kept with a run and its model: the tokens' texts by their numbers, a line each. Backslashes,
/// control characters and what is no UTF-8 are written \\, \n, \t or \xHH.
std::string vocabulary_file(std::span<const std::string> tokens);

std::size_t count_tokens(const Text& text, const Tokeniser& tokeniser);

/// Sequences of a number of texts.
class Sequences final : public Examples {
 public:
  /// `length`: T.
  Sequences(std::shared_ptr<const Tokeniser> tokeniser, std::size_t length);
  /// Adds the sequences that begin every `stride` tokens from token `first` on and have their last target before token
  /// `last`. Returns how many blank lines lie before each in the text. Throws DataError if there are
  /// more than 2³² in all.
  std::vector<std::uint32_t> add(const Text& text, std::size_t first, std::size_t last, std::size_t stride);

  std::size_t size() const override { return starts_.size(); }
  void batch(std::span<const std::uint32_t> indices, Values inputs, Values targets,
             Random* augmentation) const override;
  /// (T) tokens in, (T) tokens out.
  ExampleShape shape() const;

 private:
  struct Part {
    std::size_t first;  // of the sequences that lie in `text`
    Text text;
  };
  std::shared_ptr<const Tokeniser> tokeniser_;
  std::size_t length_;
  std::vector<Part> parts_;
  std::vector<const char*> starts_;
};

/// Throws DataError, saying what would be enough, if there is no sequence.
void require_sequences(const Sequences& sequences, std::size_t length, const std::string& which, const Text& text);

}  // namespace hearsay
