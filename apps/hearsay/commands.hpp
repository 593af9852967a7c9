#pragma once
// The commands of `hearsay`: one file each. They return an exit code or throw an Error.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/mpi/environment.hpp"
#include "topology/topology.hpp"

namespace hearsay {

enum class ProgressMode { automatic, bar, lines, off };

/// A configuration file with what the command line changes about it.
struct ConfigArguments {
  std::filesystem::path file;
  std::vector<std::string> set;  ///< key=value
};

struct TrainArguments {
  ConfigArguments config;
  std::optional<std::string> output;
  bool overwrite = false;
  bool dry_run = false;
  bool dump_config = false;
  ProgressMode progress = ProgressMode::automatic;
  std::string command;  ///< the whole command line, for the manifest
};

/// Started MPI, owned by `main`: it must outlive a failure, since ending MPI on one rank alone would hang the others.
using MpiSlot = std::unique_ptr<mpi::Environment>;

int train_command(const TrainArguments& arguments, MpiSlot& mpi);
int list_command(const std::optional<std::string>& kind);
int describe_command(const std::vector<std::string>& names);
int topology_command(const ConfigArguments& config, int ranks, const std::optional<std::string>& dot_file);
int compare_command(const std::vector<std::filesystem::path>& runs, bool json);
int version_command();

/// Reads the whole configuration as a run would, and builds its graph and weights.
Topology planned_topology(const ConfigArguments& config, int ranks);

}  // namespace hearsay
