#pragma once
// The data sets that `data.name` chooses from.
#include <span>

#include "runtime/data/dataset.hpp"

namespace hearsay {

/// In the order in which `hearsay list` shows them; the first is the default and needs no files.
std::span<const DatasetEntry> datasets();

}  // namespace hearsay
