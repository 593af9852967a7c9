#pragma once
// What a rank lets others know before there is anything collective: notices that the launcher keeps, under names
// (MPI_Publish_name). Messages and collective operations would meet those of whoever uses the communicator besides.
#include <functional>
#include <string_view>

#include "runtime/mpi/communicator_handle.hpp"

namespace hearsay::mpi {

/// Posts a notice of this rank. Waits for no rank. False where the launcher keeps no names.
bool post_notice(std::string_view notice);
void withdraw_notice(std::string_view notice);
/// Whether this rank of a communicator has posted it. Waits for no rank; asks the launcher, which takes about 0.4 ms.
bool has_posted(CommunicatorHandle communicator, int rank, std::string_view notice);

/// Collective: returns when every rank of the communicator has called it. `idle` runs meanwhile, and may throw: then
/// the communicator is of no use any more.
void await_all(CommunicatorHandle communicator, const std::function<void()>& idle);
int size_of(CommunicatorHandle communicator);
int rank_in(CommunicatorHandle communicator);

}  // namespace hearsay::mpi
