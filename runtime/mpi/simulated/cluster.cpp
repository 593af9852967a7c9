#include "runtime/mpi/simulated/cluster.hpp"

#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/mpi/driver.hpp"
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
  const std::vector<sim::Host*> hosts = load_platform(engine, options.platform, options.ranks);
  for (sim::Link* link : engine.get_all_links()) link->set_bandwidth(link->get_bandwidth() / options.scale);
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
