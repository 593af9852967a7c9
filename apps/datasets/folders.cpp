#include "apps/datasets/folders.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& what, const std::error_code& error) {
  throw DataError(path.string() + ": " + what + ": " + error.message());
}

fs::path real_path(const fs::path& path, const std::string& what) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error) refuse(path, what, error);
  return real;
}

/// Without asking the file system for what is no link: there may be millions, far away.
FolderEntry looked_at(const fs::directory_entry& entry, const fs::path& real_folder) {
  std::error_code error;
  const bool is_link = entry.is_symlink(error);
  FolderEntry made{.path = entry.path(), .is_link = is_link};
  made.real = is_link ? real_path(made.path, "is a link that leads nowhere") : real_folder / made.path.filename();
  made.is_folder = entry.is_directory(error);
  if (error) refuse(made.path, "cannot be looked at", error);
  return made;
}

/// The first by name of those that are one thing.
void keep_first(std::vector<FolderEntry>& entries) {
  std::ranges::sort(entries, {}, &FolderEntry::path);
  std::ranges::stable_sort(entries, {}, &FolderEntry::real);
  const auto same = std::ranges::unique(entries, {}, &FolderEntry::real);
  entries.erase(same.begin(), same.end());
  std::ranges::sort(entries, {}, &FolderEntry::path);
}

/// All that is there, hidden things apart.
std::vector<FolderEntry> all_entries(const fs::path& folder) {
  constexpr const char* unreadable = "the folder cannot be read";
  const fs::path real = real_path(folder, unreadable);
  std::vector<FolderEntry> entries;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (!entry->path().filename().string().starts_with('.')) entries.push_back(looked_at(*entry, real));
  if (error) refuse(folder, unreadable, error);
  return entries;
}

void add_files(const fs::path& folder, std::vector<FolderEntry>& files) {
  for (FolderEntry& entry : all_entries(folder)) {
    if (!entry.is_folder)
      files.push_back(std::move(entry));
    else if (!entry.is_link)
      add_files(entry.path, files);
  }
}

}  // namespace

std::vector<FolderEntry> entries_of(const fs::path& folder) {
  std::vector<FolderEntry> entries = all_entries(folder);
  keep_first(entries);
  return entries;
}

std::vector<fs::path> files_within(const fs::path& folder) {
  std::vector<FolderEntry> entries;
  add_files(folder, entries);
  keep_first(entries);
  std::vector<fs::path> files;
  for (FolderEntry& entry : entries) files.push_back(std::move(entry.path));
  return files;
}

}  // namespace hearsay
