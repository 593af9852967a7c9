#pragma once
// What is in a user's folders, by name: hidden things apart, and each thing once, whatever links lead to it.
#include <filesystem>
#include <vector>

namespace hearsay {

/// One thing in a folder.
struct FolderEntry {
  std::filesystem::path path;    ///< as it is called there
  std::filesystem::path real{};  ///< without links: where it is
  bool is_link = false;
  bool is_folder = false;  ///< or a link to one
};

/// What is in a folder. Of several links to one thing, and the thing itself, the first by name stands. Throws DataError
/// that names the folder if it cannot be read, or a link that leads nowhere or to itself.
std::vector<FolderEntry> entries_of(const std::filesystem::path& folder);

/// The files in a folder and in those within it. Links to folders are not followed. Throws DataError as above.
std::vector<std::filesystem::path> files_within(const std::filesystem::path& folder);

}  // namespace hearsay
