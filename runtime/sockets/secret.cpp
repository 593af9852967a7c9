#include "runtime/sockets/secret.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <charconv>
#include <vector>

#include "base/error.hpp"

namespace hearsay::sockets {
namespace {

Proof hmac(std::span<const std::byte> key, std::span<const std::byte> words) {
  Proof proof{};
  unsigned length = 0;
  const auto* const said = ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                  reinterpret_cast<const unsigned char*>(words.data()), words.size(),
                                  reinterpret_cast<unsigned char*>(proof.data()), &length);
  if (said == nullptr || length != proof.size()) throw CommunicationError("libcrypto has no HMAC-SHA256");
  return proof;
}

}  // namespace

Nonce new_nonce() {
  Nonce nonce{};
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
    throw CommunicationError("the kernel gives no random numbers (getrandom)");
  return nonce;
}

std::string new_token() { return hexadecimal(new_nonce()); }

std::string hexadecimal(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

bool read_hexadecimal(std::string_view text, std::span<std::byte> bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    constexpr int base = 16;
    unsigned char value = 0;
    const char* const from = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(from, from + 2, value, base);
    if (error != std::errc() || end != from + 2) return false;
    bytes[i] = std::byte{value};
  }
  return true;
}

Secret::Secret(std::string_view token, std::string_view job) {
  constexpr std::size_t shortest = 16;
  if (token.size() < shortest)
    throw ConfigError("the token of a job has " + std::to_string(token.size()) +
                      " characters, and fewer than 16 can be guessed; let HEARSAY_JOB_TOKEN be longer, or unset");
  key_ = hmac(std::as_bytes(std::span(token)), std::as_bytes(std::span(job)));
}

Proof Secret::proof(std::string_view what, std::span<const std::byte> words) const {
  const auto purpose = std::as_bytes(std::span(what));
  std::vector<std::byte> all(purpose.begin(), purpose.end());
  all.push_back(std::byte{0});
  all.insert(all.end(), words.begin(), words.end());
  return hmac(key_, all);
}

bool Secret::agrees(const Proof& given, std::string_view what, std::span<const std::byte> words) const {
  const Proof right = proof(what, words);
  return ::CRYPTO_memcmp(given.data(), right.data(), right.size()) == 0;
}

}  // namespace hearsay::sockets
