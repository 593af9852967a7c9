# cmake -DSOURCE=… -DVERSION=… -DOUTPUT=… -P write_version.cmake: touches OUTPUT only if it changes.
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=* WORKING_DIRECTORY ${SOURCE}
                OUTPUT_VARIABLE revision ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT revision)
  set(revision "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#pragma once
#include <string_view>

namespace hearsay {

inline constexpr std::string_view version = "@VERSION@";
inline constexpr std::string_view revision = "@revision@";  ///< of git, "-dirty" if files differ from it
inline constexpr std::string_view full_version = "@VERSION@ (@revision@)";

}  // namespace hearsay
]])
