#include "runtime/report/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "runtime/report/identity/run_id.hpp"

namespace hearsay {
namespace {

constexpr std::size_t buffered_bytes = 8192;

std::string words_of_errno() { return std::generic_category().message(errno); }

[[noreturn]] void cannot_write(const std::filesystem::path& file, const std::string& why) {
  throw DataError(file.string() + ": cannot be written (" + why + "); check the folder's permissions and free space");
}

/// A name of its own for every writer: two ranks that diverge in the same iteration both write summary.json.
std::filesystem::path unfinished_name(const std::filesystem::path& file) {
  return file.string() + "." + new_run_id() + ".tmp";
}

/// A new file, or −1 (errno).
int make(const std::filesystem::path& file) {
  return ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

/// False if not all of it could be written (errno).
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

namespace {

void write_parts(const std::filesystem::path& file, std::initializer_list<std::string_view> parts, bool durable) {
  const std::filesystem::path unfinished = unfinished_name(file);
  const int descriptor = make(unfinished);
  if (descriptor < 0) cannot_write(file, words_of_errno());
  bool whole = true;
  for (const std::string_view part : parts) whole = whole && write_all(descriptor, part);
  if (durable) whole = whole && ::fsync(descriptor) == 0;
  const int why = whole ? 0 : errno;
  whole = ::close(descriptor) == 0 && whole;  // some file systems notice only here that a disk is full
  if (!whole) {
    const std::string words = std::generic_category().message(why != 0 ? why : errno);
    ::unlink(unfinished.c_str());
    cannot_write(file, words);
  }
  if (::rename(unfinished.c_str(), file.c_str()) != 0) {
    const std::string words = words_of_errno();
    ::unlink(unfinished.c_str());
    cannot_write(file, words);
  }
}

/// So that a new name is there after the machine has stopped. Some file systems cannot.
void bring_names_to_disk(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

void write_file(const std::filesystem::path& file, std::string_view text) { write_parts(file, {text}, false); }

void write_file(const std::filesystem::path& file, std::initializer_list<std::string_view> parts, bool durable) {
  write_parts(file, parts, durable);
  if (durable) bring_names_to_disk(file.parent_path());
}

namespace {

/// An existing plain file of `size` bytes, open for writing; −1 (errno) where there is none.
int reopen(const std::filesystem::path& file, std::uintmax_t& size) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  struct stat open {};
  if (descriptor < 0 || ::fstat(descriptor, &open) != 0) return -1;
  if (!S_ISREG(open.st_mode)) {
    ::close(descriptor);
    throw DataError(file.string() + ": is no plain file, so the run cannot go on writing it");
  }
  size = static_cast<std::uintmax_t>(open.st_size);
  return descriptor;
}

}  // namespace

bool is_own_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::directory;
}

std::optional<std::uint64_t> number_in_name(std::string_view name, std::string_view prefix, std::string_view ending) {
  constexpr std::size_t most_digits = 15;  // a double has room for them
  if (!name.starts_with(prefix) || !name.ends_with(ending) || name.size() <= prefix.size() + ending.size())
    return std::nullopt;
  name = name.substr(prefix.size(), name.size() - prefix.size() - ending.size());
  if (name.size() > most_digits || name.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::stoull(std::string(name));
}

void cut_file(const std::filesystem::path& file, std::uintmax_t size) {
  std::uintmax_t there = 0;
  const int descriptor = reopen(file, there);
  if (descriptor < 0) return;
  const bool cut = there <= size || ::ftruncate(descriptor, static_cast<off_t>(size)) == 0;
  const std::string why = words_of_errno();
  ::close(descriptor);
  if (!cut) cannot_write(file, why);
}

AppendedFile::AppendedFile(std::filesystem::path file, std::uintmax_t keep)
    : file_(std::move(file)), flushed_(std::chrono::steady_clock::now()) {
  std::uintmax_t there = 0;
  descriptor_ = reopen(file_, there);
  if (descriptor_ < 0) descriptor_ = make(file_);
  if (descriptor_ < 0) throw DataError(file_.string() + ": cannot be opened again (" + words_of_errno() + ")");
  size_ = std::min(there, keep);
  if (there < keep) reason_ = "records of an earlier part of the run are gone";
  if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0 ||
      ::lseek(descriptor_, static_cast<off_t>(size_), SEEK_SET) < 0) {
    const std::string why = words_of_errno();
    ::close(std::exchange(descriptor_, -1));
    cannot_write(file_, why);
  }
}

AppendedFile::AppendedFile(std::filesystem::path file)
    : file_(std::move(file)), descriptor_(make(file_)), flushed_(std::chrono::steady_clock::now()) {
  if (descriptor_ < 0)
    throw DataError(file_.string() + ": cannot be made (" + words_of_errno() +
                    "); every rank must see the run folder, and be alone in it");
}

AppendedFile::AppendedFile(AppendedFile&& other) noexcept
    : file_(std::move(other.file_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      waiting_(std::exchange(other.waiting_, {})),
      records_waiting_(std::exchange(other.records_waiting_, 0)),
      records_lost_(other.records_lost_),
      reason_(std::move(other.reason_)),
      flushed_(other.flushed_) {}

AppendedFile::~AppendedFile() {
  if (descriptor_ < 0) return;
  flush();
  ::close(descriptor_);
}

void AppendedFile::append(std::string_view record) {
  constexpr std::chrono::seconds flush_interval{1};
  waiting_ += record;
  ++records_waiting_;
  const auto now = std::chrono::steady_clock::now();
  if (waiting_.size() >= buffered_bytes || now - flushed_ >= flush_interval) flush();
}

void AppendedFile::flush() {
  flushed_ = std::chrono::steady_clock::now();
  if (write_all(descriptor_, waiting_)) {
    size_ += waiting_.size();
  } else {
    if (reason_.empty()) reason_ = words_of_errno();
    records_lost_ += records_waiting_;
    // Back to the last whole record. Room for less is always there.
    if (::ftruncate(descriptor_, static_cast<off_t>(size_)) == 0)
      ::lseek(descriptor_, static_cast<off_t>(size_), SEEK_SET);
  }
  waiting_.clear();
  records_waiting_ = 0;
  struct stat open {
  }, named{};
  const bool there = ::fstat(descriptor_, &open) == 0 && ::lstat(file_.c_str(), &named) == 0 &&
                     open.st_ino == named.st_ino && open.st_dev == named.st_dev;
  if (!there && reason_.empty()) reason_ = "it was removed while the run wrote it";
}

std::string AppendedFile::problem() const {
  if (reason_.empty()) return "";
  const std::string records = records_lost_ == 0 ? "" : std::to_string(records_lost_) + " records, ";
  return file_.filename().string() + " (" + records + reason_ + ")";
}

namespace {

/// The words without what differs between two of a kind: every number is one mark.
std::string kind_of(const std::string& words) {
  std::string kind;
  for (const char c : words) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || !kind.ends_with('#')) kind += digit ? '#' : c;
  }
  return kind;
}

}  // namespace

bool Unwritten::add(const std::string& words, std::uint64_t times) {
  std::string line = words;
  std::ranges::replace(line, '\n', ' ');  // one line each, also when it is packed
  std::string kind = kind_of(line);
  if (const auto known = std::ranges::find(kinds_, kind, &Kind::kind); known != kinds_.end()) {
    known->times += times;
    return false;
  }
  kinds_.push_back({.kind = std::move(kind), .words = std::move(line), .times = times});
  return true;
}

void Unwritten::add(const Unwritten& others) {
  for (const Kind& kind : others.kinds_) add(kind.words, kind.times);
}

std::vector<std::string> Unwritten::lines() const {
  std::vector<std::string> lines;
  for (const Kind& kind : kinds_)
    lines.push_back(kind.times == 1 ? kind.words
                                    : kind.words + ", and " + std::to_string(kind.times - 1) + " more like it");
  return lines;
}

std::string Unwritten::packed() const {
  std::string text;
  for (const Kind& kind : kinds_) text += std::to_string(kind.times) + ' ' + kind.words + '\n';
  return text;
}

Unwritten Unwritten::unpacked(const std::string& text) {
  Unwritten all;
  std::istringstream lines(text);
  std::uint64_t times = 0;
  for (std::string words; lines >> times && lines.get() == ' ' && std::getline(lines, words);) all.add(words, times);
  return all;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace hearsay
