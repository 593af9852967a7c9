#include "base/hash.hpp"

#include <cinttypes>
#include <cstdio>

#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // the library's XXH3 for the vector units that the running processor has
#else
#include <xxhash.h>
#endif

namespace hearsay {

std::uint64_t xxh3(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string hexadecimal(std::uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, hash);
  return text;
}

}  // namespace hearsay
