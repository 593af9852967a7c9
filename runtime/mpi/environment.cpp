#include "runtime/mpi/environment.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "runtime/mpi/check.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/driver.hpp"
#include "runtime/mpi/notices.hpp"
#include "runtime/mpi/transport.hpp"

namespace hearsay::mpi {
CommunicatorHandle all_ranks() { return CommunicatorHandle::of(MPI_COMM_WORLD); }

CommunicatorHandle CommunicatorHandle::from_fortran(int handle) { return of(MPI_Comm_f2c(handle)); }

Environment::Environment(CommunicatorHandle of, Alone alone) : communicator_(of), notices_(make_notices(of)) {
  prepare_process();
  int provided = 0, initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0)
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
  else
    check(MPI_Init_thread(nullptr, nullptr, needed_thread_level(), &provided), "MPI_Init_thread");
  ends_mpi_ = initialised == 0;
  const auto communicator = of.as<MPI_Comm>();
  if (ends_mpi_) MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &ranks_);
  if (provided < needed_thread_level()) {
    throw CommunicationError("this MPI offers thread level " + std::to_string(provided) +
                             ", Hearsay needs MPI_THREAD_SERIALIZED; use an MPI that was built with thread support");
  }
  if (alone == Alone::refused_if_launched) require_whole_job();
}

Environment::~Environment() {
  if (ends_mpi_) MPI_Finalize();
}

std::string Environment::host() const {
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  check(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name");
  return {name, static_cast<std::size_t>(length)};
}

int Environment::ranks_on_host() const {
  const char* const here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  return here == nullptr ? 1 : std::max(1, std::atoi(here));
}

int Environment::rank_on_host() const {
  MPI_Comm host = MPI_COMM_NULL;
  check(MPI_Comm_split_type(communicator_.as<MPI_Comm>(), MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host),
        "MPI_Comm_split_type");
  int rank = 0;
  MPI_Comm_rank(host, &rank);
  MPI_Comm_free(&host);
  return rank;
}

std::string Environment::library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  const std::string version(text);  // `length` counts the NUL in Open MPI
  return version.substr(0, version.find('\n'));
}

bool Environment::launcher_recovers() {
  const char* const recovers = std::getenv("OMPI_MCA_orte_enable_recovery");
  return recovers != nullptr && (*recovers == '1' || *recovers == 't' || *recovers == 'y');
}

std::unique_ptr<hearsay::Communicator> Environment::communicator(std::function<void()> idle) const {
  return std::make_unique<Communicator>(std::move(idle), communicator_);
}

std::unique_ptr<hearsay::Transport> Environment::transport() const {
  return std::make_unique<Transport>(communicator_);
}

void Environment::abort(int exit_code) const { end_job(all_ranks(), exit_code); }

}  // namespace hearsay::mpi
