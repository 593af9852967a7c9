#pragma once
// A run's name for itself, in every file that it writes: "hearsay-" and 16 hexadecimal digits, which no other run has.
//
// It is found as text whatever the format of the file is, so that files of two runs in one folder are noticed, and what
// no run has written is not taken for a run's.
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace hearsay {

inline constexpr std::string_view run_id_prefix = "hearsay-";
inline constexpr std::size_t run_id_length = run_id_prefix.size() + 16;

/// A new one, of 64 random bits.
std::string new_run_id();
/// The first one in a text.
std::optional<std::string> find_run_id(std::string_view text);
/// The first one in a plain file, which may be of any length; nothing where there is none, or the file is not to be
/// read.
std::optional<std::string> run_id_in_file(const std::filesystem::path& file);

}  // namespace hearsay
