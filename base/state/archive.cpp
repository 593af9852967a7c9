// An entry is a header and its values:  name (hash) | bytes of a value | number of values | values …
#include "base/state/archive.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace hearsay {
namespace {

struct EntryHeader {
  std::uint32_t name;
  std::uint32_t size;   ///< of a value
  std::uint64_t count;  ///< of values
};
static_assert(sizeof(EntryHeader) == 16);

/// Marks an entry that holds others.
constexpr std::uint32_t part_size = 0xffffffffU;

std::uint32_t hash_of(std::string_view name) {
  return static_cast<std::uint32_t>(xxh3(std::as_bytes(std::span(name.data(), name.size()))));
}

/// The header at the front of `from`, which has room for one.
EntryHeader header_at(std::span<const std::byte> from) {
  EntryHeader header{};
  std::memcpy(&header, from.data(), sizeof header);
  return header;
}

}  // namespace

void Archive::refuse(std::string_view name, const std::string& why) const {
  throw DataError(what_ + ": '" + std::string(name) + "' " + why +
                  "; it is damaged, or of another configuration or version of Hearsay");
}

void Archive::wrong_count(std::string_view name, std::size_t count, std::size_t expected) const {
  refuse(name, "has " + std::to_string(count) + " values instead of " + std::to_string(expected));
}

void Archive::too_many(std::string_view name, std::size_t count, std::size_t most) const {
  refuse(name, "has " + std::to_string(count) + " values, and there can be " + std::to_string(most));
}

void Archive::append(std::string_view name, std::size_t size, std::size_t count, std::span<const std::byte> bytes) {
  if (looks()) return;
  const EntryHeader header{.name = hash_of(name), .size = static_cast<std::uint32_t>(size), .count = count};
  const auto head = std::as_bytes(std::span(&header, 1));
  to_->insert(to_->end(), head.begin(), head.end());
  to_->insert(to_->end(), bytes.begin(), bytes.end());
}

/// Takes a header; returns how many values follow, all of which are there.
std::size_t Archive::begin(std::string_view name, std::size_t size) {
  if (from_.size() < sizeof(EntryHeader)) refuse(name, "is missing: the file ends before it");
  const EntryHeader header = header_at(from_);
  if (header.name != hash_of(name)) refuse(name, "is missing: something else stands in its place");
  if (header.size != size)
    refuse(name, "has values of " + std::to_string(header.size) + " bytes instead of " + std::to_string(size));
  from_ = from_.subspan(sizeof header);
  if (header.count > from_.size() / (size == part_size ? 1 : size)) refuse(name, "is longer than the file");
  return static_cast<std::size_t>(header.count);
}

std::span<const std::byte> Archive::taken(std::size_t length) {
  const auto bytes = from_.first(length);
  from_ = from_.subspan(length);
  return bytes;
}

void Archive::take(std::span<std::byte> bytes) { std::ranges::copy(taken(bytes.size()), bytes.begin()); }

void Archive::value(std::string_view name, bool& flag) {
  auto byte = static_cast<std::uint8_t>(flag);
  value(name, byte);
  if (byte > 1) refuse(name, "is neither true nor false");
  flag = byte == 1;
}

void Archive::text(std::string_view name, std::string& here, std::size_t most) {
  std::vector<char> characters(here.begin(), here.end());
  list(name, characters, most);
  here.assign(characters.begin(), characters.end());
}

void Archive::bytes(std::string_view name, std::size_t length, const std::function<void(std::span<std::byte>)>& fill,
                    const std::function<void(std::span<const std::byte>)>& use) {
  if (looks()) return;
  if (!loads()) {
    append(name, 1, length, {});
    to_->resize(to_->size() + length);
    return fill(std::span(*to_).last(length));
  }
  if (const std::size_t count = begin(name, 1); count != length) wrong_count(name, count, length);
  use(taken(length));
}

void Archive::part(std::string_view name, const std::function<void(Archive&)>& say) {
  if (looks()) return say(*this);
  if (!loads()) {
    append(name, part_size, 0, {});
    const std::size_t start = to_->size();
    say(*this);
    const std::uint64_t length = to_->size() - start;
    std::memcpy(to_->data() + start - sizeof length, &length, sizeof length);
    return;
  }
  const std::size_t length = begin(name, part_size);
  Archive inner = loading(taken(length), what_);
  say(inner);
  if (inner.left() > 0) refuse(name, "has " + std::to_string(inner.left()) + " bytes more than there should be");
}

std::optional<Archive> Archive::find_part(std::span<const std::byte> from, std::string_view name,
                                          const std::string& what) {
  Archive archive = loading(from, what);
  while (archive.left() > 0) {
    if (archive.left() < sizeof(EntryHeader)) archive.refuse(name, "is not there: the file ends within a header");
    const EntryHeader header = header_at(archive.from_);
    archive.from_ = archive.from_.subspan(sizeof header);
    if (header.size != part_size || header.count > archive.left())
      archive.refuse(name, "is not there: parts do not end where the file does");
    const auto bytes = archive.taken(static_cast<std::size_t>(header.count));
    if (header.name == hash_of(name)) return loading(bytes, what);
  }
  return std::nullopt;
}

void require_ascending(const Archive& archive, std::string_view name, std::span<const std::uint32_t> positions,
                       std::size_t n) {
  for (std::size_t i = 0; i < positions.size(); ++i)
    if (positions[i] >= n || (i > 0 && positions[i] <= positions[i - 1]))
      archive.refuse(name, "are not ascending positions below " + std::to_string(n));
}

}  // namespace hearsay
