#include "apps/datasets/mapped_text.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/datasets/file_reader.hpp"
#include "apps/datasets/folders.hpp"
#include "base/error.hpp"
#include "base/text/foreign_text.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, const char* what) {
  throw DataError(file.string() + ": " + what + ": " + std::strerror(errno));
}

/// An open file; it need not stay open while it is mapped.
struct Descriptor {
  explicit Descriptor(const fs::path& file) : number(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (number < 0) fail(file, "cannot be opened");
  }
  ~Descriptor() { ::close(number); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number;
};

Text mapped(const fs::path& file) {
  const Descriptor descriptor(file);
  struct stat about {};
  if (::fstat(descriptor.number, &about) != 0) fail(file, "cannot be looked at");
  if (!S_ISREG(about.st_mode))
    throw DataError(file.string() + ": is no regular file, and texts are read from such only");
  const auto size = static_cast<std::size_t>(about.st_size);
  if (size == 0) throw DataError(file.string() + ": is empty: there is nothing to learn from");
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.number, 0);
  if (memory == MAP_FAILED) fail(file, "cannot be mapped into memory");
  return {file.string(), {static_cast<const char*>(memory), size}, {memory, [size](const void* mapping) {
                                                                      ::munmap(const_cast<void*>(mapping), size);
                                                                    }}};
}

bool is_packed(const fs::path& file) { return file.extension() == ".gz" || file.extension() == ".xz"; }

}  // namespace

Text text_of(std::string characters, std::string origin) {
  const auto owner = std::make_shared<const std::string>(std::move(characters));
  return {std::move(origin), *owner, owner};
}

Text read_bytes(const fs::path& file) {
  constexpr std::size_t most = std::size_t{1} << 30;
  if (!is_packed(file)) return mapped(file);
  const auto bytes = read_whole_file(file, most, "unpack it: a file that is not packed need not fit into memory");
  if (bytes.empty()) throw DataError(file.string() + ": is empty: there is nothing to learn from");
  return text_of({bytes.begin(), bytes.end()}, file.string());
}

Text read_text(const fs::path& file) {
  Text text = read_bytes(file);
  text.characters = plain_text(text.characters, text.origin);
  if (text.characters.empty()) throw DataError(file.string() + ": is empty: there is nothing to learn from");
  return text;
}

std::vector<Text> read_texts(const fs::path& file_or_folder, Text (*read)(const fs::path&)) {
  std::error_code error;
  if (!fs::is_directory(file_or_folder, error)) return {read(file_or_folder)};
  std::vector<Text> texts;
  for (const fs::path& file : files_within(file_or_folder)) texts.push_back(read(file));
  if (texts.empty())
    throw DataError(file_or_folder.string() + ": the folder has no files: there is no text to learn from");
  return texts;
}

}  // namespace hearsay
