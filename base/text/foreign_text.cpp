#include "base/text/foreign_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "base/error.hpp"
#include "base/regular_file.hpp"

namespace hearsay {

std::string_view plain_text(std::string_view text, const std::string& origin) {
  using namespace std::string_view_literals;
  constexpr std::string_view mark = "\xef\xbb\xbf";
  const bool of_16_bits = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  const bool of_32_bits = text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("\0\0\xfe\xff"sv);
  if (of_16_bits || of_32_bits) {
    const std::string encoding = of_32_bits ? "UTF-32" : "UTF-16";
    throw DataError(origin + ": is " + encoding + "; save it as UTF-8 (`iconv -f " + encoding + " -t UTF-8`)");
  }
  if (text.starts_with(mark)) text.remove_prefix(mark.size());
  return text;
}

void require_no_nul(std::string_view text, const std::string& origin, std::string_view instead) {
  const std::size_t nul = text.find('\0');
  if (nul == std::string_view::npos) return;
  throw DataError(origin + ": has a NUL byte at byte " + std::to_string(nul) +
                  ": it is no text, or UTF-16 without a mark; save it as UTF-8 (`iconv -f UTF-16LE -t UTF-8`)" +
                  std::string(instead));
}

std::string plain_file_text(const std::filesystem::path& file, std::size_t most, std::string_view remedy) {
  const std::string whole = file_text(file, most, remedy);
  const std::string_view text = plain_text(whole, file.string());
  require_no_nul(text, file.string());
  return std::string(text);
}

namespace {

unsigned char byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

/// Bytes that the lead byte of a character says it has; 0 of one that begins none.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

/// Neither written longer than it must be, nor half of a pair, nor beyond Unicode.
bool is_code_point(std::uint32_t c, std::size_t length) {
  const bool shortest = length < 3 || c >= (length == 3 ? 0x800U : 0x10000U);
  return shortest && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

/// C0, DEL and C1, which terminals obey as well, and what turns the direction of writing.
bool commands_something(std::uint32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool turns = c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  const bool breaks_line = c == 0x2028 || c == 0x2029;
  return control || turns || breaks_line;
}

/// Bytes of the character at `at` that can be shown as it is; 0 if it cannot.
std::size_t readable(std::string_view text, std::size_t at) {
  const unsigned char lead = byte_at(text, at);
  const std::size_t length = length_of(lead);
  if (length == 0 || length > text.size() - at) return 0;
  std::uint32_t c = length == 1 ? lead : lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned char next = byte_at(text, at + i);
    if ((next & 0xc0U) != 0x80U) return 0;
    c = c << 6U | (next & 0x3fU);
  }
  return is_code_point(c, length) && !commands_something(c) ? length : 0;
}

void append_escaped(std::string& out, unsigned char byte) {
  char text[8];
  std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned>(byte));
  out += byte == '\n' ? "\\n" : text;
}

/// `is_ours(at)`: the line break there stays.
std::string shown_but(std::string_view text, const auto& is_ours) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = text[at] == '\n' && is_ours(at) ? 1 : readable(text, at);
    if (length == 0)
      append_escaped(out, byte_at(text, at));
    else
      out += text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

}  // namespace

std::string shown(std::string_view text) {
  return shown_but(text, [](std::size_t) { return false; });
}

std::string shown_message(std::string_view message) {
  return shown_but(message, [&](std::size_t at) { return message.substr(at + 1).starts_with("  "); });
}

std::string shown_lines(std::string_view text) {
  return shown_but(text, [](std::size_t) { return true; });
}

}  // namespace hearsay
