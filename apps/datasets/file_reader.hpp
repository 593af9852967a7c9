#pragma once
// Whole files as bytes, unpacked according to the ending of their name, with errors that say what to do.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearsay {

/// More than this is not unpacked into memory, whatever a file says.
inline constexpr std::size_t most_unpacked = std::size_t{4} << 30;

/// The content of a file; `.gz` (zlib) and `.xz` (liblzma) are unpacked, several streams in one file included. Where it
/// has more than `most` bytes, unpacked, its first most + 1: a small file may unpack to any size. Throws DataError if
/// the file cannot be read, or is so far truncated, corrupt, or goes on after its last stream.
std::vector<std::uint8_t> read_file(const std::filesystem::path& file, std::size_t most = most_unpacked);
/// The same, and throws DataError with `remedy` where there is more.
std::vector<std::uint8_t> read_whole_file(const std::filesystem::path& file, std::size_t most, std::string_view remedy);

/// The first of `names` that exists in `folder`, plain or with `.gz` or `.xz`; a plain file comes first.
/// Throws DataError that lists the names tried and says what to do: `remedy`, or where it is empty to download them.
std::filesystem::path find_file(const std::filesystem::path& folder, std::span<const std::string> names,
                                std::string_view dataset, std::string_view remedy = {});
/// "Download it with `scripts/get-data DATASET DIR`".
std::string download(std::string_view dataset);

/// Where a data set lies: `path`, or `$HEARSAY_DATA/dataset` if that is empty. Throws ConfigError if neither is given.
std::filesystem::path data_folder(const std::filesystem::path& path, std::string_view dataset);

/// How many examples to use of the `available` ones: `limit`, or all for 0. Throws ConfigError naming `key` if there
/// are fewer than `limit`.
std::size_t limited(std::int64_t limit, std::size_t available, std::string_view key);

/// Throws DataError "FILE: at byte OFFSET: WHAT: found FOUND, expected EXPECTED. Fetch it again: …". Offsets count
/// unpacked bytes.
[[noreturn]] void malformed(const std::filesystem::path& file, std::size_t offset, std::string_view what,
                            std::string_view found, std::string_view expected, std::string_view dataset);

}  // namespace hearsay
