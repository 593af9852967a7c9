#include "runtime/mpi/simulated/cluster.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/mpi/process.hpp"
#include "runtime/mpi/simulated/platform.hpp"

namespace hearsay::mpi {
namespace {

namespace sim = simgrid::s4u;

constexpr const char* job = "hearsay";

/// SMPI's own all-gather sends P² messages, and the root of its barrier, which making a communicator needs too, looks
/// P² times for P messages. Bruck's send P log P, and each rank waits for one at a time.
constexpr std::array settings{
    "--cfg=network/model:CM02",
    "--cfg=network/crosstraffic:0",
    "--cfg=smpi/simulate-computation:no",
    "--cfg=smpi/test:0",
    "--cfg=smpi/wtime:0",
    "--cfg=smpi/send-is-detached-thresh:0",
    "--cfg=smpi/allgather:bruck",
    "--cfg=smpi/barrier:ompi_bruck",
    "--log=root.thres:critical",
};

/// The name with every number padded to the same width: node2 before node10.
std::string sort_key(const std::string& name) {
  constexpr std::size_t width = 12;
  std::string key, digits;
  const auto flush = [&] {
    if (!digits.empty()) key += std::string(width - std::min(width, digits.size()), '0') + digits;
    digits.clear();
  };
  for (const char c : name) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      digits += c;
    } else {
      flush();
      key += c;
    }
  }
  flush();
  return key;
}

std::vector<sim::Host*> hosts_in_order(const sim::Engine& engine) {
  std::vector<sim::Host*> hosts = engine.get_all_hosts();
  std::ranges::sort(hosts, {}, [](const sim::Host* host) { return sort_key(host->get_name()); });
  return hosts;
}

[[noreturn]] void end_deadlock() {
  std::fprintf(stderr, "hearsay: every simulated rank waits for another one, for ever; please report it\n");
  end_job(all_ranks(), static_cast<int>(ExitCode::communication));
}

}  // namespace

void run_cluster(const ClusterOptions& options, const std::function<void()>& rank_main) {
  std::vector<std::string> words{job};
  words.insert(words.end(), settings.begin(), settings.end());
  words.emplace_back(options.threads ? "--cfg=contexts/factory:thread" : "--cfg=contexts/factory:raw");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  smpi_init_options();  // SMPI's settings are unknown before it
  sim::Engine engine(&count, arguments.data());
  SMPI_init();
  load_platform(engine, options.platform, options.ranks);
  for (sim::Link* link : engine.get_all_links()) link->set_bandwidth(link->get_bandwidth() / options.scale);
  const std::vector<sim::Host*> hosts = hosts_in_order(engine);
  SMPI_app_instance_register(job, nullptr, options.ranks);
  for (int rank = 0; rank < options.ranks; ++rank) {
    sim::Actor::create("rank-" + std::to_string(rank), hosts[static_cast<std::size_t>(rank)], [rank, &rank_main] {
      const sim::ActorPtr self = sim::Actor::self();
      self->set_property("instance_id", job);
      self->set_property("rank", std::to_string(rank));
      rank_main();
    });
  }
  sim::Engine::on_deadlock_cb(end_deadlock);
  engine.run();
  SMPI_finalize();
}

}  // namespace hearsay::mpi
