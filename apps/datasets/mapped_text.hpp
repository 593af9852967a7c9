#pragma once
// Texts as they lie in files: mapped, so that what is not read is not in memory, and one larger than memory will do.
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hearsay {

/// Characters that stay where they are as long as the text, or a copy of it, lives.
struct Text {
  std::string origin;  ///< the file, for messages
  std::string_view characters;
  std::shared_ptr<const void> owner;
};

/// The text that memory holds.
Text text_of(std::string characters, std::string origin);
/// Maps a file; `.gz` and `.xz` are unpacked into memory, up to 1 GiB. Throws DataError if it cannot be read, is no
/// regular file, or is empty.
Text read_bytes(const std::filesystem::path& file);
/// The same of a text: without a byte order mark. Throws DataError as above and as `plain_text` does.
Text read_text(const std::filesystem::path& file);
/// `read` of a file, or of all files of a folder and those in it, by name; hidden ones apart, and each once, whatever
/// links lead to it. Throws DataError as above, and for a folder without files.
std::vector<Text> read_texts(const std::filesystem::path& file_or_folder, Text (*read)(const std::filesystem::path&));

}  // namespace hearsay
