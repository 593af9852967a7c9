#pragma once
// What the members of a job know and strangers do not: the token. HMAC-SHA256 (RFC 2104; libcrypto's) of what is said
// proves that a member has said it.
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hearsay::sockets {

using Proof = std::array<std::byte, 32>;
/// A number that is used once.
using Nonce = std::array<std::byte, 16>;

/// From the kernel's generator. Throws CommunicationError.
Nonce new_nonce();
/// 32 hexadecimal digits: a token, an address that nobody guesses.
std::string new_token();

std::string hexadecimal(std::span<const std::byte> bytes);
/// False where `text` is not as many bytes, in digits.
bool read_hexadecimal(std::string_view text, std::span<std::byte> bytes);

class Secret {
 public:
  /// Members of another job that has the same token are strangers, too. Throws ConfigError for a token of less than 16
  /// characters.
  Secret(std::string_view token, std::string_view job);

  /// That a member says `words`, for the purpose that `what` names.
  Proof proof(std::string_view what, std::span<const std::byte> words) const;
  /// Takes as long for a wrong proof as for a right one.
  bool agrees(const Proof& given, std::string_view what, std::span<const std::byte> words) const;

 private:
  Proof key_;
};

}  // namespace hearsay::sockets
