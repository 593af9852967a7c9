#include "runtime/training/model/seal.hpp"

#include <span>
#include <stdexcept>

#include "base/hash.hpp"

namespace hearsay {
namespace {

constexpr std::string_view seal_name = "hearsay xxh3 ";
constexpr std::size_t seal_length = seal_name.size() + 16;

std::string comment_of(std::string_view archive) {
  return std::string(seal_name) + hexadecimal(xxh3(std::as_bytes(std::span(archive.data(), archive.size()))));
}

}  // namespace

void seal(std::string& archive) {
  constexpr std::size_t end_record = 22;  // ends with the length of the comment, two bytes, the lower first
  if (archive.size() < end_record || archive.compare(archive.size() - end_record, 4, "PK\5\6") != 0)
    throw std::logic_error("a model's file is an archive that ends without a comment");
  static_assert(seal_length < 256);
  archive[archive.size() - 2] = static_cast<char>(seal_length);
  archive += comment_of(archive);
}

bool is_sealed(std::string_view archive) {
  if (archive.size() < seal_length) return false;
  const std::size_t end = archive.size() - seal_length;
  return archive.substr(end) == comment_of(archive.substr(0, end));
}

}  // namespace hearsay
