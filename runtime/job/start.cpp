#include "runtime/job/start.hpp"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/launchers.hpp"
#include "runtime/job/meeting_place.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/sockets/arrival.hpp"
#include "runtime/sockets/job.hpp"
#include "runtime/sockets/meeting.hpp"
#include "runtime/sockets/shared_folder.hpp"

namespace hearsay {
namespace {

/// Empty where it is not set.
std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::chrono::milliseconds patience(std::chrono::milliseconds usual) {
  const std::string text = variable("HEARSAY_START_TIMEOUT");
  if (text.empty()) return usual;
  double seconds = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  constexpr double most_s = 1e6;
  if (error != std::errc() || end != text.data() + text.size() || !(seconds > 0.0 && seconds <= most_s))
    throw ConfigError("HEARSAY_START_TIMEOUT=" + text + ": it is a number of seconds, above 0 and at most 1000000");
  return std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * seconds));
}

/// Throws ConfigError where there is none.
std::unique_ptr<sockets::Rendezvous> rendezvous(const MeetingPlace& at, const Launch& launch,
                                                const StartOptions& options) {
  if (at.folder && !at.folder_is_named) sockets::require_private_folder(*at.folder);
  if (at.folder) return std::make_unique<sockets::SharedFolder>(*at.folder, at.job);
  std::unique_ptr<sockets::Rendezvous> other = options.elsewhere ? options.elsewhere(at.job) : nullptr;
  if (!other)
    throw ConfigError(std::string(launch.by.name) + " has started " + std::to_string(at.ranks) +
                      " processes that may be on several hosts. Let HEARSAY_RENDEZVOUS name a folder that all of them "
                      "see, or start them by MPI: `mpirun -n " +
                      std::to_string(at.ranks) + " " + ::program_invocation_short_name + " …`");
  return other;
}

sockets::MeetingOptions meeting_options(const std::string& job, bool may_span_hosts, const StartOptions& start) {
  sockets::MeetingOptions options{.job = job,
                                  .token = variable("HEARSAY_JOB_TOKEN"),
                                  .interface = variable("HEARSAY_INTERFACE"),
                                  .reachable = may_span_hosts};
  options.patience = patience(options.patience);
  options.idle = start.idle;
  return options;
}

std::unique_ptr<Job> meet(std::unique_ptr<sockets::Rendezvous> place, const MeetingPlace& at,
                          const StartOptions& start) {
  auto options = meeting_options(at.job, at.folder_is_named, start);
  options.waits = [&](const std::string& missing) {
    std::fprintf(stderr, "hearsay: [rank %d] has waited 10 seconds at %s for rank %s\n", at.rank, place->name().c_str(),
                 missing.c_str());
  };
  auto met = sockets::meet_and_stay(*place, {.rank = at.rank, .ranks = at.ranks},
                                    {.build = start.build, .configuration = ""}, options);
  const sockets::Latecomers::Options late{
      .reachable = options.reachable, .interface = options.interface, .patience = options.patience};
  if (!at.folder) place.reset();  // another place belongs to whoever has lent it
  return std::make_unique<sockets::Job>(std::move(met), std::move(place), late);
}

/// Whether an MPI may have heard of the others. Where no variable says so it may yet have (Slurm's PMI-1 has none), but
/// an Open MPI without it ends a process of srun's in MPI_Init: it is asked only where there is no other way.
bool mpi_may_know(const Launch& launch, const MeetingPlace& place, const Variables& variables) {
  const auto is_set = [&](const char* name) { return variables.contains(name); };
  const bool told = std::ranges::any_of(
      std::array{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD"}, is_set);
  return launch.by.may_tell_mpi && (told || !place.folder);
}

std::unique_ptr<Job> started_by(const std::optional<Launch>& launch, const Variables& variables,
                                const StartOptions& options) {
  const bool alone_by_mpi = launch && launch->ranks == 1 && launch->by.may_tell_mpi;
  const auto place = launch && !alone_by_mpi ? meeting_place(*launch, variables) : std::nullopt;
  if (!place) return std::make_unique<mpi::Environment>();
  if (mpi_may_know(*launch, *place, variables)) {
    auto heard = std::make_unique<mpi::Environment>(mpi::all_ranks(), mpi::Environment::Alone::allowed);
    if (heard->ranks() > 1) return heard;
  }
  return meet(rendezvous(*place, *launch, options), *place, options);
}

}  // namespace

std::unique_ptr<Job> start_job(const StartOptions& options) {
  const Lineage lineage = own_lineage();
  const auto launch = launch_of(lineage, mpi::Environment::library_version());
  auto job = started_by(launch, lineage.own, options);
  constexpr int replace = 1;
  if (job->ranks() > 1) ::setenv(rank_process_variable, std::to_string(::getpid()).c_str(), replace);
  return job;
}

std::unique_ptr<Job> start_group(const sockets::Seat& seat, const std::string& name, const StartOptions& options) {
  const MeetingPlace at{.rank = seat.rank, .ranks = seat.ranks, .job = name, .folder = {}};
  return meet(options.elsewhere(name), at, options);
}

std::unique_ptr<Job> join_job(const std::string& name, const std::string& configuration, const StartOptions& start) {
  const std::string named = variable("HEARSAY_RENDEZVOUS");
  const std::filesystem::path folder = named.empty() ? folder_of_host() : std::filesystem::path(named);
  if (named.empty()) sockets::require_private_folder(folder);
  auto place = std::make_unique<sockets::SharedFolder>(folder, name);
  const auto options = meeting_options(name, !named.empty(), start);
  auto arrival = sockets::arrive(*place, {.build = start.build, .configuration = configuration}, options);
  const sockets::Latecomers::Options late{.came_to = arrival.places,
                                          .reachable = options.reachable,
                                          .interface = options.interface,
                                          .patience = options.patience};
  return std::make_unique<sockets::Job>(std::move(arrival.met), std::move(place), late);
}

}  // namespace hearsay
