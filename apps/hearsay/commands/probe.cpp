// hearsay probe [-o FILE]
#include <cstdio>
#include <fstream>

#include "apps/bench/probe/probe.hpp"
#include "apps/hearsay/commands.hpp"
#include "apps/shared/launch.hpp"
#include "apps/shared/output.hpp"
#include "apps/shared/text.hpp"
#include "base/error.hpp"
#include "base/text/foreign_text.hpp"
#include "runtime/mpi/environment.hpp"

namespace hearsay {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out)
    throw DataError(file.string() + ": cannot be written; give --output a file in an existing, writable folder");
}

std::vector<std::string> probe_row(const std::string& name, const AlphaBeta& model) {
  return {name, duration(model.alpha_s), significant(1e9 * model.beta_s, 3) + " ns",
          byte_count(bytes_per_word / model.beta_s) + "/s"};
}

std::string loads_table(const std::vector<Load>& loads) {
  std::vector<std::vector<std::string>> rows{{"message", "in pairs", "from rank to rank"}};
  for (const Load& load : loads)
    rows.push_back({byte_count(load.bytes), significant(load.crossing, 3), significant(load.shifting, 3)});
  return aligned_table(rows);
}

void print_network(const Network& network) {
  std::vector<std::vector<std::string>> rows{{"link", "a message (α)", "a word of 4 bytes (β)", "bandwidth"}};
  for (const Link& link : network.links)
    rows.push_back(
        probe_row("rank 0 and " + std::to_string(link.rank) + (link.same_host ? ", same host" : ""), link.model));
  std::printf("%s on %s\n%s", counted(network.ranks, "rank").c_str(), counted(network.hosts, "host").c_str(),
              aligned_table(rows).c_str());
  std::printf("\nall ranks at once, times as long as one message alone:\n%s\n", loads_table(network.loads).c_str());
  std::printf(
      "memory     %s/s in r += g, %s/s where mstopk reads\nselection  %s for a million values (sum, exact top-k of 0.1 "
      "%%, clearing)\n",
      byte_count(1.0 / network.memory_s).c_str(), byte_count(1.0 / network.read_s).c_str(),
      duration(1e6 * network.selection_s).c_str());
  std::printf("           %s for a million more that are kept\n", duration(1e6 * network.kept_s).c_str());
  std::printf("merge      %s for a million entries of sparse lists\n", duration(1e6 * network.merge_s).c_str());
}

}  // namespace

int probe_command(const std::filesystem::path& file, const Words& words, JobSlot& job) {
  default_to_one_thread();
  start_measuring(words, job);
  if (job->ranks() < 2)
    throw ConfigError("a network needs two ranks: mpirun -n P hearsay probe, one rank a host or more");
  const Network network =
      measure_network([](const std::string& what) { std::fprintf(stderr, "probe: %s\n", what.c_str()); });
  if (job->rank() != 0) return 0;
  write(file, network_yaml(network, "hearsay probe, " + job->host() + ", " + mpi::Environment::library_version()));
  print_network(network);
  const std::string name = shown(file.string());
  print("written to " + name + "; next: hearsay plan CONFIG --network " + name + "\n");
  return 0;
}

}  // namespace hearsay
