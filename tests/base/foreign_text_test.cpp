// Text of others: what commands a terminal is shown as what it is, and marks that nobody sees do not change what a file
// says.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/config/config.hpp"
#include "base/error.hpp"
#include "base/text/foreign_text.hpp"

namespace foreign_text_test {

using namespace hearsay;
using namespace std::string_literals;

namespace {

std::string refusal(const std::string& text) {
  try {
    require_no_nul(plain_text(text, "some.txt"), "some.txt");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("shown: control characters are seen and not obeyed, and what can be read stays") {
  CHECK(shown("\x1b]0;X\a\x1b[2J") == "\\x1b]0;X\\x07\\x1b[2J");
  CHECK(shown("a\r\nb\tc"s + '\0' + "\x7f") == "a\\x0d\\nb\\x09c\\x00\\x7f");
  CHECK(shown("Größe 32×32 – „模型“ 🙂") == "Größe 32×32 – „模型“ 🙂");
  CHECK(shown("\xc2\x9b"
              "31m") == "\\xc2\\x9b31m");  // a C1 control: CSI in one character
  CHECK(shown("\xe2\x80\xae"
              "abc") ==
        "\\xe2\\x80\\xae"
        "abc");  // right to left from here on
  CHECK(shown("") == "");
}

TEST_CASE("shown: what is no UTF-8 is shown byte by byte") {
  CHECK(shown("\xff\xfe") == "\\xff\\xfe");
  CHECK(shown("a\xc3") == "a\\xc3");                           // ends within a character
  CHECK(shown("\xc0\xaf") == "\\xc0\\xaf");                    // longer than it must be
  CHECK(shown("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // half of a pair
  CHECK(shown("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond Unicode
  for (int byte = 0; byte < 256; ++byte)
    for (const unsigned char c : shown(std::string(1, static_cast<char>(byte)))) CHECK((c >= 0x20 && c < 0x7f));
}

TEST_CASE("shown: line breaks are ours in a text of ours, and where two blanks follow in a message") {
  CHECK(shown_message("2 errors\n  a\n  b\nhearsay: all is well\n") == "2 errors\n  a\n  b\\nhearsay: all is well\\n");
  CHECK(shown_lines("a\n\x1b[2Jb\n") == "a\n\\x1b[2Jb\n");
}

TEST_CASE("plain_text: a byte order mark is taken off; UTF-16, UTF-32 and NUL bytes are named") {
  CHECK(plain_text("\xef\xbb\xbf"
                   "a,b\n",
                   "some.txt") == "a,b\n");
  CHECK(plain_text("a\xef\xbb\xbf", "some.txt") == "a\xef\xbb\xbf");
  CHECK(plain_text("", "some.txt").empty());
  CHECK(contains(refusal("\xff\xfe"
                         "a\0b\0"s),
                 "some.txt: is UTF-16; save it as UTF-8"));
  CHECK(contains(refusal("\xfe\xff\0a"s), "is UTF-16"));
  CHECK(contains(refusal("\xff\xfe\0\0a\0\0\0"s), "is UTF-32"));
  CHECK(contains(refusal("a\0b\0"s), "a NUL byte at byte 1"));
}

TEST_CASE("a configuration with a byte order mark and CRLF line ends is the same without") {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("mark" + std::to_string(::getpid()));
  std::ofstream(file) << "\xef\xbb\xbfseed: 7\r\nmodel: {name: mlp}\r\n\r\n";
  Config config = Config::from_file(file);
  CHECK(config.integer("seed", 0, Range::at_least(0), "") == 7);
  CHECK(config.section("model").text("name", "", "") == "mlp");
  config.document().throw_if_invalid();
  std::ofstream(file) << "\xff\xfes\0e\0"s;
  CHECK_THROWS_AS(Config::from_file(file), DataError);
  std::filesystem::remove(file);
}

TEST_CASE("what a configuration says is shown in messages, and commands nothing") {
  Config config = Config::from_text("model: \"\\e[2J\\nhearsay: fine\"\n\"k\\u009by\": 1\n", "a.yaml");
  CHECK(config.choice("model", "mlp", {"mlp"}, "") == "mlp");
  try {
    config.document().throw_if_invalid();
    FAIL("nothing was thrown");
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    CHECK(contains(message, "unknown '\\x1b[2J\\nhearsay: fine'"));
    CHECK(contains(message, "k\\xc2\\x9by: unknown key"));
    CHECK(shown_message(message) == message);
  }
}

}  // namespace foreign_text_test
