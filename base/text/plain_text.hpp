#pragma once
// Text files of others, whatever program has written them: editors and spreadsheets put a byte order mark first, which
// nobody sees, or write UTF-16.
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace hearsay {

/// `text` without UTF-8's byte order mark, if it has one. Throws DataError, naming `origin`, if its mark is that of
/// UTF-16 or UTF-32.
std::string_view plain_text(std::string_view text, const std::string& origin);

/// Throws DataError, naming `origin` and the place, if there is a NUL byte, which no text has. `instead` ends the
/// message.
void require_no_nul(std::string_view text, const std::string& origin, std::string_view instead = "");

/// Such a text of a plain file. Throws DataError as `file_text` and both of these do.
std::string plain_file_text(const std::filesystem::path& file, std::size_t most, std::string_view remedy = "");

}  // namespace hearsay
