#pragma once
// A hash in a model's file. LibTorch does not look at the check sums of an archive: a damaged one costs gigabytes of
// memory, or the process.
//   the archive, whose comment is …   "hearsay xxh3 ", 16 digits: XXH3 of all that stands before the comment
// The comment of a zip archive stands at its end; LibTorch and Python's torch do not mind it.
#include <string>
#include <string_view>

namespace hearsay {

/// Gives an archive without a comment that one.
void seal(std::string& archive);
/// Whether it has one, and the archive is the one that was sealed.
bool is_sealed(std::string_view archive);

}  // namespace hearsay
