#pragma once
// Texts of others. In files, whatever program has written them: editors and spreadsheets put a byte order mark first,
// which nobody sees, or write UTF-16. On a terminal: what a file, a name or an argument says is shown, and commands the
// terminal nothing.
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

/// `text` in one line that is all to be seen: line breaks as \n, other control characters and bytes that are no UTF-8
/// as \x1b. What can be read stays as it is.
std::string shown(std::string_view text);

/// The same of a message of ours, whose own further lines begin with two blanks: their line breaks stay.
std::string shown_message(std::string_view message);

/// The same of a text of ours that has many lines: line breaks stay. What others say in it has been through `shown`.
std::string shown_lines(std::string_view text);

}  // namespace hearsay
