#include "runtime/job/start.hpp"

#include <errno.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/launchers.hpp"
#include "runtime/job/meeting_place.hpp"
#include "runtime/mpi/environment.hpp"
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
                                                const OtherPlace& elsewhere) {
  if (at.folder && !at.folder_is_named) sockets::require_private_folder(*at.folder);
  if (at.folder) return std::make_unique<sockets::SharedFolder>(*at.folder, at.job);
  std::unique_ptr<sockets::Rendezvous> other = elsewhere ? elsewhere(at.job) : nullptr;
  if (!other)
    throw ConfigError(std::string(launch.by.name) + " has started " + std::to_string(at.ranks) +
                      " processes that may be on several hosts. Let HEARSAY_RENDEZVOUS name a folder that all of them "
                      "see, or start them by MPI: `mpirun -n " +
                      std::to_string(at.ranks) + " " + ::program_invocation_short_name + " …`");
  return other;
}

std::unique_ptr<Job> meet(sockets::Rendezvous& place, const MeetingPlace& at, const std::string& build) {
  sockets::MeetingOptions options{
      .job = at.job, .token = variable("HEARSAY_JOB_TOKEN"), .interface = variable("HEARSAY_INTERFACE")};
  options.patience = patience(options.patience);
  options.waits = [&](const std::string& missing) {
    std::fprintf(stderr, "hearsay: [rank %d] has waited 10 seconds at %s for rank %s\n", at.rank, place.name().c_str(),
                 missing.c_str());
  };
  return std::make_unique<sockets::Job>(
      sockets::meet(place, {.rank = at.rank, .ranks = at.ranks}, {.build = build, .configuration = ""}, options));
}

}  // namespace

std::unique_ptr<Job> start_job(const std::string& build, const OtherPlace& elsewhere) {
  const Variables variables = own_variables();
  require_own_variables(variables);
  const auto launch = unheard_launch(variables, mpi::Environment::library_version());
  const auto place = launch ? meeting_place(*launch, variables) : std::nullopt;
  if (!place) return std::make_unique<mpi::Environment>();
  if (launch->by.may_tell_mpi) {
    auto heard = std::make_unique<mpi::Environment>(mpi::all_ranks(), mpi::Environment::Alone::allowed);
    if (heard->ranks() > 1) return heard;
  }
  return meet(*rendezvous(*place, *launch, elsewhere), *place, build);
}

}  // namespace hearsay
