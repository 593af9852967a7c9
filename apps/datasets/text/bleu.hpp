#pragma once
// BLEU: how much of a translation stands in a reference translation.
//   p_n = Σ matches / Σ n-grams of the translations, n = 1 … 4; an n-gram counts as often as it is in the reference
//   BLEU = 100 · min(1, exp(1 − r/c)) · (p₁ p₂ p₃ p₄)^¼,  c, r: words of all translations, of all references
// papineni2002bleu, with one reference a sentence; the words are those of mteval-v13a, so that figures compare
// (post2018call). A corpus without any match of some length has 0: nothing is smoothed.
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearsay {

/// Matches and n-grams of length 1 … 4, words of the translations, words of the references: sentences add up.
using BleuSums = std::array<double, 10>;

/// Words as mteval-v13a parts them: punctuation but dots and commas within numbers stands for itself. Of UTF-8.
std::vector<std::string> bleu_words(std::string_view text);

void add_to_bleu(std::string_view translation, std::string_view reference, std::span<double> sums);

/// In [0, 100].
double bleu(std::span<const double> sums);

}  // namespace hearsay
