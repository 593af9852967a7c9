// Translation: byte pairs against a learner that counts everything anew, BLEU against values computed by hand, examples
// against the files' lines, and what is refused.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "apps/datasets/text/bleu.hpp"
#include "apps/datasets/text/byte_pairs.hpp"
#include "apps/datasets/text/toy_translation.hpp"
#include "base/error.hpp"
#include "tests/runtime/data/load.hpp"
#include "tests/runtime/data/temporary_files.hpp"

namespace translation_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

using Tokens = std::vector<std::int64_t>;

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

double bleu_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  BleuSums sums{};
  for (const auto& [translation, reference] : pairs) add_to_bleu(translation, reference, sums);
  return bleu(sums);
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  BytePairs::for_words(line, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

/// As `BytePairs::learnt`, of the texts of tokens, counting all pairs again for every token.
std::vector<std::string> plainly_learnt(const std::vector<std::string>& lines, std::size_t tokens) {
  std::vector<std::string> known(BytePairs::first_byte);
  for (int byte = 0; byte < 256; ++byte) known.emplace_back(1, static_cast<char>(byte));
  std::vector<Tokens> words;
  for (const std::string& line : lines)
    for (const std::string& word : words_of(line)) {
      words.emplace_back();
      for (const char c : word) words.back().push_back(BytePairs::first_byte + static_cast<unsigned char>(c));
    }
  while (known.size() < tokens) {
    std::map<std::pair<std::int64_t, std::int64_t>, int> counts;
    for (const Tokens& word : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    const auto best = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    if (best == counts.end() || best->second < 2) break;
    const auto [left, right] = best->first;
    const std::string text = known[static_cast<std::size_t>(left)] + known[static_cast<std::size_t>(right)];
    const auto index = std::find(known.begin() + BytePairs::first_byte, known.end(), text) - known.begin();
    if (index == std::ssize(known)) known.push_back(text);
    for (Tokens& word : words) {
      Tokens joined;
      for (std::size_t i = 0; i < word.size(); ++i) {
        const bool both = i + 1 < word.size() && word[i] == left && word[i + 1] == right;
        joined.push_back(both ? index : word[i]);
        i += both ? 1 : 0;
      }
      word = joined;
    }
  }
  return known;
}

std::vector<std::string_view> views(const std::vector<std::string>& lines) { return {lines.begin(), lines.end()}; }

/// Lines of few letters, so that pairs repeat, with punctuation and letters of two bytes.
std::string any_line() {
  std::string line;
  for (const int draw : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 8)))
    line += std::vector<std::string>{"a", "b", "ab", "ä", ".", ",", " ", " "}[static_cast<std::size_t>(draw)];
  return line;
}

std::string with_single_blanks(const std::string& line) {
  std::string made;
  for (const char c : line)
    if (c != ' ' || (!made.empty() && made.back() != ' ')) made += c;
  if (made.ends_with(' ')) made.pop_back();
  return made;
}

struct Corpus {
  TemporaryFolder folder;
  Corpus() {
    write("train", "Ein Hund läuft.\nZwei Hunde laufen, schnell.\n", "A dog runs.\nTwo dogs run, fast.\n");
    write("val", "Ein Hund.\n", "A dog.\n");
  }
  void write(const std::string& name, const std::string& source, const std::string& target) const {
    folder.write(name + ".de", bytes_of(source));
    folder.write(name + ".en", bytes_of(target));
  }
  DataSet load(const std::string& more = "") const {
    return load_set("parallel_text", "{path: " + folder.path().string() + more + "}");
  }
};

std::string error_of(const Corpus& corpus, const std::string& more = "") {
  return message_of<DataError>([&] { static_cast<void>(corpus.load(more)); });
}

}  // namespace

TEST_CASE("byte pairs: words keep the blank before them, and punctuation parts them") {
  CHECK(words_of("Two  dogs, näher!") == std::vector<std::string>{" Two", " dogs", ",", " näher", "!"});
  CHECK(words_of(" \t\r").empty());
}

TEST_CASE("byte pairs: learnt is what counting everything anew learns") {
  CHECK(rc::check("the same tokens", [] {
    std::vector<std::string> lines;
    for (int i = *rc::gen::inRange(1, 8); i > 0; --i) lines.push_back(any_line());
    const std::size_t most = BytePairs::smallest + *rc::gen::inRange<std::size_t>(0, 30);
    RC_ASSERT(BytePairs::learnt(views(lines), most).tokens() == plainly_learnt(lines, most));
  }));
}

TEST_CASE("byte pairs: decoding gives a line back, whatever was learnt; nothing is unknown") {
  CHECK(rc::check("encode, then decode", [] {
    const std::string learnt = any_line() + " " + any_line(), line = any_line();
    const BytePairs pairs = BytePairs::learnt(views({learnt, learnt}), BytePairs::smallest + 20);
    for (const std::string& text : {line, learnt, std::string("Œuvre 𝄞 {never seen}")}) {
      const Tokens tokens = pairs.encode(text);
      RC_ASSERT(pairs.decode(tokens) == with_single_blanks(text));
      RC_ASSERT(
          std::ranges::all_of(tokens, [&](std::int64_t t) { return t >= BytePairs::first_byte && t < pairs.size(); }));
      RC_ASSERT(BytePairs(pairs.tokens()).encode(text) == tokens);  // the tokens' texts are all there is to it
    }
  }));
}

TEST_CASE("byte pairs: no two neighbours in a word are left that are a token together") {
  const BytePairs pairs = BytePairs::learnt(views({"aaabdaaabac aaab", "daaab"}), BytePairs::smallest + 6);
  CHECK(pairs.size() > BytePairs::smallest);
  for (const std::string word : {"aaabdaaabac", "daaab", "aaaa"}) {
    const Tokens tokens = pairs.encode(word);
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      CHECK(std::ranges::find(pairs.tokens(), pairs.tokens()[static_cast<std::size_t>(tokens[i])] +
                                                  pairs.tokens()[static_cast<std::size_t>(tokens[i + 1])]) ==
            pairs.tokens().end());
  }
}

TEST_CASE("byte pairs: what was learnt first is joined first") {
  for (const auto& [first, second, expected] :
       {std::tuple{"ab", "bc", std::vector<std::string>{" ", "ab", "c"}}, {"bc", "ab", {" ", "a", "bc"}}}) {
    std::vector<std::string> tokens = BytePairs::learnt({}, BytePairs::smallest).tokens();
    tokens.insert(tokens.end(), {first, second});
    const BytePairs pairs(tokens);
    std::vector<std::string> parts;
    for (const std::int64_t token : pairs.encode("abc")) parts.push_back(tokens[static_cast<std::size_t>(token)]);
    CHECK(parts == expected);
  }
}

TEST_CASE("bleu: values computed by hand") {
  CHECK(bleu_of({{"the cat is on the mat", "the cat is on the mat"}}) == doctest::Approx(100.0));
  // 5/6, 4/5, 3/4, 2/3: their product is 1/3
  CHECK(bleu_of({{"a b c d e x", "a b c d e f"}}) == doctest::Approx(100.0 * std::pow(1.0 / 3.0, 0.25)));
  // all n-grams match, and a word of six is missing
  CHECK(bleu_of({{"the cat is on the", "the cat is on the mat"}}) == doctest::Approx(100.0 * std::exp(-0.2)));
  // longer than the reference: no penalty; 6/7, 5/6, 4/5, 3/4: 3/7
  CHECK(bleu_of({{"a b c d e f x", "a b c d e f"}}) == doctest::Approx(100.0 * std::pow(3.0 / 7.0, 0.25)));
  // "the" counts twice, as often as it is in the reference (papineni2002bleu, example 2); no pair matches
  BleuSums sums{};
  add_to_bleu("the the the the the the the", "The cat is on the mat, the end", sums);
  CHECK(sums == BleuSums{2, 0, 0, 0, 7, 6, 5, 4, 7, 9});
  CHECK(bleu(sums) == 0.0);
  CHECK(bleu_of({{"", "a b c d"}}) == 0.0);
}

TEST_CASE("bleu: of a corpus are the sums of its sentences, not the mean of their values") {
  // Matches 5 + 4, 4 + 3, 3 + 2, 2 + 1 of 6 + 4, 5 + 3, 4 + 2, 3 + 1; 10 words of 11.
  const double product = (9.0 / 10) * (7.0 / 8) * (5.0 / 6) * (3.0 / 4);
  CHECK(bleu_of({{"a b c d e x", "a b c d e f"}, {"p q r s", "p q r s t"}}) ==
        doctest::Approx(100.0 * std::pow(product, 0.25) * std::exp(1.0 - 11.0 / 10)));
}

TEST_CASE("bleu: words are parted as mteval-v13a does") {
  using Words = std::vector<std::string>;
  CHECK(bleu_words("Hello, world! It's 3.5% of 1,000-2.") ==
        Words{"Hello", ",", "world", "!", "It's", "3.5", "%", "of", "1,000", "-", "2", "."});
  CHECK(bleu_words("ein \"Haus\" (rot)/blau…") == Words{"ein", "\"", "Haus", "\"", "(", "rot", ")", "/", "blau…"});
  CHECK(bleu_words("a&quot;b &amp; ü.ö well-known") == Words{"a", "\"", "b", "&", "ü", ".", "ö", "well-known"});
  CHECK(bleu_words(" \n").empty());
}

TEST_CASE("parallel text: the source, then what is to be written with its beginning; targets end and are not padded") {
  const Corpus corpus;
  const DataSet data = corpus.load(", length: 30, vocabulary: 270");
  REQUIRE(data.writing != nullptr);
  CHECK(data.shape.padded);
  CHECK(data.shape.inputs.sizes == std::vector<std::int64_t>{61});
  CHECK(data.shape.targets.sizes == std::vector<std::int64_t>{31});
  CHECK(data.train->size() == 2);
  CHECK(data.metrics.front().name == "bleu");
  CHECK(std::ranges::count(data.vocabulary, '\n') == data.shape.inputs.classes);
  const BytePairs pairs = BytePairs::learnt(
      views({"Ein Hund läuft.", "Zwei Hunde laufen, schnell.", "A dog runs.", "Two dogs run, fast."}), 270);
  Tokens in(2 * 61), out(2 * 31);
  data.train->batch(std::vector<std::uint32_t>{1, 0}, std::span(in), std::span(out), nullptr);
  for (const auto& [row, source, target] :
       {std::tuple{0, "Zwei Hunde laufen, schnell.", "Two dogs run, fast."}, {1, "Ein Hund läuft.", "A dog runs."}}) {
    Tokens theirs = pairs.encode(source), ours = pairs.encode(target);
    theirs.resize(30, BytePairs::padding);
    theirs.push_back(BytePairs::begin);
    Tokens before = ours;
    before.resize(30, BytePairs::padding);
    theirs.insert(theirs.end(), before.begin(), before.end());
    CHECK(Tokens(in.begin() + row * 61, in.begin() + (row + 1) * 61) == theirs);
    ours.push_back(BytePairs::end);
    ours.resize(31, -1);
    CHECK(Tokens(out.begin() + row * 31, out.begin() + (row + 1) * 31) == ours);
  }
  BleuSums sums{};
  const Tokens right = pairs.encode("A dog runs."), source = pairs.encode("Ein Hund läuft.");
  data.writing->judge(right, right, sums);
  CHECK(data.writing->value(sums) == doctest::Approx(100.0));
  CHECK(data.writing->most(source) == std::min<std::int64_t>(30, 2 * std::ssize(source) + 10));
}

TEST_CASE("parallel text: longer lines are not trained on, and no test is shortened") {
  const Corpus corpus;
  CHECK(corpus.load(", length: 18, vocabulary: 259").train->size() == 1);
  CHECK(contains(error_of(corpus, ", length: 9, vocabulary: 259"), "no line to train on"));
  corpus.write("val", "Ein Hund.\n", "A dog, and a cat.\n");
  CHECK(contains(error_of(corpus, ", length: 17, vocabulary: 259"),
                 "a line to test on has 18 tokens; set data.length to as many (it is 17)"));
}

TEST_CASE("parallel text: without files to test on, the last lines are") {
  const Corpus corpus;
  const DataSet data = corpus.load(", test: '', test_fraction: 0.5");
  CHECK(data.train->size() == 1);
  CHECK(data.test->size() == 1);
}

TEST_CASE("parallel text: a byte order mark, CRLF line ends and empty lines at the end change nothing") {
  const Corpus corpus;
  const std::int64_t tokens = corpus.load().shape.inputs.classes;
  corpus.write("val",
               "\xef\xbb\xbf"
               "Ein Hund.\r\n\r\n",
               "A dog.\n");
  const DataSet data = corpus.load();
  CHECK(data.test->size() == 1);
  CHECK(data.shape.inputs.classes == tokens);
}

TEST_CASE("parallel text: what is wrong is named by file, line and byte") {
  const Corpus corpus;
  corpus.write("val", "Ein Hund.\nEine Katze.\n", "A dog.\n");
  CHECK(contains(error_of(corpus), "val.de has 2 lines, and "));
  CHECK(contains(error_of(corpus), "val.en 1: each line of one has to be the translation of the same line"));
  corpus.write("val", "Ein Hund.\n \t\n", "A dog.\nA cat.\n");
  CHECK(contains(error_of(corpus), "val.de: line 2 is empty"));
  corpus.write("val", "Ein Hund.\r\n\r\nEine Katze.\r\n", "A dog.\n\nA cat.\n");
  CHECK(contains(error_of(corpus), "val.de: line 2 is empty"));
  corpus.write("val",
               "\xff\xfe"
               "E",
               "A dog.\n");
  CHECK(contains(error_of(corpus), "val.de: is UTF-16"));
  corpus.write("val", "Ein \xdfund.\n", "A dog.\n");
  CHECK(contains(error_of(corpus), "val.de: at byte 4: is not UTF-8; convert the file"));
  corpus.write("val", "", "A dog.\n");
  CHECK(contains(error_of(corpus), "val.de: is empty"));
  CHECK(contains(error_of(corpus, ", test: nowhere"), "nowhere.de, nowhere.de.gz, nowhere.de.xz"));
  CHECK_THROWS_AS(static_cast<void>(corpus.load(", vocabulary: 258")), ConfigError);
}

TEST_CASE("the made-up language: every word backwards, adjectives after nouns, the verb at the end") {
  CHECK(translated("the small sailors follow a boat.") == "eht srolias llams a taob wollof.");
  CHECK(translated("the sailors follow a small boat.") == "eht srolias a taob llams wollof.");
  CHECK(translated("some warm sailors follow the quiet reef.") == "emos srolias mraw eht feer teiuq wollof.");
  CHECK(translated("a sailor follows.") == "a rolias swollof.");
  CHECK(translated("a green sailor follows.") == "a rolias neerg swollof.");
  for (const TranslatedLine& line : generate_translations(300, 5)) {
    CHECK(line.target == translated(line.source));
    auto theirs = line.source, ours = line.target;  // the same letters
    std::ranges::sort(theirs);
    std::ranges::sort(ours);
    CHECK(theirs == ours);
  }
}

TEST_CASE("the made-up language needs no file, and equal seeds give equal lines") {
  const DataSet data = load_set("parallel_text", "{generated_size: 200}"),
                again = load_set("parallel_text", "{generated_size: 200}");
  CHECK(data.train->size() == 180);
  CHECK(data.test->size() == 20);
  CHECK(data.vocabulary == again.vocabulary);
  CHECK(data.vocabulary != load_set("parallel_text", "{generated_size: 200}", 8).vocabulary);
}

}  // namespace translation_test
