#pragma once
// Files that somebody else has named: opened without waiting, and refused where they are no plain files.
//
// Opening a FIFO waits until somebody writes to it, a terminal is never at its end, and some devices answer with zeros
// for ever: a name in a configuration may lead to any of them.
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace hearsay {

/// A plain file, open for reading from its start. Move-only.
class RegularFile {
 public:
  /// Throws DataError, which says what the name leads to ("is a FIFO, a file was expected"); `remedy` ends the message.
  explicit RegularFile(std::filesystem::path path, std::string_view remedy = "");
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile();

  /// Bytes, when it was opened.
  std::size_t size() const { return size_; }
  /// Passes over so many bytes.
  void skip(std::size_t bytes);
  /// The next bytes.size() bytes. Throws DataError if there are fewer.
  void read(std::span<std::byte> bytes);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
};

/// The whole of a plain file. Throws DataError as RegularFile does, or if it has more than `most` bytes.
std::string file_text(const std::filesystem::path& path, std::size_t most, std::string_view remedy = "");

}  // namespace hearsay
