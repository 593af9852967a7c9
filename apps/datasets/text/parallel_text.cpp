// parallel_text: two files that say the same line by line, in two languages; without files, a made-up language pair.
//   example i = the tokens of line i of both: inputs (source, padded to T; begin, target, padded to T + 1), to be
//   foretold: (target, end), −1 where there is nothing
// Tokens are byte pairs (byte_pairs.hpp), learnt from the training lines of both languages together.
// A model is judged by BLEU (bleu.hpp) of what it writes, one most probable token after the other, and by its loss.
// The generated pairs: toy_translation.cpp; the best BLEU there is 100.
// Cost: no messages; files are mapped, and a rank keeps 32 bytes a pair of lines; lines are cut into tokens whenever
// they are wanted, and once at the start.
#include <utf8.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/datasets/datasets.hpp"
#include "apps/datasets/file_reader.hpp"
#include "apps/datasets/mapped_text.hpp"
#include "apps/datasets/text/bleu.hpp"
#include "apps/datasets/text/byte_pairs.hpp"
#include "apps/datasets/text/tokens.hpp"
#include "apps/datasets/text/toy_translation.hpp"
#include "base/error.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

/// Two texts of equally many lines.
struct Pairs {
  Text source, target;
  std::vector<std::pair<std::string_view, std::string_view>> lines;
};

std::vector<std::string_view> lines_of(const Text& text) {
  std::vector<std::string_view> lines;
  const std::size_t last = text.characters.find_last_not_of("\r\n"), size = last + 1;  // 0 of an empty text
  for (std::size_t at = 0; at < size;) {
    const std::size_t end = std::min(text.characters.find('\n', at), size);
    lines.push_back(text.characters.substr(at, end - at));
    if (lines.back().find_first_not_of(" \t\r") == std::string_view::npos)
      throw DataError(text.origin + ": line " + std::to_string(lines.size()) +
                      " is empty: it cannot be translated; remove it from both files");
    at = end + 1;
  }
  return lines;
}

Pairs paired(Text source, Text target) {
  for (const Text& text : {source, target}) require_utf8(text, "");
  const auto theirs = lines_of(source), ours = lines_of(target);
  if (theirs.size() != ours.size())
    throw DataError(source.origin + " has " + std::to_string(theirs.size()) + " lines, and " + target.origin + " " +
                    std::to_string(ours.size()) +
                    ": each line of one has to be the translation of the same line of the other");
  Pairs pairs{std::move(source), std::move(target), {}};
  for (std::size_t i = 0; i < ours.size(); ++i) pairs.lines.emplace_back(theirs[i], ours[i]);
  return pairs;
}

/// Splits off the last lines.
Pairs last_part(Pairs& pairs, double fraction) {
  const auto size = static_cast<double>(pairs.lines.size());
  const auto kept = static_cast<std::ptrdiff_t>(size * (1.0 - fraction));
  Pairs part{pairs.source, pairs.target, {pairs.lines.begin() + kept, pairs.lines.end()}};
  pairs.lines.resize(static_cast<std::size_t>(kept));
  return part;
}

class ParallelText final : public Examples {
 public:
  ParallelText(std::shared_ptr<const BytePairs> tokens, Pairs pairs, std::size_t length)
      : tokens_(std::move(tokens)), pairs_(std::move(pairs)), length_(length) {}
  std::size_t size() const override { return pairs_.lines.size(); }
  void batch(std::span<const std::uint32_t> indices, Values inputs, Values targets, Random*) const override {
    const auto in = std::get<std::span<std::int64_t>>(inputs), out = std::get<std::span<std::int64_t>>(targets);
    const std::size_t width = 2 * length_ + 1;
    if (in.size() != indices.size() * width || out.size() != indices.size() * (length_ + 1))
      throw std::logic_error("parallel text: the tensors do not have the batch's size");
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto& [source, target] = pairs_.lines.at(indices[i]);
      write(source, target, in.subspan(i * width, width), out.subspan(i * (length_ + 1), length_ + 1));
    }
  }

 private:
  void write(std::string_view source, std::string_view target, std::span<std::int64_t> in,
             std::span<std::int64_t> out) const {
    std::ranges::fill(in, BytePairs::padding);
    std::ranges::fill(out, std::int64_t{-1});
    const auto theirs = tokens_->encode(source), ours = tokens_->encode(target);
    std::ranges::copy(theirs, in.begin());
    in[length_] = BytePairs::begin;
    std::ranges::copy(ours, in.subspan(length_ + 1).begin());
    std::ranges::copy(ours, out.begin());
    out[ours.size()] = BytePairs::end;
  }

  std::shared_ptr<const BytePairs> tokens_;
  Pairs pairs_;
  std::size_t length_;
};

class Translation final : public Writing {
 public:
  Translation(std::shared_ptr<const BytePairs> tokens, std::int64_t length)
      : Writing(BytePairs::begin, BytePairs::end), tokens_(std::move(tokens)), length_(length) {}
  Metric metric() const override { return bleu_metric(); }
  /// Twice the source's tokens and ten: who has not found an end by then will not.
  std::int64_t most(std::span<const std::int64_t> source) const override {
    return std::min(length_, 2 * (std::ssize(source) - std::ranges::count(source, BytePairs::padding)) + 10);
  }
  std::size_t sums() const override { return BleuSums{}.size(); }
  void judge(std::span<const std::int64_t> written, std::span<const std::int64_t> wanted,
             std::span<double> sums) const override {
    add_to_bleu(tokens_->decode(written), tokens_->decode(wanted), sums);
  }
  double value(std::span<const double> sums) const override { return bleu(sums); }

 private:
  std::shared_ptr<const BytePairs> tokens_;
  std::int64_t length_;
};

class ParallelTextSource final : public DatasetSource {
 public:
  ParallelTextSource(Config& config, std::uint64_t seed)
      : seed_(seed),
        path_(config.path("path", "",
                          "folder with the files TRAIN.SOURCE and TRAIN.TARGET, e.g. train.de and train.en; empty: "
                          "pairs of a made-up language are generated")),
        source_(config.text("source", "de", "ending of the files to translate")),
        target_(config.text("target", "en", "ending of their translations")),
        train_(config.text("train", "train", "name of the files to train on")),
        test_(config.text("test", "val", "name of the files to test on; empty: the last part of the training files")),
        test_fraction_(config.real("test_fraction", 0.1,
                                   {.min = 0.0, .max = 1.0, .min_excluded = true, .max_excluded = true},
                                   "that last part, where there are no files to test on")),
        vocabulary_(config.integer("vocabulary", 4000, Range::between(BytePairs::smallest, 1e6),
                                   "tokens of both languages together, at most")),
        length_(config.integer("length", 100, Range::between(1, 10'000),
                               "tokens of a line, at most: longer ones are not trained on, and an error in the test")),
        generated_size_(config.integer("generated_size", 4000, Range::between(20, 1e7),
                                       "pairs of lines to generate where there is no path")) {}

  DataSet load() const override {
    auto [training, testing] = pairs();
    std::vector<std::string_view> lines;
    for (const auto& [source, target] : training.lines) lines.insert(lines.end(), {source, target});
    const auto tokens =
        std::make_shared<const BytePairs>(BytePairs::learnt(lines, static_cast<std::size_t>(vocabulary_)));
    std::erase_if(training.lines, [&](const auto& pair) { return longest(*tokens, pair) > length_; });
    require_room(*tokens, training, testing);
    const TensorShape in{
        .element = TensorShape::Element::classes, .sizes = {2 * length_ + 1}, .classes = tokens->size()};
    const TensorShape out{.element = TensorShape::Element::classes, .sizes = {length_ + 1}, .classes = tokens->size()};
    const std::size_t size = training.lines.size(), room = static_cast<std::size_t>(length_);
    return {.name = "parallel_text",
            .shape = {.inputs = in, .targets = out, .padded = true},
            .train = std::make_shared<ParallelText>(tokens, std::move(training), room),
            .test = std::make_shared<ParallelText>(tokens, std::move(testing), room),
            .shares = {.size = size},
            .metrics = {bleu_metric(), loss_metric(), accuracy_metric()},
            .writing = std::make_shared<Translation>(tokens, length_),
            .vocabulary = vocabulary_file(tokens->tokens())};
  }

 private:
  static std::int64_t longest(const BytePairs& tokens, const std::pair<std::string_view, std::string_view>& pair) {
    return static_cast<std::int64_t>(std::max(tokens.encode(pair.first).size(), tokens.encode(pair.second).size()));
  }

  void require_room(const BytePairs& tokens, const Pairs& training, const Pairs& testing) const {
    if (training.lines.empty() || testing.lines.empty())
      throw DataError(training.source.origin + ": no line to " + (training.lines.empty() ? "train" : "test") +
                      " on; give more lines, or set data.length to more than " + std::to_string(length_) + " tokens");
    std::int64_t most = 0;
    for (const auto& pair : testing.lines) most = std::max(most, longest(tokens, pair));
    if (most > length_)
      throw DataError(testing.source.origin + ", " + testing.target.origin + ": a line to test on has " +
                      std::to_string(most) + " tokens; set data.length to as many (it is " + std::to_string(length_) +
                      "), or data.vocabulary to more");
  }

  /// What to train and what to test on.
  std::pair<Pairs, Pairs> pairs() const {
    Pairs training = path_.empty() ? generated() : read(train_);
    if (!path_.empty() && !test_.empty()) return {std::move(training), read(test_)};
    Pairs testing = last_part(training, test_fraction_);
    return {std::move(training), std::move(testing)};
  }

  Pairs read(const std::string& name) const {
    const auto text = [&](const std::string& ending) {
      const std::vector<std::string> names{name + "." + ending};
      return read_text(find_file(path_, names, "multi30k",
                                 download("multi30k") + ", or set data.train, data.test, data.source and data.target"));
    };
    Text source = text(source_);
    return paired(std::move(source), text(target_));
  }

  Pairs generated() const {
    std::string source, target;
    for (const auto& line : generate_translations(static_cast<std::size_t>(generated_size_), seed_)) {
      (source += line.source) += '\n';
      (target += line.target) += '\n';
    }
    return paired(text_of(std::move(source), "generated text"), text_of(std::move(target), "generated translation"));
  }

  std::uint64_t seed_;
  fs::path path_;
  std::string source_, target_, train_, test_;
  double test_fraction_;
  std::int64_t vocabulary_, length_, generated_size_;
};

}  // namespace

DatasetEntry parallel_text_entry() {
  return {.name = "parallel_text",
          .summary = "two files that are translations of each other line by line, or a made-up language pair",
          .equation = "example i: line i of the source and of the target; to be foretold: the target",
          .cost = "no communication; files stay on disk, 32 bytes a pair of lines and the vocabulary in memory",
          .citation =
              "sennrich2016neural (byte pairs); papineni2002bleu, post2018call (BLEU); made-up pairs: "
              "apps/datasets/text/toy_translation.cpp",
          .make = [](Config& config, std::uint64_t seed) -> std::unique_ptr<DatasetSource> {
            return std::make_unique<ParallelTextSource>(config, seed);
          }};
}

}  // namespace hearsay
