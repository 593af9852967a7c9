#include "base/text/plain_text.hpp"

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

}  // namespace hearsay
