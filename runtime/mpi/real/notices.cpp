#include "runtime/mpi/notices.hpp"

#include <mpi.h>

#include <array>
#include <cstdlib>
#include <string>

#include "runtime/mpi/waiting.hpp"

namespace hearsay::mpi {
namespace {

constexpr const char* content = "here";

/// Errors of names go to MPI_COMM_WORLD, where another user of MPI may have asked for the job's end.
class ErrorsReturn {
 public:
  ErrorsReturn() {
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  ~ErrorsReturn() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before_);
    MPI_Errhandler_free(&before_);
  }
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;

 private:
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

/// A server of names may serve several jobs.
std::string name_of(int rank_of_all, Notice notice) {
  const char* const job = std::getenv("PMIX_NAMESPACE");
  return "hearsay:" + std::string(job == nullptr ? "" : job) + ":" + std::to_string(rank_of_all) +
         (notice == Notice::joins ? ":joins" : ":has ended");
}

int rank_in(CommunicatorHandle communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator.as<MPI_Comm>(), &rank);
  return rank;
}

int rank_among_all(CommunicatorHandle communicator, int rank) {
  MPI_Group group = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  MPI_Comm_group(communicator.as<MPI_Comm>(), &group);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  int among_all = MPI_UNDEFINED;
  MPI_Group_translate_ranks(group, 1, &rank, all, &among_all);
  MPI_Group_free(&group);
  MPI_Group_free(&all);
  return among_all;
}

class Notices final : public hearsay::Notices {
 public:
  explicit Notices(CommunicatorHandle of) : of_(of) {}

  void post(Notice notice) override {
    const ErrorsReturn quiet;
    MPI_Publish_name(name_of(rank_in(all_ranks()), notice).c_str(), MPI_INFO_NULL, content);
  }
  void withdraw(Notice notice) override {
    const ErrorsReturn quiet;
    MPI_Unpublish_name(name_of(rank_in(all_ranks()), notice).c_str(), MPI_INFO_NULL, content);
  }
  bool has_posted(int rank, Notice notice) override {
    const ErrorsReturn quiet;
    std::array<char, MPI_MAX_PORT_NAME> found{};
    return MPI_Lookup_name(name_of(rank_among_all(of_, rank), notice).c_str(), MPI_INFO_NULL, found.data()) ==
           MPI_SUCCESS;
  }
  void await_all(const std::function<void()>& idle) override { barrier(of_.as<MPI_Comm>(), idle); }

 private:
  CommunicatorHandle of_;
};

}  // namespace

std::unique_ptr<hearsay::Notices> make_notices(CommunicatorHandle of) { return std::make_unique<Notices>(of); }

}  // namespace hearsay::mpi
