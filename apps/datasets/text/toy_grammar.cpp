// A document has a topic, and 24 sentences:
//   sentence → phrase verb [phrase] "."           the second phrase with probability 0.7
//   phrase   → the | a | some [adjective] noun    "the" with probability 0.7, an adjective with 0.3
// Phrases are singular or plural, and the verb agrees with the first one: a dependence over up to 20 characters. Nouns
// are the topic's own. Words of a kind are drawn with probabilities ∝ 1/rank (Zipf).
//
// Entropy. No word is in two lists, and none in one list is another with an "s": every text has one derivation. With H
// for entropies and L for mean lengths, of a document: (log₂ 8 + 24 H_sentence) / (24 L_sentence + 1).
#include "apps/datasets/text/toy_grammar.hpp"

#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "base/random.hpp"

namespace hearsay {
namespace {

using Word = std::string_view;

constexpr int sentences = 24;
constexpr double the_probability = 0.7, adjective_probability = 0.3, object_probability = 0.7;

constexpr std::array<Word, 12> adjectives{"small", "bright", "quiet", "green",  "heavy", "narrow",
                                          "warm",  "broken", "young", "clever", "plain", "sudden"};
constexpr std::array<Word, 12> verbs{"follow", "hear", "remember", "need", "find",  "draw",
                                     "move",   "help", "carry",    "hide", "watch", "leave"};
constexpr std::size_t nouns_of_topic = 8;
constexpr std::array<std::array<Word, nouns_of_topic>, grammar_topics> nouns{{
    {"sailor", "boat", "harbour", "wave", "rope", "lantern", "captain", "reef"},
    {"baker", "loaf", "kitchen", "spoon", "recipe", "table", "cellar", "pepper"},
    {"teacher", "lesson", "pencil", "letter", "question", "window", "pupil", "riddle"},
    {"farmer", "field", "tractor", "goat", "fence", "barn", "meadow", "pumpkin"},
    {"singer", "melody", "trumpet", "drum", "concert", "dancer", "violin", "rhythm"},
    {"doctor", "patient", "needle", "fever", "nurse", "bandage", "hospital", "pill"},
    {"miner", "tunnel", "hammer", "crystal", "ladder", "wagon", "cavern", "pebble"},
    {"pilot", "rocket", "cloud", "signal", "runway", "propeller", "sunset", "wing"},
}};

/// P(rank i of n) ∝ 1/(i + 1).
double zipf(std::size_t i, std::size_t n) {
  double sum = 0.0;
  for (std::size_t j = 0; j < n; ++j) sum += 1.0 / static_cast<double>(j + 1);
  return 1.0 / (static_cast<double>(i + 1) * sum);
}

/// Draws, and counts what a draw is worth.
class Dice {
 public:
  explicit Dice(Random& random) : random_(random) {}
  bool chance(double p) {
    const bool yes = random_.uniform() < p;
    bits_ -= std::log2(yes ? p : 1.0 - p);
    return yes;
  }
  std::size_t below(std::size_t n) {
    bits_ += std::log2(static_cast<double>(n));
    return random_.below(n);
  }
  Word word(std::span<const Word> words) {
    double left = random_.uniform();
    std::size_t i = 0;
    while (i + 1 < words.size() && left >= zipf(i, words.size())) left -= zipf(i++, words.size());
    bits_ -= std::log2(zipf(i, words.size()));
    return words[i];
  }
  double bits() const { return bits_; }

 private:
  Random& random_;
  double bits_ = 0.0;
};

/// Appends a phrase; true if it is plural.
bool append_phrase(std::string& text, std::size_t topic, Dice& dice) {
  const bool plural = dice.chance(0.5);
  text += dice.chance(the_probability) ? "the " : plural ? "some " : "a ";
  if (dice.chance(adjective_probability)) (text += dice.word(adjectives)) += ' ';
  text += dice.word(nouns[topic]);
  if (plural) text += 's';
  return plural;
}

void append_sentence(std::string& text, std::size_t topic, Dice& dice) {
  const bool plural = append_phrase(text, topic, dice);
  (text += ' ') += dice.word(verbs);
  if (!plural) text += 's';
  if (dice.chance(object_probability)) append_phrase(text += ' ', topic, dice);
  text += '.';
}

// The same once more, in means.

double entropy(double p) { return -p * std::log2(p) - (1.0 - p) * std::log2(1.0 - p); }

double entropy(std::size_t words) {
  double sum = 0.0;
  for (std::size_t i = 0; i < words; ++i) sum -= zipf(i, words) * std::log2(zipf(i, words));
  return sum;
}

double mean_length(std::span<const Word> words) {
  double sum = 0.0;
  for (std::size_t i = 0; i < words.size(); ++i) sum += zipf(i, words.size()) * static_cast<double>(words[i].size());
  return sum;
}

}  // namespace

GeneratedText generate_text(std::size_t size, std::uint64_t seed) {
  GeneratedText made;
  for (std::uint64_t document = 0; made.text.size() < size; ++document) {
    Random random(stream_seed(seed, "toy_grammar", document));
    Dice dice(random);
    const std::size_t topic = dice.below(grammar_topics);
    made.topics.push_back(static_cast<std::uint32_t>(topic));
    for (int s = 0; s < sentences; ++s) {
      if (s > 0) made.text += ' ';
      append_sentence(made.text, topic, dice);
    }
    made.text += "\n\n";
    made.bits += dice.bits();
  }
  made.text.resize(size);
  return made;
}

std::string generate_sentence(std::uint64_t seed) {
  Random random(seed);
  Dice dice(random);
  std::string text;
  append_sentence(text, dice.below(grammar_topics), dice);
  return text;
}

double grammar_entropy() {
  double noun = 0.0;
  for (const auto& of_topic : nouns) noun += mean_length(of_topic) / grammar_topics;
  const double phrase_bits = 1.0 + entropy(the_probability) + entropy(adjective_probability) +
                             adjective_probability * entropy(adjectives.size()) + entropy(nouns_of_topic);
  // "a" and "some" are equally likely: 2.5 letters; half of the nouns and verbs have an "s".
  const double phrase_length = the_probability * 3.0 + (1.0 - the_probability) * 2.5 + 1.0 +
                               adjective_probability * (mean_length(adjectives) + 1.0) + noun + 0.5;
  const double sentence_bits =
      phrase_bits + entropy(verbs.size()) + entropy(object_probability) + object_probability * phrase_bits;
  const double sentence_length = phrase_length + 1.0 + mean_length(verbs) + 0.5 +
                                 object_probability * (1.0 + phrase_length) + 2.0;  // "." and what parts sentences
  return (std::log2(grammar_topics) + sentences * sentence_bits) / (sentences * sentence_length + 1.0);
}

}  // namespace hearsay
