// words: text as words, in the format of the Penn Treebank: three files of lines of words between blanks.
//   example i = T words from word i·stride of the training file on; to be foretold: the word after each of them
// The end of a line is the word <eos>. The vocabulary are the training file's words, the most frequent first; what else
// occurs is <unk>. Without files, words of a grammar whose entropy is known (apps/datasets/text/toy_grammar.cpp).
// mikolov2010recurrent has the usual three files, 929,589 words of 10,000, with <unk> in them.
// Deviates from it in: sequences are examples of their own, so that shares can be cut and shuffled; a recurrent model
// begins every one of them with a state of zeros.
// Cost: no messages; files are mapped; 8 bytes a sequence and the vocabulary in memory.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/datasets/datasets.hpp"
#include "apps/datasets/file_reader.hpp"
#include "apps/datasets/mapped_text.hpp"
#include "apps/datasets/text/tokens.hpp"
#include "apps/datasets/text/toy_grammar.hpp"
#include "base/text/foreign_text.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

class WordsSource final : public DatasetSource {
 public:
  WordsSource(Config& config, std::uint64_t seed)
      : seed_(seed),
        path_(config.path("path", "",
                          "folder with ptb.train.txt and ptb.valid.txt, or train.txt and valid.txt; empty: words of a "
                          "grammar are generated")),
        block_(config.integer("block", 35, Range::between(1, 1e6), "T, the words of a sequence")),
        stride_(config.integer("stride", 0, Range::at_least(0),
                               "words from one training sequence's beginning to the next; 0: block, so that an epoch "
                               "has every word once")),
        vocabulary_(config.integer("vocabulary", 0, Range::between(0, 1e9),
                                   "keep so many words at most, the most frequent; the others become <unk>; 0: all")),
        test_on_(config.choice("test_on", "valid", {"valid", "test"}, "which of the other two files is tested on")),
        generated_size_(config.integer("generated_size", 1'000'000, Range::between(1000, 1e9),
                                       "characters to generate where there is no path")) {}

  DataSet load() const override {
    const auto [training, testing] = texts();
    std::vector<Text> known{training};
    if (path_.empty()) known.push_back(testing);  // a short one need not have all words of the grammar
    const auto tokeniser = word_tokens(known, {&testing, 1}, static_cast<std::size_t>(vocabulary_));
    const auto train = sequences(training, tokeniser, stride_ > 0 ? static_cast<std::size_t>(stride_) : block());
    const auto test = sequences(testing, tokeniser, block());
    require_sequences(*train, block(), "training", training);
    require_sequences(*test, block(), "test", testing);
    return {.name = "words",
            .shape = train->shape(),
            .train = train,
            .test = test,
            .shares = {.size = train->size()},
            .metrics = {perplexity_metric(), loss_metric(), accuracy_metric()},
            .vocabulary = vocabulary_file(tokeniser->tokens())};
  }

 private:
  std::size_t block() const { return static_cast<std::size_t>(block_); }

  std::shared_ptr<const Sequences> sequences(const Text& text, const std::shared_ptr<const Tokeniser>& tokeniser,
                                             std::size_t stride) const {
    const auto made = std::make_shared<Sequences>(tokeniser, block());
    static_cast<void>(made->add(text, 0, count_tokens(text, *tokeniser), stride));
    return made;
  }

  /// What to train and what to test on.
  std::pair<Text, Text> texts() const {
    if (!path_.empty()) return {find("train"), find(test_on_)};
    std::string generated = generate_text(static_cast<std::size_t>(generated_size_), seed_).text;
    generated.resize(generated.rfind(' '));  // whole words only
    const std::size_t cut = generated.rfind(' ', generated.size() / 10 * 9);
    return {text_of(spaced(generated.substr(0, cut)), "generated words"),
            text_of(spaced(generated.substr(cut)), "generated words")};
  }

  /// A line a document, full stops as words.
  static std::string spaced(const std::string& text) {
    std::string words;
    for (const char c : text) {
      if (c == '.') words += ' ';
      if (c != '\n' || !words.ends_with('\n')) words += c;
    }
    return words;
  }

  Text find(const std::string& part) const {
    const std::vector<std::string> names{"ptb." + part + ".txt", part + ".txt"};
    Text text =
        read_text(find_file(path_, names, "words",
                            "Put train.txt, valid.txt and test.txt there (Penn Treebank's format), or leave data.path "
                            "out: the words are then made"));
    require_no_nul(text.characters, text.origin);
    return text;
  }

  std::uint64_t seed_;
  fs::path path_;
  std::int64_t block_, stride_, vocabulary_;
  std::string test_on_;
  std::int64_t generated_size_;
};

}  // namespace

DatasetEntry words_entry() {
  return {.name = "words",
          .summary = "words in the Penn Treebank's format (train.txt, valid.txt), or generated ones",
          .equation = "example i: words i·stride … i·stride + T − 1, targets one word further on",
          .cost = "no communication; files stay on disk, 8 bytes a sequence and the vocabulary in memory",
          .citation = "mikolov2010recurrent; generated words: apps/datasets/text/toy_grammar.cpp",
          .make = [](Config& config, std::uint64_t seed) -> std::unique_ptr<DatasetSource> {
            return std::make_unique<WordsSource>(config, seed);
          }};
}

}  // namespace hearsay
