#pragma once
// A configuration file with what the command line changes about it.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/shared/output.hpp"
#include "base/config/config.hpp"

namespace hearsay {

/// What `read` makes of `file` with `assignments` (key=value) set on top of it. Notes go to stderr, on rank 0. `read`
/// is called twice, the first time for the file alone; it must have no effect before its `throw_if_invalid`, which ends
/// the first call. Throws ConfigError, DataError.
template <class Read>
auto read_configuration(const std::filesystem::path& file, const std::vector<std::string>& assignments, Read read) {
  Config config = Config::from_file(file);
  for (const std::string& assignment : assignments) config.document().override_with(assignment);
  config.document().rehearse([&read](Config plain) { static_cast<void>(read(std::move(plain))); });
  auto result = read(config);
  say_notes(config);
  return result;
}

}  // namespace hearsay
