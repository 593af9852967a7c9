#include "runtime/job/meeting_place.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace hearsay {
namespace {

std::string value(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

/// What a launcher has for its jobs, one after the other; what is not there is left out.
constexpr std::array job_names{"HEARSAY_JOB",
                               "TORCHELASTIC_RUN_ID",
                               "TORCHELASTIC_RESTART_COUNT",
                               "MASTER_PORT",
                               "SLURM_JOB_ID",
                               "SLURM_STEP_ID",
                               "FLUX_JOB_ID",
                               "PALS_APID"};

/// The name that somebody has given, or one of what the launcher says.
std::string job_name(const Variables& variables) {
  if (std::string named = value(variables, "HEARSAY_JOB"); !named.empty()) return named;
  std::string name = "job";
  for (const std::string_view part : job_names)
    if (const std::string text = value(variables, part); !text.empty()) name += "-" + text;
  constexpr std::size_t longest = 64;
  name.resize(std::min(name.size(), longest));
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_'; }, '-');
  return name;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

/// Whether all processes are on this host, as far as the launcher says it.
bool is_on_one_host(const Launch& launch, const Variables& variables) {
  if (launch.by.rank == hearsay_launcher.rank) return true;  // who spans hosts names a folder, as the guide says
  if (value(variables, "LOCAL_WORLD_SIZE") == std::to_string(*launch.ranks)) return true;
  if (launch.by.size == "WORLD_SIZE") return is_loopback(value(variables, "MASTER_ADDR"));
  if (launch.by.rank == "SLURM_PROCID") return value(variables, "SLURM_STEP_NUM_NODES") == "1";
  return false;
}

}  // namespace

std::filesystem::path folder_of_host() {
  return std::filesystem::temp_directory_path() / ("hearsay-" + std::to_string(::geteuid()));
}

std::optional<MeetingPlace> meeting_place(const Launch& launch, const Variables& variables) {
  if (!launch.ranks) return std::nullopt;
  MeetingPlace place{.rank = static_cast<int>(launch.rank),
                     .ranks = static_cast<int>(*launch.ranks),
                     .job = job_name(variables),
                     .folder = {}};
  const std::string named = value(variables, "HEARSAY_RENDEZVOUS");
  place.folder_is_named = !named.empty();
  if (place.folder_is_named)
    place.folder = named;
  else if (is_on_one_host(launch, variables))
    place.folder = folder_of_host();
  return place;
}

}  // namespace hearsay
