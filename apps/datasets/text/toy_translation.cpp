// Source: sentences of the grammar in toy_grammar.cpp, "the small sailors follow a boat."
// Target: the same words written backwards, in another order: an adjective goes after its noun, the verb to the end.
//   "the small sailors follow a boat." → "eht srolias llams a taob wollof."
// One source has one target: nothing but BLEU 100 is the best that can be reached. What has to be learnt is a
// dictionary, and two reorderings, of which one goes over half a sentence.
#include "apps/datasets/text/toy_translation.hpp"

#include <algorithm>
#include <sstream>

#include "apps/datasets/text/toy_grammar.hpp"
#include "base/random.hpp"

namespace hearsay {
namespace {

bool is_article(const std::string& word) { return word == "the" || word == "a" || word == "some"; }

std::string backwards(const std::string& word) { return {word.rbegin(), word.rend()}; }

/// "the small sailors" → "eht srolias llams"; moves `at` past the phrase.
std::string phrase(const std::vector<std::string>& words, std::size_t& at, bool has_adjective) {
  const std::string article = backwards(words[at++]);
  const std::string adjective = has_adjective ? " " + backwards(words[at++]) : "";
  return article + " " + backwards(words[at++]) + adjective;
}

}  // namespace

// A phrase has an article, at most one adjective and a noun; the verb follows the first one. So the number of words
// before the second article, or in all, says whether the first phrase has an adjective.
std::string translated(const std::string& source) {
  std::istringstream stream(source.substr(0, source.find('.')));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.size() < 3) return {};
  const auto second =
      static_cast<std::size_t>(std::find_if(words.begin() + 1, words.end(), is_article) - words.begin());
  std::size_t at = 0;
  std::string text = phrase(words, at, second == 4);
  const std::string verb = backwards(words[at++]);
  if (second < words.size()) text += " " + phrase(words, at, words.size() - second == 3);
  return text + " " + verb + ".";
}

std::vector<TranslatedLine> generate_translations(std::size_t count, std::uint64_t seed) {
  std::vector<TranslatedLine> pairs;
  for (std::uint64_t line = 0; line < count; ++line) {
    std::string source = generate_sentence(stream_seed(seed, "toy_translation", line));
    std::string target = translated(source);
    pairs.push_back({std::move(source), std::move(target)});
  }
  return pairs;
}

}  // namespace hearsay
