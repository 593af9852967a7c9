#pragma once
// Little-endian numbers in byte buffers, and what coders and quantisers say when bytes cannot be theirs.
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

namespace hearsay {

static_assert(std::endian::native == std::endian::little, "words are copied as they lie in memory");

template <class T>
T load(std::span<const std::byte> bytes, std::size_t at) {
  T number;
  std::memcpy(&number, bytes.subspan(at, sizeof number).data(), sizeof number);
  return number;
}

template <class T>
void store(T number, std::span<std::byte> bytes, std::size_t at) {
  std::memcpy(bytes.subspan(at, sizeof number).data(), &number, sizeof number);
}

template <class T>
void store_all(std::span<const T> numbers, std::span<std::byte> bytes) {
  if (!numbers.empty()) std::memcpy(bytes.first(numbers.size_bytes()).data(), numbers.data(), numbers.size_bytes());
}

/// Bytes that hold this many bits.
constexpr std::size_t bytes_of_bits(std::size_t bits) { return (bits + 7) / 8; }

/// Throws CommunicationError: the bytes of `count` values of `n` are not an encoding.
[[noreturn]] void refuse_positions(const std::string& coder, std::size_t count, std::size_t n, const std::string& why);
/// Throws CommunicationError: the bytes of `count` values are not an encoding.
[[noreturn]] void refuse_values(const std::string& quantiser, std::size_t count, const std::string& why);

/// Throws CommunicationError unless as many bytes came as these values take.
void require_bytes(const char* quantiser, std::size_t count, std::size_t expected, std::size_t came);
/// A level as it came. Throws CommunicationError unless it is finite and not negative.
float load_level(std::span<const std::byte> bytes, std::size_t at, const char* quantiser, std::size_t count);

/// Throws std::logic_error unless `room` bytes are enough for the `needed`: the caller's mistake.
void require_room(const std::string& writer, std::size_t needed, std::size_t room);

}  // namespace hearsay
