#pragma once
// Turns MPI's return codes into CommunicationError with MPI's own words and the call's place. Included in
// runtime/mpi/*.cpp only.
#include <mpi.h>

#include <string>

#include "base/error.hpp"

namespace hearsay::mpi {

inline std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

inline void check(int code, const char* call) {
  if (code != MPI_SUCCESS) throw CommunicationError(std::string(call) + " failed: " + error_text(code));
}

}  // namespace hearsay::mpi
