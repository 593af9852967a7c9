// Texts as sequences: examples are those windows of the file that an independent reading of it gives.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "apps/datasets/text/toy_grammar.hpp"
#include "base/error.hpp"
#include "tests/runtime/data/load.hpp"
#include "tests/runtime/data/temporary_files.hpp"

namespace text_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

using Tokens = std::vector<std::int64_t>;

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

struct Example {
  Tokens inputs, targets;
};

Example example(const DataSet& data, const Examples& examples, std::uint32_t index) {
  const std::size_t length = data.shape.inputs.count();
  Example made{Tokens(length), Tokens(length)};
  examples.batch(std::vector{index}, std::span(made.inputs), std::span(made.targets), nullptr);
  return made;
}

/// The examples of `examples`, one after the other, are the windows that begin every `stride` tokens.
void check_windows(const DataSet& data, const Examples& examples, const Tokens& tokens, std::size_t stride) {
  const std::size_t length = data.shape.inputs.count();
  REQUIRE(examples.size() == (tokens.size() - length - 1) / stride + 1);
  for (std::uint32_t i = 0; i < examples.size(); ++i) {
    const auto [inputs, targets] = example(data, examples, i);
    const auto at = tokens.begin() + static_cast<std::ptrdiff_t>(i * stride);
    CHECK(std::equal(inputs.begin(), inputs.end(), at));
    CHECK(std::equal(targets.begin(), targets.end(), at + 1));
  }
}

Tokens part(const Tokens& tokens, std::size_t first, std::size_t last) {
  return {tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.begin() + static_cast<std::ptrdiff_t>(last)};
}

std::string yaml(const TemporaryFolder& folder, const std::string& file, const std::string& more) {
  return "{path: " + (folder.path() / file).string() + ", " + more + "}";
}

constexpr const char* with_accents = "Grüße, Œuvre: 是 𝄞!\n\nÀ la carte – ça va?\n";

}  // namespace

TEST_CASE("text: characters are numbered in the order of their code points, and examples are windows of the file") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 5; ++i) text += with_accents;
  folder.write("text.txt", bytes_of(text));

  // Read once more, by hand: how many bytes a character has stands in its first one.
  std::vector<std::string> characters;
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    characters.push_back(text.substr(at, size));
    at += size;
  }
  const std::set<std::string> known(characters.begin(), characters.end());  // in UTF-8, bytes sort like code points
  Tokens tokens;
  for (const std::string& c : characters)
    tokens.push_back(static_cast<std::int64_t>(std::distance(known.begin(), known.find(c))));

  for (const std::size_t stride : {std::size_t{0}, std::size_t{1}, std::size_t{5}}) {
    CAPTURE(stride);
    const DataSet data =
        load_set("text", yaml(folder, "text.txt", "block: 7, test_fraction: 0.25, stride: " + std::to_string(stride)));
    CHECK(data.shape.inputs.classes == static_cast<std::int64_t>(known.size()));
    CHECK(data.shape.inputs == data.shape.targets);
    const auto kept = static_cast<std::size_t>(static_cast<double>(tokens.size()) * 0.75);
    check_windows(data, *data.train, part(tokens, 0, kept), stride == 0 ? 7 : stride);
    check_windows(data, *data.test, part(tokens, kept, tokens.size()), 7);
    CHECK(data.shares.size == data.train->size());
  }
}

TEST_CASE("text: bytes are their own numbers, and need not be UTF-8") {
  const TemporaryFolder folder;
  Bytes bytes;
  for (int i = 0; i < 600; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 37));
  folder.write("noise", bytes);
  const DataSet data = load_set("text", yaml(folder, "noise", "unit: bytes, block: 10"));
  CHECK(data.shape.inputs.classes == 256);
  check_windows(data, *data.train, Tokens(bytes.begin(), bytes.begin() + 540), 10);
  const auto message = message_of<DataError>([&] { load_set("text", yaml(folder, "noise", "block: 10")); });
  CHECK(contains(message, "at byte 4: is not UTF-8"));
  CHECK(contains(message, "data.unit"));
}

TEST_CASE("text: packed files are read like plain ones; a folder's files are documents, and no sequence crosses them") {
  const TemporaryFolder plain, packed;
  const std::string one(40, 'a'), two(80, 'b');
  plain.write("1.txt", bytes_of(one));
  plain.write("2.txt", bytes_of(two));
  plain.write(".hidden", bytes_of("zzzzzzzzzz"));
  packed.write("1.txt.gz", gzip(bytes_of(one)));
  packed.write("2.txt.xz", xz(bytes_of(two)));
  for (const TemporaryFolder* folder : {&plain, &packed}) {
    const DataSet data = load_set("text", "{path: " + folder->path().string() + ", block: 4, test_fraction: 0.5}");
    CHECK(data.shape.inputs.classes == 2);
    CHECK(data.shares.groups == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    CHECK(data.shares.count == 2);
    for (std::uint32_t i = 0; i < data.train->size(); ++i) {
      const auto [inputs, targets] = example(data, *data.train, i);
      CHECK(inputs == Tokens(4, data.shares.groups[i]));
      CHECK(targets == inputs);
    }
  }
}

TEST_CASE("text: paragraphs are documents where that is asked for") {
  const TemporaryFolder folder;
  folder.write("text", bytes_of("aaaa\n\nbbbb\n\ncccc\n\ndddddddddddddddddddd"));
  const DataSet data =
      load_set("text", yaml(folder, "text", "block: 3, stride: 6, test_fraction: 0.4, documents: paragraph"));
  CHECK(data.shares.groups == std::vector<std::uint32_t>{0, 1, 2, 3});
  const DataSet whole = load_set("text", yaml(folder, "text", "block: 3, stride: 6, test_fraction: 0.4"));
  CHECK(whole.shares.groups == std::vector<std::uint32_t>(4, 0));
}

TEST_CASE("text: a mark is no character, lines may end as on Windows, and a file is read once") {
  const TemporaryFolder folder;
  folder.write("text", bytes_of("\xef\xbb\xbf"
                                "aaaa\r\n\r\nbbbb\r\n\r\ncccc\r\n\r\ndddddddddddddddddddd"));
  const DataSet data =
      load_set("text", yaml(folder, "text", "block: 3, stride: 8, test_fraction: 0.4, documents: paragraph"));
  CHECK(data.shape.inputs.classes == 6);  // a, b, c, d and the two of a line's end
  CHECK(data.shares.groups == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(load_set("text", yaml(folder, "text", "unit: bytes, block: 3")).train->size() > 0);

  const TemporaryFolder linked;
  linked.write("1.txt", bytes_of(std::string(400, 'a')));
  const auto all = [&] { return load_set("text", "{path: " + linked.path().string() + ", block: 4}").train->size(); };
  const std::size_t once = all();
  std::filesystem::create_symlink("1.txt", linked.path() / "2.txt");
  std::filesystem::create_directory_symlink(".", linked.path() / "loop");
  CHECK(all() == once);
  std::filesystem::create_symlink("3.txt", linked.path() / "3.txt");
  CHECK(contains(message_of<DataError>(all), "3.txt: is a link that leads nowhere: Too many levels"));
}

TEST_CASE("text: what cannot be learnt from is an error that says what to do") {
  const TemporaryFolder folder;
  folder.write("empty", {});
  folder.write("short", bytes_of("twenty characters!!!"));
  const auto error = [&](const std::string& file, const std::string& more) {
    return message_of<DataError>([&] { load_set("text", yaml(folder, file, more)); });
  };
  CHECK(contains(error("empty", ""), "is empty"));
  CHECK(contains(error("missing", ""), "cannot be opened: No such file"));
  CHECK(contains(error("short", ""), "the training part has not the 65 tokens of one sequence; set data.block"));
  CHECK(contains(error("short", "block: 10"), "the test part"));
  CHECK(contains(error("short", "block: 19"), "the training part"));
  REQUIRE(mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK(contains(error("pipe", ""), "is no regular file"));
  const TemporaryFolder nothing;
  CHECK(contains(error("../" + nothing.path().filename().string(), ""), "has no files"));
  CHECK_THROWS_AS(load_set("text", "{test_fraction: 1}"), ConfigError);
  CHECK_THROWS_AS(load_set("text", "{unit: letters}"), ConfigError);
}

TEST_CASE("generated text: topics are groups, seeds repeat, and a longer text begins with a shorter one") {
  const DataSet data = load_set("text", "{generated_size: 60000}");
  CHECK(data.shares.count == grammar_topics);
  CHECK(std::set(data.shares.groups.begin(), data.shares.groups.end()).size() == grammar_topics);
  CHECK(data.metrics.front().name == "loss");
  const auto one = generate_text(5000, 3).text;
  CHECK(one.size() == 5000);
  CHECK(generate_text(9000, 3).text.starts_with(one));
  CHECK(generate_text(5000, 4).text != one);
}

TEST_CASE("generated text has the entropy that is stated, and no compressor finds less") {
  double bits = 0.0, characters = 0.0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const GeneratedText made = generate_text(200'000, seed);
    bits += made.bits, characters += 200'000;
  }
  CHECK(bits / characters == doctest::Approx(grammar_entropy()).epsilon(0.01));  // one sigma is 0.2 %
  const std::string text = generate_text(400'000, 1).text;
  CHECK(8.0 * static_cast<double>(xz(bytes_of(text)).size()) / 400'000 > grammar_entropy());

  // Nor does a table of what follows k characters, scored on what it has counted itself.
  for (const std::size_t k : {std::size_t{1}, std::size_t{3}, std::size_t{5}}) {
    std::map<std::string, std::map<char, double>> follows;
    for (std::size_t i = k; i < text.size(); ++i) ++follows[text.substr(i - k, k)][text[i]];
    double sum = 0.0;
    for (const auto& [context, next] : follows) {
      double all = 0.0;
      for (const auto& [c, n] : next) all += n;
      for (const auto& [c, n] : next) sum -= n * std::log2(n / all);
    }
    CHECK(sum / 400'000 > grammar_entropy());
  }
}

TEST_CASE("words: the training text's, the most frequent first, lines end with one of their own") {
  const TemporaryFolder folder;
  folder.write("ptb.train.txt", bytes_of(" the cat <unk> the dog \n the cat sat \n the end \n"));
  folder.write("ptb.valid.txt", bytes_of("the bird sat\nthe dog"));
  const DataSet data = load_set("words", "{path: " + folder.path().string() + ", block: 2, stride: 1}");
  // the 4, \n 3, cat 2, then by alphabet: <unk> dog end sat
  CHECK(data.shape.inputs.classes == 7);
  const std::int64_t the = 0, end = 1, cat = 2, unk = 3, dog = 4, last = 5, sat = 6;
  check_windows(data, *data.train, {the, cat, unk, the, dog, end, the, cat, sat, end, the, last, end}, 1);
  check_windows(data, *data.test, {the, unk, sat, end, the, dog}, 2);
  CHECK(data.metrics.front().name == "perplexity");
  CHECK_FALSE(data.metrics.front().higher_is_better);

  const DataSet few = load_set("words", "{path: " + folder.path().string() + ", block: 2, stride: 1, vocabulary: 3}");
  CHECK(few.shape.inputs.classes == 3);  // the, \n, <unk>
  check_windows(few, *few.train, {0, 2, 2, 0, 2, 1, 0, 2, 2, 1, 0, 2, 1}, 1);
}

TEST_CASE("words: a word that nobody knows is an error, unless the training text has <unk>") {
  const TemporaryFolder folder;
  folder.write("train.txt", bytes_of("a b c a b c\n"));
  folder.write("valid.txt", bytes_of("a b\nb d c\n"));
  const std::string path = "{path: " + folder.path().string() + ", block: 1";
  const auto message = message_of<DataError>([&] { load_set("words", path + "}"); });
  CHECK(contains(message, "valid.txt: line 2: the word 'd' is not in the training text"));
  CHECK(load_set("words", path + ", vocabulary: 3}").shape.inputs.classes == 3);
  CHECK(
      contains(message_of<DataError>([&] { load_set("words", path + ", test_on: test}"); }), "ptb.test.txt, test.txt"));
}

TEST_CASE("generated words are learnt from without files") {
  const DataSet data = load_set("words", "{generated_size: 50000}");
  CHECK(data.shape.inputs.classes > 150);
  CHECK(data.shares.groups.empty());
  const auto [inputs, targets] = example(data, *data.test, 0);
  CHECK(std::ranges::all_of(inputs, [&](std::int64_t t) { return t >= 0 && t < data.shape.inputs.classes; }));
}

TEST_CASE("a vocabulary is a line a token, in order, whatever the token is") {
  const TemporaryFolder folder;
  folder.write("text.txt", bytes_of(std::string(with_accents) + "\\\t\x01" + std::string(300, 'a')));
  const DataSet characters = load_set("text", yaml(folder, "text.txt", "block: 4"));
  std::vector<std::string> lines;
  std::istringstream stream(characters.vocabulary);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  REQUIRE(std::ssize(lines) == characters.shape.inputs.classes);
  CHECK(lines[0] == "\\x01");
  CHECK(lines[1] == "\\t");
  CHECK(lines[2] == "\\n");
  CHECK(lines[3] == " ");
  CHECK(std::ranges::count(lines, "\\\\") == 1);
  CHECK(std::ranges::count(lines, "ü") == 1);
  const DataSet bytes = load_set("text", yaml(folder, "text.txt", "block: 4, unit: bytes"));
  CHECK(bytes.vocabulary.starts_with("\\x00\n\\x01\n"));
  CHECK(bytes.vocabulary.ends_with("\\xfe\n\\xff\n"));
  folder.write("train.txt", bytes_of("a b c a b c\n"));
  folder.write("valid.txt", bytes_of("a b\n"));
  CHECK(load_set("words", "{path: " + folder.path().string() + ", block: 1}").vocabulary == "a\nb\nc\n\\n\n");
}

}  // namespace text_test
