// text: a file, or a folder of files, as characters or bytes; without a file, text of a grammar whose entropy is known.
//   example i = T tokens from token i·stride of a file on; to be foretold: the token after each of them
// The last part of every file is what is tested on, as in char-rnn and nanoGPT; sequences do not cross files.
// The generated text: apps/datasets/text/toy_grammar.cpp, 0.497 bits (0.345 nats) a character.
// Cost: no messages; files are mapped, and a rank keeps 12 bytes a sequence; every file is read twice at the start.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/datasets/datasets.hpp"
#include "apps/datasets/mapped_text.hpp"
#include "apps/datasets/text/tokens.hpp"
#include "apps/datasets/text/toy_grammar.hpp"

namespace hearsay {
namespace {

class TextSource final : public DatasetSource {
 public:
  TextSource(Config& config, std::uint64_t seed)
      : seed_(seed),
        path_(config.path("path", "", "a text file, or a folder of them; empty: text of a grammar is generated")),
        unit_(config.choice("unit", "characters", {"characters", "bytes"},
                            "what a token is: a Unicode code point of those that occur, or one of 256 bytes")),
        block_(config.integer("block", 64, Range::between(1, 1e6), "T, the tokens of a sequence")),
        stride_(config.integer("stride", 0, Range::at_least(0),
                               "tokens from one training sequence's beginning to the next; 0: block, so that an epoch "
                               "has every token once")),
        test_fraction_(config.real("test_fraction", 0.1,
                                   {.min = 0.0, .max = 1.0, .min_excluded = true, .max_excluded = true},
                                   "part of every file, at its end, that is tested on and not trained on")),
        documents_(config.choice("documents", "file", {"file", "paragraph"},
                                 "what partitions cut by: files, or what blank lines part in them; in generated text "
                                 "it is the topic")),
        generated_size_(config.integer("generated_size", 400'000, Range::between(1000, 1e9),
                                       "characters to generate where there is no path")) {}

  DataSet load() const override {
    GeneratedText generated;
    if (path_.empty()) generated = generate_text(static_cast<std::size_t>(generated_size_), seed_);
    const std::vector<Text> texts = path_.empty() ? std::vector{text_of(std::move(generated.text), "generated text")}
                                                  : read_texts(path_, unit_ == "bytes" ? read_bytes : read_text);
    const auto tokeniser = unit_ == "bytes" ? byte_tokens() : character_tokens(texts);
    const auto train = std::make_shared<Sequences>(tokeniser, block()),
               test = std::make_shared<Sequences>(tokeniser, block());
    std::vector<std::uint32_t> groups;
    std::uint32_t documents = 0;
    for (const Text& text : texts) {
      const std::size_t tokens = count_tokens(text, *tokeniser);
      const auto kept = static_cast<std::size_t>(static_cast<double>(tokens) * (1.0 - test_fraction_));
      const auto blank_lines = train->add(text, 0, kept, stride_ > 0 ? static_cast<std::size_t>(stride_) : block());
      static_cast<void>(test->add(text, kept, tokens, block()));
      for (const std::uint32_t before : blank_lines) groups.push_back(group(before, documents, generated.topics));
      if (!groups.empty()) documents = groups.back() + 1;
    }
    require_sequences(*train, block(), "training", texts.front());
    require_sequences(*test, block(), "test", texts.front());
    const std::size_t size = train->size();
    return {.name = "text",
            .shape = train->shape(),
            .train = train,
            .test = test,
            .shares = {.size = size, .groups = std::move(groups), .count = path_.empty() ? grammar_topics : documents},
            .metrics = {loss_metric(), bits_metric(unit_ == "bytes" ? "byte" : "character"), accuracy_metric()},
            .vocabulary = vocabulary_file(tokeniser->tokens())};
  }

 private:
  std::size_t block() const { return static_cast<std::size_t>(block_); }
  /// The group of a sequence with so many blank lines before it in its file; `documents`: those of earlier files.
  std::uint32_t group(std::uint32_t blank_lines, std::uint32_t documents,
                      const std::vector<std::uint32_t>& topics) const {
    if (!topics.empty()) return topics[blank_lines];
    return documents + (documents_ == "paragraph" ? blank_lines : 0);
  }

  std::uint64_t seed_;
  std::filesystem::path path_;
  std::string unit_;
  std::int64_t block_, stride_;
  double test_fraction_;
  std::string documents_;
  std::int64_t generated_size_;
};

}  // namespace

DatasetEntry text_entry() {
  return {.name = "text",
          .summary = "characters or bytes of a file or folder, or of a generated text of 0.497 bits a character",
          .equation = "example i: tokens i·stride … i·stride + T − 1, targets one token further on",
          .cost = "no communication; files stay on disk, 12 bytes a sequence",
          .citation = "generated text: a grammar of our own, apps/datasets/text/toy_grammar.cpp",
          .make = [](Config& config, std::uint64_t seed) -> std::unique_ptr<DatasetSource> {
            return std::make_unique<TextSource>(config, seed);
          }};
}

}  // namespace hearsay
