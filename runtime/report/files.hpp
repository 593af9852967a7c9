#pragma once
// Writing the files of a run folder: whole or not at all, and never through a link out of it.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearsay {

/// Writes a whole file or nothing: into a file beside it (FILE.hearsay-NUMBER.tmp) that then takes its name. Of several
/// writers at once, the last one's text stays. Throws DataError; nothing is left behind then.
void write_file(const std::filesystem::path& file, std::string_view text);

/// The same of several parts. `durable`: on the disk before it takes its name, so that a machine that stops has the
/// whole file, or the one before it.
void write_file(const std::filesystem::path& file, std::initializer_list<std::string_view> parts, bool durable);

/// The number in PREFIX123ENDING, of at most 15 digits; nothing in another name.
std::optional<std::uint64_t> number_in_name(std::string_view name, std::string_view prefix, std::string_view ending);

/// A folder itself, not a link to one.
bool is_own_folder(const std::filesystem::path& path);

/// Cuts a plain file to `size` bytes, if it has more. Throws DataError.
void cut_file(const std::filesystem::path& file, std::uintmax_t size);

/// A file that grows while a run goes on, record by record; what is appended reaches the disk every second or so, and
/// when the file closes. A record that cannot be written is lost as a whole, and said to be so: what the file has is
/// whole records, and the run goes on. Move-only.
class AppendedFile {
 public:
  /// A new file. Throws DataError, also where there is one of this name already.
  explicit AppendedFile(std::filesystem::path file);
  /// One that an earlier part of the run has written: its first `keep` bytes stay, and what is appended follows. Where
  /// they are not there any more, it begins with what there is, and `problem` says so. Throws DataError if it is no
  /// plain file.
  AppendedFile(std::filesystem::path file, std::uintmax_t keep);
  AppendedFile(AppendedFile&& other) noexcept;
  AppendedFile& operator=(AppendedFile&&) = delete;
  ~AppendedFile();

  void append(std::string_view record);
  /// Writes what has been appended, and looks whether the file is still there.
  void flush();
  /// What could not be written, and why; empty if nothing was lost.
  std::string problem() const;
  const std::filesystem::path& path() const { return file_; }
  /// Bytes of whole records that are in the file.
  std::uintmax_t size() const { return size_; }

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
  std::uintmax_t size_ = 0;  // of whole records in the file
  std::string waiting_{};    // whole records
  std::uint64_t records_waiting_ = 0, records_lost_ = 0;
  std::string reason_{};  // why the first was lost, or that the file is not there any more
  std::chrono::steady_clock::time_point flushed_;
};

/// Files that could not be written, and why: each kind of trouble once, in the words of the first, with a count. Words
/// that differ in their numbers only are of one kind: a checkpoint in every period, the metrics of every rank.
class Unwritten {
 public:
  /// Whether it is the first of its kind.
  bool add(const std::string& words, std::uint64_t times = 1);
  void add(const Unwritten& others);
  /// A sentence a kind, in the order in which they came.
  std::vector<std::string> lines() const;
  /// As text, and back: to be gathered on one rank.
  std::string packed() const;
  static Unwritten unpacked(const std::string& text);

 private:
  struct Kind {
    std::string kind, words;
    std::uint64_t times;
  };
  std::vector<Kind> kinds_;
};

/// A field of a CSV file, quoted (RFC 4180) where it must be.
std::string csv_field(std::string_view text);

}  // namespace hearsay
