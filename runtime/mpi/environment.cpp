#include "runtime/mpi/environment.hpp"

#include <mpi.h>

#include "runtime/mpi/check.hpp"
#include "runtime/mpi/process.hpp"

namespace hearsay::mpi {
Environment::Environment() {
  prepare_process();
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, needed_thread_level(), &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  if (provided < needed_thread_level()) {
    throw CommunicationError("this MPI offers thread level " + std::to_string(provided) +
                             ", Hearsay needs MPI_THREAD_SERIALIZED; use an MPI that was built with thread support");
  }
}

Environment::~Environment() { MPI_Finalize(); }

std::string Environment::host() const {
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  check(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name");
  return {name, static_cast<std::size_t>(length)};
}

std::string Environment::library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  const std::string version(text);  // `length` counts the NUL in Open MPI
  return version.substr(0, version.find('\n'));
}

void Environment::abort(int exit_code) { end_job(exit_code); }

}  // namespace hearsay::mpi
