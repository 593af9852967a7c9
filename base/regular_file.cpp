#include "base/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace hearsay {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why, std::string_view remedy) {
  throw DataError(path.string() + ": " + why + (remedy.empty() ? "" : "; ") + std::string(remedy));
}

std::string words_of_errno() { return std::generic_category().message(errno); }

/// What is not a plain file, with its article.
const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

RegularFile::RegularFile(std::filesystem::path path, std::string_view remedy) : path_(std::move(path)) {
  struct stat status {};
  // Asked before it is opened, too: opening a device may do something.
  if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    refuse(path_, std::string("is ") + kind_of(status.st_mode) + ", a file was expected", remedy);
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor_ < 0) refuse(path_, "cannot be read: " + words_of_errno(), remedy);
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    refuse(path_, "is no file any more", remedy);
  }
  size_ = static_cast<std::size_t>(status.st_size);
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void RegularFile::skip(std::size_t bytes) {
  if (::lseek(descriptor_, static_cast<off_t>(bytes), SEEK_CUR) < 0)
    refuse(path_, "cannot be read: " + words_of_errno(), "");
}

void RegularFile::read(std::span<std::byte> bytes) {
  const std::size_t wanted = bytes.size();
  while (!bytes.empty()) {
    const ssize_t got = ::read(descriptor_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(path_, "cannot be read: " + words_of_errno(), "");
    if (got == 0)
      refuse(
          path_,
          "reading stopped after " + std::to_string(wanted - bytes.size()) + " of " + std::to_string(wanted) + " bytes",
          "is it being written?");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

std::string file_text(const std::filesystem::path& path, std::size_t most, std::string_view remedy) {
  RegularFile file(path, remedy);
  if (file.size() > most)
    refuse(path, "has " + std::to_string(file.size()) + " bytes, at most " + std::to_string(most) + " are read",
           remedy);
  std::string text(file.size(), '\0');
  file.read(std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace hearsay
