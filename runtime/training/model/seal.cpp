#include "runtime/training/model/seal.hpp"

#include <cstdint>
#include <cstdio>
#include <span>
#include <stdexcept>

#include "base/hash.hpp"

namespace hearsay {
namespace {

constexpr std::string_view name = "hearsay xxh3 ";
constexpr std::size_t digits = 16, length = name.size() + digits;

std::string comment(std::string_view archive) {
  char hash[digits + 1];
  std::snprintf(hash, sizeof hash, "%016llx",
                static_cast<unsigned long long>(xxh3(std::as_bytes(std::span(archive.data(), archive.size())))));
  return std::string(name) + hash;
}

}  // namespace

void seal(std::string& archive) {
  constexpr std::size_t end_record = 22;  // ends with the length of the comment, two bytes, the lower first
  if (archive.size() < end_record || archive.compare(archive.size() - end_record, 4, "PK\5\6") != 0)
    throw std::logic_error("a model's file is an archive that ends without a comment");
  static_assert(length < 256);
  archive[archive.size() - 2] = static_cast<char>(length);
  archive += comment(archive);
}

bool is_sealed(std::string_view archive) {
  if (archive.size() < length) return false;
  const std::size_t end = archive.size() - length;
  return archive.substr(end) == comment(archive.substr(0, end));
}

}  // namespace hearsay
