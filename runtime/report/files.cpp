#include "runtime/report/files.hpp"

#include <fstream>
#include <random>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace hearsay {
namespace {

[[noreturn]] void cannot_write(const std::filesystem::path& file, const std::string& why) {
  throw DataError(file.string() + ": cannot be written (" + why + "); check the folder's permissions and free space");
}

/// A name of its own for every writer: two ranks that diverge in the same iteration both write summary.json.
std::filesystem::path unfinished_name(const std::filesystem::path& file) {
  return file.string() + "." + std::to_string(std::random_device{}()) + ".tmp";
}

}  // namespace

void write_file(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path unfinished = unfinished_name(file);
  {
    std::ofstream out(unfinished, std::ios::binary);
    out << text;
    out.close();
    if (!out) cannot_write(unfinished, "no such folder, no permission or disk full");
  }
  std::error_code error;
  std::filesystem::rename(unfinished, file, error);
  if (error) cannot_write(file, error.message());
}

AppendedFile::AppendedFile(std::filesystem::path file)
    : file_(std::move(file)),
      out_(file_, std::ios::binary | std::ios::trunc),
      flushed_(std::chrono::steady_clock::now()) {
  if (!out_) throw DataError(file_.string() + ": cannot be opened for writing; every rank must see the run folder");
}

void AppendedFile::append(std::string_view bytes) {
  constexpr std::chrono::seconds flush_interval{1};
  out_ << bytes;
  const auto now = std::chrono::steady_clock::now();
  if (now - flushed_ >= flush_interval) {
    out_.flush();
    flushed_ = now;
  }
  if (!out_) throw DataError(file_.string() + ": cannot be written; is the disk full?");
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace hearsay
