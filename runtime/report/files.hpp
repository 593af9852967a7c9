#pragma once
// Writing the files of a run folder. Internal to runtime/report.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace hearsay {

/// Writes a whole file or nothing: into a file beside it (FILE.NUMBER.tmp) that then takes its name. Of several writers
/// at once, the last one's text stays. Throws DataError.
void write_file(const std::filesystem::path& file, std::string_view text);

/// A file that grows while a run goes on; what is appended reaches the disk every second or so, and when the file
/// closes.
class AppendedFile {
 public:
  /// An empty file, in place of one that may be there. Throws DataError.
  explicit AppendedFile(std::filesystem::path file);
  /// Throws DataError.
  void append(std::string_view bytes);

 private:
  std::filesystem::path file_;
  std::ofstream out_;
  std::chrono::steady_clock::time_point flushed_;
};

/// A field of a CSV file, quoted (RFC 4180) where it must be.
std::string csv_field(std::string_view text);

}  // namespace hearsay
