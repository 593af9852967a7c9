#pragma once
// A made-up language pair whose rule is known, so that translation can be tried without files.
#include <cstdint>
#include <string>
#include <vector>

namespace hearsay {

struct TranslatedLine {
  std::string source, target;
};

/// `count` pairs, each with random numbers of its own: equal seeds give equal pairs, and a longer text begins with the
/// shorter one.
std::vector<TranslatedLine> generate_translations(std::size_t count, std::uint64_t seed);

/// The rule, for one sentence in small letters that ends with a full stop: what `source` is in the other language.
std::string translated(const std::string& source);

}  // namespace hearsay
