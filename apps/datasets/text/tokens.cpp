#include "apps/datasets/text/tokens.hpp"

#include <utf8.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdio>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"
#include "base/text/foreign_text.hpp"

namespace hearsay {
namespace {

class Bytes final : public Tokeniser {
 public:
  std::int64_t vocabulary() const override { return 256; }
  std::vector<std::string> tokens() const override {
    std::vector<std::string> all;
    for (int byte = 0; byte < 256; ++byte) all.emplace_back(1, static_cast<char>(byte));
    return all;
  }
  std::int64_t next(const char*& at, const char*) const override { return static_cast<unsigned char>(*at++); }
};

/// Code points by their rank among those that occur; of texts that are known to be UTF-8.
class Characters final : public Tokeniser {
 public:
  explicit Characters(std::vector<std::uint32_t> ascending) : known_(std::move(ascending)) {
    for (std::size_t token = 0; token < known_.size(); ++token)
      if (known_[token] < ascii_.size()) ascii_[known_[token]] = static_cast<std::int64_t>(token);
  }
  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(known_.size()); }
  std::vector<std::string> tokens() const override {
    std::vector<std::string> all;
    for (const std::uint32_t character : known_) utf8::append(character, std::back_inserter(all.emplace_back()));
    return all;
  }
  std::int64_t next(const char*& at, const char*) const override {
    if (const auto byte = static_cast<unsigned char>(*at); byte < ascii_.size()) return ++at, ascii_[byte];
    const std::uint32_t character = utf8::unchecked::next(at);
    return std::ranges::lower_bound(known_, character) - known_.begin();
  }

 private:
  std::vector<std::uint32_t> known_;
  std::array<std::int64_t, 128> ascii_{};
};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

const char* behind_blanks(const char* at, const char* end) { return std::find_if_not(at, end, is_blank); }

/// The word at `at`, or the line's end.
std::string_view word_at(const char* at, const char* end) {
  if (*at == '\n') return {at, 1};
  return {at, std::find_if(at, end, [](char c) { return is_blank(c) || c == '\n'; })};
}

constexpr std::string_view line_end = "\n", unknown = "<unk>";

class Words final : public Tokeniser {
 public:
  explicit Words(const std::vector<std::string>& words) {
    for (const std::string& word : words) numbers_.emplace(word, static_cast<std::int64_t>(numbers_.size()));
    if (const auto found = numbers_.find(std::string(unknown)); found != numbers_.end()) unknown_ = found->second;
  }
  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(numbers_.size()); }
  std::vector<std::string> tokens() const override {
    std::vector<std::string> all(numbers_.size());
    for (const auto& [word, number] : numbers_) all[static_cast<std::size_t>(number)] = word;
    return all;
  }
  const char* begin(std::string_view text) const override { return behind_blanks(text.begin(), text.end()); }
  std::int64_t next(const char*& at, const char* end) const override {
    const std::string_view word = word_at(at, end);
    at = behind_blanks(at + word.size(), end);
    const auto found = numbers_.find(word);
    return found == numbers_.end() ? unknown_ : found->second;
  }
  bool knows(std::string_view word) const { return unknown_ >= 0 || numbers_.contains(word); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> numbers_;
  std::int64_t unknown_ = -1;
};

/// Calls `each(word)` for all words and line ends.
void for_words(const Text& text, const auto& each) {
  const char* const end = text.characters.data() + text.characters.size();
  for (const char* at = behind_blanks(text.characters.data(), end); at != end;) {
    const std::string_view word = word_at(at, end);
    each(word);
    at = behind_blanks(at + word.size(), end);
  }
}

/// By falling number, then by alphabet.
std::vector<std::string> frequent_words(std::span<const Text> texts, std::size_t most) {
  std::map<std::string, std::uint64_t, std::less<>> counts;
  for (const Text& text : texts) {
    for_words(text, [&](std::string_view word) {
      if (const auto found = counts.find(word); found != counts.end())
        ++found->second;
      else
        counts.emplace(word, 1);
    });
  }
  std::vector<std::pair<std::string, std::uint64_t>> order(counts.begin(), counts.end());
  std::ranges::stable_sort(order, std::ranges::greater{}, [](const auto& entry) { return entry.second; });
  const bool cut = most > 0 && order.size() > most;
  if (cut) {
    order.resize(most);
    if (std::ranges::find(order, unknown, [](const auto& entry) -> const std::string& { return entry.first; }) ==
        order.end())
      order.back().first = unknown;
  }
  std::vector<std::string> words;
  for (auto& [word, count] : order) words.push_back(std::move(word));
  return words;
}

void require_known(const Text& text, const Words& words) {
  std::size_t line = 1;
  for_words(text, [&](std::string_view word) {
    if (!words.knows(word))
      throw DataError(
          text.origin + ": line " + std::to_string(line) + ": the word '" + std::string(word) +
          "' is not in the training text, which has no <unk> for such words; put <unk> in the place of rare "
          "words, or set data.vocabulary to fewer words than there are");
    line += word == line_end ? 1 : 0;
  });
}

/// Whether `at` is the end of a line that has nothing before it; lines end with \n or \r\n.
bool ends_blank_line(const char* begin, const char* at) {
  if (*at != '\n' || at == begin) return false;
  const char* const before = at[-1] == '\r' ? at - 1 : at;
  return before != begin && before[-1] == '\n';
}

/// One character, in a line.
std::string escaped(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character.front());
  if (character == "\\") return "\\\\";
  if (character == "\n") return "\\n";
  if (character == "\t") return "\\t";
  const bool shown = character.size() > 1 || (byte >= 0x20 && byte < 0x7f);
  if (shown) return std::string(character);
  char text[8];
  std::snprintf(text, sizeof text, "\\x%02x", byte);
  return text;
}

}  // namespace

void require_utf8(const Text& text, std::string_view instead) {
  const char* const begin = text.characters.data();
  const char* const end = begin + text.characters.size();
  if (const char* const wrong = utf8::find_invalid(begin, end); wrong != end)
    throw DataError(text.origin + ": at byte " + std::to_string(wrong - begin) +
                    ": is not UTF-8; convert the file (`iconv -f LATIN1 -t UTF-8`)" + std::string(instead));
  require_no_nul(text.characters, text.origin, instead);
}

std::string vocabulary_file(std::span<const std::string> tokens) {
  std::string file;
  for (const std::string& token : tokens) {
    for (auto at = token.begin(); at != token.end();) {
      auto next = at;
      if (utf8::internal::validate_next(next, token.end()) != utf8::internal::UTF8_OK) next = at + 1;
      file += escaped({at, next});
      at = next;
    }
    file += '\n';
  }
  return file;
}

std::shared_ptr<const Tokeniser> byte_tokens() { return std::make_shared<Bytes>(); }

std::shared_ptr<const Tokeniser> character_tokens(std::span<const Text> texts) {
  constexpr std::size_t code_points = 0x110000;
  const auto occur = std::make_unique<std::bitset<code_points>>();
  std::uint32_t highest = 0;
  for (const Text& text : texts) {
    require_utf8(text, ", or set data.unit to bytes");
    const char* at = text.characters.data();
    const char* const end = at + text.characters.size();
    while (at != end) {
      const std::uint32_t c = utf8::unchecked::next(at);
      occur->set(c);
      highest = std::max(highest, c);
    }
  }
  std::vector<std::uint32_t> known;
  for (std::uint32_t c = 0; c <= highest; ++c)
    if (occur->test(c)) known.push_back(c);
  return std::make_shared<Characters>(std::move(known));
}

std::shared_ptr<const Tokeniser> word_tokens(std::span<const Text> training, std::span<const Text> others,
                                             std::size_t most) {
  const auto words = std::make_shared<Words>(frequent_words(training, most));
  for (const Text& text : others) require_known(text, *words);
  return words;
}

std::size_t count_tokens(const Text& text, const Tokeniser& tokeniser) {
  const char* const end = text.characters.data() + text.characters.size();
  std::size_t count = 0;
  for (const char* at = tokeniser.begin(text.characters); at != end; ++count) tokeniser.next(at, end);
  return count;
}

Sequences::Sequences(std::shared_ptr<const Tokeniser> tokeniser, std::size_t length)
    : tokeniser_(std::move(tokeniser)), length_(length) {}

std::vector<std::uint32_t> Sequences::add(const Text& text, std::size_t first, std::size_t last, std::size_t stride) {
  std::vector<std::uint32_t> blank_lines;
  parts_.push_back({starts_.size(), text});
  const char* const begin = text.characters.data();
  const char* const end = begin + text.characters.size();
  const char* at = tokeniser_->begin(text.characters);
  std::uint32_t passed = 0;
  for (std::size_t token = 0; token + length_ < last && at != end; ++token) {
    if (token >= first && (token - first) % stride == 0) {
      starts_.push_back(at);
      blank_lines.push_back(passed);
    }
    passed += ends_blank_line(begin, at) ? 1 : 0;
    tokeniser_->next(at, end);
  }
  if (starts_.size() > std::numeric_limits<std::uint32_t>::max())
    throw DataError(text.origin + ": more than 2^32 sequences; set data.stride or data.block to more tokens");
  return blank_lines;
}

void Sequences::batch(std::span<const std::uint32_t> indices, Values inputs, Values targets, Random*) const {
  const auto in = std::get<std::span<std::int64_t>>(inputs), out = std::get<std::span<std::int64_t>>(targets);
  if (in.size() != indices.size() * length_ || out.size() != in.size())
    throw std::logic_error("sequences: the tensors do not have the batch's size");
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::size_t index = indices[i];
    if (index >= starts_.size()) throw std::logic_error("there is no sequence " + std::to_string(index));
    const auto part = std::ranges::upper_bound(parts_, index, {}, &Part::first) - 1;
    const char* const end = part->text.characters.data() + part->text.characters.size();
    const char* at = starts_[index];
    for (std::size_t t = 0; t <= length_; ++t) {
      const std::int64_t token = tokeniser_->next(at, end);
      if (t < length_) in[i * length_ + t] = token;
      if (t > 0) out[i * length_ + t - 1] = token;
    }
  }
}

ExampleShape Sequences::shape() const {
  const TensorShape tokens{.element = TensorShape::Element::classes,
                           .sizes = {static_cast<std::int64_t>(length_)},
                           .classes = tokeniser_->vocabulary()};
  return {.inputs = tokens, .targets = tokens};
}

void require_sequences(const Sequences& sequences, std::size_t length, const std::string& which, const Text& text) {
  if (sequences.size() > 0) return;
  throw DataError(text.origin + ": too short: the " + which + " part has not the " + std::to_string(length + 1) +
                  " tokens of one sequence; set data.block to fewer tokens, or give more text");
}

}  // namespace hearsay
