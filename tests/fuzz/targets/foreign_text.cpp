// Any bytes as they are shown on a terminal: no control character is left, what is shown is shown as it is, and only
// where line breaks are ours they stay.
#include "base/text/foreign_text.hpp"
#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {

std::vector<std::string> seeds() {
  return {"\x1b]0;X\a\x1b[2J", "Größe 32×32 – 🙂\n  zwei\nhearsay: fine\n",
          "\xef\xbb\xbf"
          "a,b\r\n",
          "\xc2\x9b\xe2\x80\xae"};
}

std::vector<std::string> words() {
  return {"\x1b",         "\n",       "\n  ",     "\xc3\xa9", "\xf0\x9f\x98\x80",
          "\xed\xa0\x80", "\xff\xfe", "\xc0\x80", "\x7f",     "\\x1b"};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string line = shown(text);
  for (const char c : line) fuzz::require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "nothing to obey");
  fuzz::require(shown(line) == line, "what is shown stays");
  const std::string lines = shown_lines(text), message = shown_message(text);
  fuzz::require(shown_lines(lines) == lines && shown_message(message) == message, "so do lines and messages");
  try {
    const std::string_view plain = plain_text(text, "fuzz");
    fuzz::require(text.ends_with(plain) && text.size() - plain.size() <= 3, "at most a mark is taken off");
  } catch (const DataError&) {
  }
  return 0;
}
