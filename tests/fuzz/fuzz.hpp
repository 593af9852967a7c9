#pragma once
// What a fuzz target and what drives it know of each other. A target is a file of tests/fuzz/targets/, or of
// tests/simulator/fuzz/: it takes bytes that may be anything, and ends the process where a law breaks. replay.cpp
// drives it, mutating seeds by a fixed rule; the entry point is libFuzzer's, which Debian 12's Clang 14 cannot build:
// it does not compile our ranges.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hearsay::fuzz {

/// Inputs that are as they should be: where mutations begin. Of a target.
std::vector<std::string> seeds();
/// Words that the input's language has. Of a target.
std::vector<std::string> words();

/// A law: the process ends where it is broken.
inline void require(bool holds, const char* law) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", law);
  std::abort();
}

/// Takes numbers off the front of an input; zeros once it is used up.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  template <class Number>
  Number take() {
    Number number{};
    const std::size_t length = std::min(sizeof number, bytes_.size());
    if (length > 0) std::memcpy(&number, bytes_.data(), length);
    bytes_ = bytes_.subspan(length);
    return number;
  }
  std::span<const std::uint8_t> rest() const { return bytes_; }
  std::span<const std::byte> rest_bytes() const { return std::as_bytes(bytes_); }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// A file without a disk, for what is read by name.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) { require(descriptor_ >= 0, "a file in memory"); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  /// These bytes, then zeros up to `size`.
  void fill(std::span<const std::uint8_t> bytes, std::size_t size) {
    require(::ftruncate(descriptor_, 0) == 0 && ::ftruncate(descriptor_, static_cast<off_t>(size)) == 0, "a size");
    put(bytes.first(std::min(size, bytes.size())), 0);
  }
  void fill(std::span<const std::uint8_t> bytes) { fill(bytes, bytes.size()); }
  void put(std::span<const std::uint8_t> bytes, std::size_t at) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    require(written == static_cast<ssize_t>(bytes.size()), "bytes in a file");
  }

 private:
  int descriptor_;
};

inline std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// A number as it lies in memory.
template <class Number>
std::string raw(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace hearsay::fuzz
