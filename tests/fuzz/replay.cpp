// fuzz_TARGET [--seconds S] [--runs N] [--from N] [--write FOLDER] [FILE…]
//
// Without FILEs: the target's seeds as they are, then mutations of them, the n-th the same on every machine, until S
// seconds or N runs are over. With FILEs: those (inputs that once failed). --write: seeds and dictionary for libFuzzer.
// An input that ends the process, or that takes ten seconds, is left in ./failed-TARGET.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <fstream>
#include <iterator>

#include "base/random.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using hearsay::Random;
constexpr std::size_t longest = 4096;
constexpr unsigned patience_s = 10;

/// What a signal's handler needs: the process may be in any state.
std::string current;
std::string failed_name;

void leave_input(int signal) {
  const int file = ::open(failed_name.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const bool left = file >= 0 && ::write(file, current.data(), current.size()) >= 0;
  const char* words = left ? "fuzz: the input is left in ./failed-TARGET\n" : "fuzz: the input cannot be written\n";
  static_cast<void>(::write(STDERR_FILENO, words, std::strlen(words)) < 0);
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

std::size_t below(Random& random, std::size_t n) { return static_cast<std::size_t>(random.below(n)); }

/// One small change of `text`.
void change(std::string& text, Random& random, const std::vector<std::string>& words,
            const std::vector<std::string>& seeds) {
  const std::size_t at = below(random, text.size() + 1);
  const std::size_t length = 1 + below(random, 1 + below(random, 32));
  constexpr std::uint64_t numbers[]{0,      1,      2,          0x7f,       0x80,  0xff,
                                    0x7fff, 0xffff, 0x7fffffff, 0xffffffff, ~0ULL, 1ULL << 40};
  switch (below(random, 8)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8)));
      break;
    case 1:
      if (at < text.size()) text[at] = static_cast<char>(below(random, 256));
      break;
    case 2:
      text.insert(at, length, static_cast<char>(below(random, 256)));
      break;
    case 3:
      text.erase(at, length);
      break;
    case 4:
      text.insert(at, text.substr(below(random, text.size() + 1), length));
      break;
    case 5:
      if (!words.empty()) text.insert(at, words[below(random, words.size())]);
      break;
    case 6: {
      const std::string number = hearsay::fuzz::raw(numbers[below(random, std::size(numbers))]);
      text.replace(at, std::min(text.size() - at, std::size_t{1} << below(random, 4)), number, 0,
                   std::size_t{1} << below(random, 4));
      break;
    }
    default: {
      const std::string& other = seeds[below(random, seeds.size())];
      text = text.substr(0, at) + other.substr(below(random, other.size() + 1));
    }
  }
  if (text.size() > longest) text.resize(longest);
}

void run(std::string input) {
  current = std::move(input);
  // A copy that ends where the input does: reading behind it is noticed.
  const std::vector<std::uint8_t> bytes(current.begin(), current.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void write_corpus(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "corpus");
  std::size_t number = 0;
  for (const std::string& seed : hearsay::fuzz::seeds())
    std::ofstream(folder / "corpus" / std::to_string(number++), std::ios::binary) << seed;
  std::ofstream dictionary(folder / "dictionary");
  for (const std::string& word : hearsay::fuzz::words()) {
    dictionary << '"';
    for (const char c : word) {
      char code[5];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      dictionary << code;
    }
    dictionary << "\"\n";
  }
}

struct Arguments {
  double seconds = 1.0;
  std::uint64_t runs = ~std::uint64_t{0}, from = 0;
  std::vector<std::string> files;
};

void fuzz(const Arguments& arguments) {
  const auto seeds = hearsay::fuzz::seeds(), words = hearsay::fuzz::words();
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  for (const std::string& seed : seeds) run(seed);
  std::uint64_t n = arguments.from;
  for (; n - arguments.from < arguments.runs; ++n) {
    ::alarm(patience_s);
    if (seconds() >= arguments.seconds) break;
    Random random(hearsay::stream_seed(1, "fuzz", n));
    std::string input = seeds[below(random, seeds.size())];
    for (std::size_t changes = 1 + below(random, 8); changes > 0; --changes) change(input, random, words, seeds);
    run(std::move(input));
  }
  std::printf("%zu seeds, %llu mutations, %.0f s\n", seeds.size(), static_cast<unsigned long long>(n - arguments.from),
              seconds());
}

}  // namespace

int main(int argc, char** argv) {
  failed_name = "failed-" + std::filesystem::path(argv[0]).filename().string();
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) std::signal(signal, leave_input);
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string("0"); };
    if (word == "--seconds") {
      arguments.seconds = std::stod(value());
    } else if (word == "--runs") {
      arguments.runs = std::stoull(value());
      arguments.seconds = 1e9;
    } else if (word == "--from") {
      arguments.from = std::stoull(value());
    } else if (word == "--write") {
      write_corpus(value());
      return 0;
    } else {
      arguments.files.push_back(word);
    }
  }
  for (const std::string& file : arguments.files) {
    std::ifstream in(file, std::ios::binary);
    run({std::istreambuf_iterator<char>(in), {}});
  }
  if (arguments.files.empty()) fuzz(arguments);
  return 0;
}
