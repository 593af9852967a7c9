#pragma once
// What lives longer than an iteration says its state by one function that both saves and loads:
//
//   void Trigger::state(Archive& archive) {
//     archive.values("norms at the last event", std::span(norm_at_event_));
//     archive.list("positions", positions_, n_);          // of any length up to n_
//   }
//
// Saving appends bytes; loading reads them back into an object that was made alike. Bytes come from a file, so from
// anybody: every name, length and count is checked before it is used, and what holds positions checks these itself.
// Values are as this machine has them in memory: a checkpoint is for the machines of the job.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/raw_bytes.hpp"

namespace hearsay {

static_assert(std::endian::native == std::endian::little, "archives are written as they lie in memory");

/// What an archive takes: numbers and enumerations. A bool is a number of its own, for not every byte is one.
template <class T>
concept Archived = (std::is_arithmetic_v<T> || std::is_enum_v<T>)&&!std::is_same_v<T, bool>;

class Archive {
 public:
  /// Appends to `to`, which must outlive the archive.
  static Archive saving(RawBytes& to) { return Archive(&to, {}, {}); }
  /// Reads `from`, which must outlive the archive. `what` begins every message: the file's name.
  static Archive loading(std::span<const std::byte> from, std::string what) {
    return Archive(nullptr, from, std::move(what));
  }
  /// Shows all floats that would be saved, list by list, and keeps nothing.
  using Look = std::function<void(std::string_view name, std::span<const float> values)>;
  static Archive looking(Look look) {
    Archive archive(nullptr, {}, {});
    archive.look_ = std::move(look);
    return archive;
  }

  bool looks() const { return look_ != nullptr; }
  bool loads() const { return to_ == nullptr && !looks(); }
  /// Bytes that have not been read; 0 where it saves.
  std::size_t left() const { return from_.size(); }

  // All of these throw DataError, when they load, for another name, another size of value, another number of values,
  // and where bytes are missing. `name` is what a message says.

  /// One number.
  template <Archived T>
  void value(std::string_view name, T& number) {
    values(name, std::span(&number, 1));
  }
  void value(std::string_view name, bool& flag);
  /// As many as there are here.
  template <Archived T>
  void values(std::string_view name, std::span<T> here) {
    const std::span<std::byte> bytes = std::as_writable_bytes(here);
    if constexpr (std::is_same_v<T, float>)
      if (looks()) return look_(name, here);
    if (!loads()) return append(name, sizeof(T), here.size(), bytes);
    if (const std::size_t count = begin(name, sizeof(T)); count != here.size()) wrong_count(name, count, here.size());
    take(bytes);
  }
  /// As many as there are: at most `most`, which must be what there may be at all.
  template <Archived T>
  void list(std::string_view name, std::vector<T>& here, std::size_t most) {
    if constexpr (std::is_same_v<T, float>)
      if (looks()) return look_(name, here);
    if (!loads()) return append(name, sizeof(T), here.size(), std::as_bytes(std::span(here)));
    const std::size_t count = begin(name, sizeof(T));
    if (count > most) too_many(name, count, most);
    here.resize(count);
    take(std::as_writable_bytes(std::span(here)));
  }
  void text(std::string_view name, std::string& here, std::size_t most);
  /// What may not be there.
  template <Archived T>
  void optional(std::string_view name, std::optional<T>& here) {
    std::vector<T> at_most_one;
    if (here) at_most_one.push_back(*here);
    list(name, at_most_one, 1);
    here = at_most_one.empty() ? std::nullopt : std::optional(at_most_one.front());
  }

  /// Bytes that go somewhere else than memory: `length` of them, which `fill` writes when it saves and `use` reads when
  /// it loads.
  void bytes(std::string_view name, std::size_t length, const std::function<void(std::span<std::byte>)>& fill,
             const std::function<void(std::span<const std::byte>)>& use);

  /// A part with a name that `find_part` finds. `say` is called with this archive, and must read all of the part.
  void part(std::string_view name, const std::function<void(Archive&)>& say);
  /// The bytes of a part, whatever parts stand before it; nothing if there is none. Throws DataError.
  static std::optional<Archive> find_part(std::span<const std::byte> from, std::string_view name,
                                          const std::string& what);

  /// For what is wrong with values that an archive cannot know of. Throws DataError.
  [[noreturn]] void refuse(std::string_view name, const std::string& why) const;

 private:
  Archive(RawBytes* to, std::span<const std::byte> from, std::string what)
      : to_(to), from_(from), what_(std::move(what)) {}
  void append(std::string_view name, std::size_t size, std::size_t count, std::span<const std::byte> bytes);
  std::size_t begin(std::string_view name, std::size_t size);
  void take(std::span<std::byte> bytes);
  std::span<const std::byte> taken(std::size_t length);
  [[noreturn]] void wrong_count(std::string_view name, std::size_t count, std::size_t expected) const;
  [[noreturn]] void too_many(std::string_view name, std::size_t count, std::size_t most) const;

  RawBytes* to_;
  Look look_{};
  std::span<const std::byte> from_;
  std::string what_;
};

/// Positions that are used as such: ascending, unique, below n. Throws DataError.
void require_ascending(const Archive& archive, std::string_view name, std::span<const std::uint32_t> positions,
                       std::size_t n);

}  // namespace hearsay
