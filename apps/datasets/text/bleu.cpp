#include "apps/datasets/text/bleu.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <utility>

namespace hearsay {
namespace {

constexpr std::size_t longest = 4;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }
/// ASCII's punctuation without stops, the apostrophe and the hyphen.
bool is_sign(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
         (c >= ':' && c <= '@') || c == '/';
}

/// What a regular expression of two characters replaces: neighbours for which `apart` holds, from the left and without
/// overlap, are parted, with another blank on the side where the punctuation mark is.
std::string replaced(const std::string& text, bool (*apart)(char, char), bool first_is_the_mark) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !apart(text[i], text[i + 1])) {
      made += text[i];
      continue;
    }
    if (first_is_the_mark) made += ' ';
    ((made += text[i]) += ' ') += text[i + 1];
    if (!first_is_the_mark) made += ' ';
    ++i;
  }
  return made;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

using Words = std::span<const std::string>;

std::map<std::vector<std::string>, int> counts(Words words, std::size_t n) {
  std::map<std::vector<std::string>, int> found;
  for (std::size_t i = 0; i + n <= words.size(); ++i)
    ++found[{words.begin() + static_cast<std::ptrdiff_t>(i), words.begin() + static_cast<std::ptrdiff_t>(i + n)}];
  return found;
}

}  // namespace

std::vector<std::string> bleu_words(std::string_view text) {
  std::string all(text);
  replace_all(all, "<skipped>", "");
  replace_all(all, "-\n", "");
  replace_all(all, "\n", " ");
  for (const auto& [entity, sign] : {std::pair{"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}})
    replace_all(all, entity, sign);
  std::string parted = " ";
  for (const char c : all) parted += is_sign(c) ? std::string{' ', c, ' '} : std::string(1, c);
  parted += ' ';
  parted = replaced(
      parted, [](char a, char b) { return !is_digit(a) && is_stop(b); }, false);
  parted = replaced(
      parted, [](char a, char b) { return is_stop(a) && !is_digit(b); }, true);
  parted = replaced(
      parted, [](char a, char b) { return is_digit(a) && b == '-'; }, false);
  std::vector<std::string> words;
  std::istringstream stream(parted);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void add_to_bleu(std::string_view translation, std::string_view reference, std::span<double> sums) {
  const auto ours = bleu_words(translation), theirs = bleu_words(reference);
  for (std::size_t n = 1; n <= longest; ++n) {
    const auto wanted = counts(theirs, n);
    for (const auto& [gram, count] : counts(ours, n)) {
      const auto found = wanted.find(gram);
      sums[n - 1] += found == wanted.end() ? 0 : std::min(count, found->second);
      sums[longest + n - 1] += count;
    }
  }
  sums[2 * longest] += static_cast<double>(ours.size());
  sums[2 * longest + 1] += static_cast<double>(theirs.size());
}

double bleu(std::span<const double> sums) {
  double logarithm = 0.0;
  for (std::size_t n = 0; n < longest; ++n) {
    if (sums[n] == 0.0) return 0.0;
    logarithm += std::log(sums[n] / sums[longest + n]) / longest;
  }
  const double ours = sums[2 * longest], theirs = sums[2 * longest + 1];
  return 100.0 * std::exp(logarithm + std::min(0.0, 1.0 - theirs / ours));
}

}  // namespace hearsay
