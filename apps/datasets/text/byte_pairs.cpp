#include "apps/datasets/text/byte_pairs.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <utility>

namespace hearsay {
namespace {

using Word = std::vector<std::int64_t>;

std::uint64_t key(std::int64_t left, std::int64_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
}
std::int64_t left_of(std::uint64_t pair) { return static_cast<std::int64_t>(pair >> 32); }
std::int64_t right_of(std::uint64_t pair) { return static_cast<std::int64_t>(pair & 0xffffffffU); }

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Punctuation is ASCII: everything beyond is a letter.
bool is_punctuation(char c) {
  const bool letter_or_digit = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return static_cast<unsigned char>(c) < 0x80 && !letter_or_digit && !is_blank(c);
}

Word bytes_of(std::string_view word) {
  Word tokens;
  for (const char c : word) tokens.push_back(BytePairs::first_byte + static_cast<unsigned char>(c));
  return tokens;
}

std::vector<std::string> first_tokens() {
  std::vector<std::string> tokens(BytePairs::first_byte);
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  return tokens;
}

/// The words of a text, how often each occurs, and how often any two tokens are neighbours in them.
class PairCounts {
 public:
  explicit PairCounts(std::span<const std::string_view> lines) {
    std::map<std::string, std::int64_t, std::less<>> counts;
    for (const std::string_view line : lines)
      BytePairs::for_words(line,
                           [&](std::string_view word) { ++counts.try_emplace(std::string(word), 0).first->second; });
    for (const auto& [word, count] : counts) {
      words_.push_back({bytes_of(word), count});
      add(words_.size() - 1, 1);
    }
  }
  /// The most frequent pair; false if none occurs twice. What is queued is an upper bound by now.
  bool most_frequent(std::uint64_t& pair) {
    while (!queue_.empty()) {
      const auto [count, inverse] = queue_.top();
      pair = ~inverse;
      if (const std::int64_t now = counts_[pair].count; now == count) return count > 1;
      queue_.pop();
    }
    return false;
  }
  void join(std::uint64_t pair, std::int64_t token) {
    const std::set<std::size_t> in = std::move(counts_[pair].words);
    for (const std::size_t word : in) {
      add(word, -1);
      Word& tokens = words_[word].tokens;
      std::size_t kept = 0;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool both = i + 1 < tokens.size() && key(tokens[i], tokens[i + 1]) == pair;
        tokens[kept++] = both ? token : tokens[i];
        i += both ? 1 : 0;
      }
      tokens.resize(kept);
      add(word, 1);
    }
  }

 private:
  struct Counted {
    Word tokens;
    std::int64_t count;
  };
  struct Pair {
    std::int64_t count = 0;
    std::set<std::size_t> words;  // in which it is, or was
  };
  void add(std::size_t word, std::int64_t sign) {
    const auto& [tokens, count] = words_[word];
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      Pair& pair = counts_[key(tokens[i], tokens[i + 1])];
      pair.count += sign * count;
      if (sign > 0) pair.words.insert(word);
      queue_.emplace(pair.count, ~key(tokens[i], tokens[i + 1]));
    }
  }
  std::vector<Counted> words_;
  std::unordered_map<std::uint64_t, Pair> counts_;
  std::priority_queue<std::pair<std::int64_t, std::uint64_t>> queue_;  // of equal counts, the lowest pair first
};

}  // namespace

void BytePairs::for_words(std::string_view line, const std::function<void(std::string_view word)>& each) {
  std::string word;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t first = static_cast<std::size_t>(
        std::find_if_not(line.begin() + static_cast<std::ptrdiff_t>(at), line.end(), is_blank) - line.begin());
    if (first == line.size()) return;
    std::size_t last = first;
    while (last < line.size() && !is_blank(line[last]) && is_punctuation(line[last]) == is_punctuation(line[first]))
      ++last;
    const bool behind_blank = first > at || word.empty();
    word.assign(behind_blank ? 1 : 0, ' ');
    each(word += line.substr(first, last - first));
    at = last;
  }
}

BytePairs::BytePairs(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  std::unordered_map<std::string_view, std::int64_t> numbers;
  for (std::size_t t = first_byte; t < tokens_.size(); ++t) numbers.emplace(tokens_[t], static_cast<std::int64_t>(t));
  for (std::size_t t = smallest; t < tokens_.size(); ++t) {
    const std::string_view text = tokens_[t];
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = numbers.find(text.substr(0, cut)), right = numbers.find(text.substr(cut));
      if (left != numbers.end() && right != numbers.end())
        joined_.emplace(key(left->second, right->second), numbers.at(text));
    }
  }
}

BytePairs BytePairs::learnt(std::span<const std::string_view> lines, std::size_t most) {
  std::vector<std::string> tokens = first_tokens();
  std::map<std::string, std::int64_t> known;
  PairCounts counts(lines);
  for (std::uint64_t pair = 0; tokens.size() < most && counts.most_frequent(pair);) {
    const std::string text =
        tokens[static_cast<std::size_t>(left_of(pair))] + tokens[static_cast<std::size_t>(right_of(pair))];
    const auto [entry, is_new] = known.emplace(text, static_cast<std::int64_t>(tokens.size()));
    if (is_new) tokens.push_back(text);
    counts.join(pair, entry->second);
  }
  return BytePairs(std::move(tokens));
}

std::vector<std::int64_t> BytePairs::encode(std::string_view line) const {
  std::vector<std::int64_t> all;
  for_words(line, [&](std::string_view word) {
    Word tokens = bytes_of(word);
    while (true) {
      std::int64_t lowest = size();
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        const auto found = joined_.find(key(tokens[i], tokens[i + 1]));
        if (found != joined_.end() && found->second < lowest) lowest = found->second, at = i;
      }
      if (lowest == size()) break;
      tokens[at] = lowest;
      tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    all.insert(all.end(), tokens.begin(), tokens.end());
  });
  return all;
}

std::string BytePairs::decode(std::span<const std::int64_t> line) const {
  std::string text;
  for (const std::int64_t token : line)
    if (token >= first_byte && token < size()) text += tokens_[static_cast<std::size_t>(token)];
  return text.starts_with(' ') ? text.substr(1) : text;
}

}  // namespace hearsay
