#include "runtime/report/identity/run_id.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <random>

#include "base/error.hpp"
#include "base/regular_file.hpp"

namespace hearsay {

std::string new_run_id() {
  std::random_device random;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%08" PRIx32 "%08" PRIx32, static_cast<std::uint32_t>(random()),
                static_cast<std::uint32_t>(random()));
  return std::string(run_id_prefix) + digits;
}

std::optional<std::string> find_run_id(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (std::size_t at = text.find(run_id_prefix); at != std::string_view::npos; at = text.find(run_id_prefix, at + 1)) {
    const std::string_view id = text.substr(at, run_id_length);
    if (id.size() == run_id_length && id.find_first_not_of(digits, run_id_prefix.size()) == std::string_view::npos)
      return std::string(id);
  }
  return std::nullopt;
}

std::optional<std::string> run_id_in_file(const std::filesystem::path& file) {
  constexpr std::size_t piece = std::size_t{1} << 20;
  try {
    RegularFile in(file);
    std::string window;  // the end of the last piece, in which one may begin, and the next piece
    for (std::size_t left = in.size(); left > 0;) {
      const std::size_t bytes = std::min(left, piece), kept = window.size();
      window.resize(kept + bytes);
      in.read(std::as_writable_bytes(std::span(window).subspan(kept)));
      left -= bytes;
      if (auto id = find_run_id(window)) return id;
      window.erase(0, window.size() - std::min(window.size(), run_id_length - 1));
    }
  } catch (const DataError&) {
  }
  return std::nullopt;
}

}  // namespace hearsay
