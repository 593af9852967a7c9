#pragma once
// CIFAR-10's binary files.
#include <cstddef>
#include <filesystem>

#include "runtime/data/dataset.hpp"

namespace hearsay {

/// Appends the records of one file, plain, .gz or .xz, to `set`: for each a label, 0 to 9, and its 3·32·32 pixels.
/// Throws DataError unless the file has exactly so many records of 3,073 bytes, or for a label that is no class.
void append_cifar10(const std::filesystem::path& file, std::size_t records, ImageSet& set);

}  // namespace hearsay
