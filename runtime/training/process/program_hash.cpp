#include "runtime/training/process/program_hash.hpp"

#include <fstream>
#include <iterator>
#include <vector>

#include "base/hash.hpp"

namespace hearsay {

std::uint64_t program_hash() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  if (!file) return 0;
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  return xxh3(std::as_bytes(std::span(bytes)));
}

}  // namespace hearsay
