#pragma once
// Writing the files of a run folder. Internal to runtime/report.
#include <filesystem>
#include <string>
#include <string_view>

namespace hearsay {

/// Writes a whole file or nothing: into a file beside it (FILE.NUMBER.tmp) that then takes its name. Of several writers
/// at once, the last one's text stays. Throws DataError.
void write_file(const std::filesystem::path& file, std::string_view text);

/// A field of a CSV file, quoted (RFC 4180) where it must be.
std::string csv_field(std::string_view text);

}  // namespace hearsay
