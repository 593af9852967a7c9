// hearsay plan CONFIG -n P [--network FILE]: what an iteration of every algorithm would cost on a network.
#include <algorithm>
#include <cstdio>

#include "apps/hearsay/commands.hpp"
#include "apps/hearsay/views/plan_table.hpp"
#include "apps/shared/launch.hpp"
#include "apps/shared/output.hpp"
#include "apps/shared/text.hpp"
#include "base/error.hpp"

namespace hearsay {
namespace {

void check(const PlanArguments& arguments) {
  if (arguments.ranks) require_ranks(*arguments.ranks);
  if (arguments.hosts && *arguments.hosts < 1)
    throw ConfigError("--hosts " + std::to_string(*arguments.hosts) + ": a job has at least 1 host");
  if (!(arguments.density > 0.0 && arguments.density <= 1.0))
    throw ConfigError("--density " + significant(arguments.density, 6) + ": a density is a fraction in (0, 1]");
  if (!(arguments.events >= 0.0 && arguments.events <= 1.0))
    throw ConfigError("--events " + significant(arguments.events, 6) + ": a fraction is in [0, 1]");
  if (arguments.compute_s && !(*arguments.compute_s >= 0.0))
    throw ConfigError("--compute " + significant(*arguments.compute_s, 6) + ": seconds are 0 or more");
  std::error_code unknown;
  if (!std::filesystem::exists(arguments.network, unknown))
    throw DataError(arguments.network.string() +
                    ": there is no such file; `mpirun -n P hearsay probe` measures the network and writes it, or name "
                    "another one with --network FILE");
}

/// As many hosts as P ranks fill where the network was probed. One host has shown nothing of a network: one host stays.
int hosts_for(const Network& network, int ranks) {
  if (network.hosts == 1) return 1;
  const int per_host = (network.ranks + network.hosts - 1) / network.hosts;
  return (ranks + per_host - 1) / per_host;
}

}  // namespace

int plan_command(const PlanArguments& arguments) {
  default_to_one_thread();
  check(arguments);
  const Network network = read_network(arguments.network);
  const int ranks = arguments.ranks.value_or(network.ranks);
  if (arguments.hosts && *arguments.hosts > ranks)
    throw ConfigError("--hosts " + std::to_string(*arguments.hosts) + ": " + std::to_string(ranks) +
                      " ranks fill so many hosts at most; -n P is the number of ranks");
  const int hosts = std::min(ranks, arguments.hosts.value_or(hosts_for(network, ranks)));
  const PlannedModel model = planned_model(arguments.config, ranks);
  const PlanSubject subject{.layout = model.layout,
                            .topology = model.topology,
                            .compute_s = arguments.compute_s.value_or(model.compute_s),
                            .density = arguments.density,
                            .assumptions = {.hosts = hosts, .event_fraction = arguments.events}};
  print(plan_text(plan_rows(subject, network), subject));
  return 0;
}

}  // namespace hearsay
