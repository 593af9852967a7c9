#pragma once
// The commands of `hearsay`: one file each. They return an exit code or throw an Error.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/replica/parameters.hpp"
#include "runtime/transport/job.hpp"
#include "topology/topology.hpp"

namespace hearsay {

/// What follows the command on the command line.
using Words = std::vector<std::string>;

enum class ProgressMode { automatic, bar, lines, off };

/// A configuration file with what the command line changes about it.
struct ConfigArguments {
  std::filesystem::path file;
  std::vector<std::string> set;  ///< key=value
};

struct TrainArguments {
  ConfigArguments config;
  std::optional<std::filesystem::path> resume;  ///< the run folder whose configuration and checkpoints count
  std::optional<std::string> output;
  bool overwrite = false;
  bool go_on = false;               ///< with the run in the folder, if it has a complete checkpoint
  std::optional<std::string> join;  ///< a job that others have started
  bool dry_run = false;
  std::optional<int> ranks;  ///< of a dry run; the job's if left out
  bool dump_config = false;
  ProgressMode progress = ProgressMode::automatic;
  std::string command;  ///< the whole command line, for the manifest
};

struct EvaluateArguments {
  std::filesystem::path run;
  std::optional<std::filesystem::path> model;  ///< model.pt of the run if left out
  bool json = false;
};

struct TopologyArguments {
  ConfigArguments config;
  int ranks = 0;
  std::optional<std::string> dot_file;  ///< "-": stdout
  bool weights = false;                 ///< all of W
};

struct BenchCollectivesArguments {
  std::vector<double> values{1e6, 25e6};  ///< numbers, as they may be written like 25e6
  std::vector<double> densities{0.001, 0.01};
  int calls = 200;
  double seconds = 2.0;
  bool json = false;
};

struct BenchExchangesArguments {
  double values = 1e6;  ///< a number, as it may be written like 25e6
  int segments = 60;
  double density = 0.001;
  int iterations = 5;
  double seconds = 20.0;
  std::string only{};
  std::optional<std::filesystem::path> network{};  ///< measured if left out
};

struct BenchTrainingArguments {
  std::string model = "resnet20", device = "cpu";
  int batch = 32;
  std::vector<std::string> exchanges{};  ///< NAME or NAME:SCHEDULE; all if left out
  std::vector<std::string> settings{};
  int iterations = 10, blocks = 9;
  bool json = false;
};

struct PlanArguments {
  ConfigArguments config;
  std::filesystem::path network = "network.yaml";  ///< as `hearsay probe` writes it
  std::optional<int> ranks, hosts;                 ///< default: as many as were probed
  std::optional<double> compute_s;                 ///< default: measured
  double density = 0.01, events = 1.0;
};

struct LaunchArguments {
  int ranks = 1;
  bool recover = false;  ///< a process that dies ends no other
  std::string job{};     ///< a name by which others may join it
  Words words{};         ///< the program and its arguments
};

/// What `hearsay bench NAME` can measure.
struct BenchName {
  std::string name, summary;
};

/// The started job, owned by `main`: it must outlive a failure, since its end on one rank alone would hang the others.
using JobSlot = std::unique_ptr<Job>;

/// Starts a job of MPI for a command that measures between ranks. Throws ConfigError, on rank 0, if ranks run different
/// builds or were given different `words`.
void start_measuring(const Words& words, JobSlot& job);

int train_command(const TrainArguments& arguments, JobSlot& job);
/// Returns when all processes have ended, with the first failure's exit code. Throws ConfigError.
int launch_command(const LaunchArguments& arguments);
int list_command(const std::optional<std::string>& kind);
int describe_command(const std::vector<std::string>& names, bool markdown);
int topology_command(const TopologyArguments& arguments);
int compare_command(const std::vector<std::filesystem::path>& runs, bool json);
/// Shows a run as it goes on, every `every_s` seconds until it ends or a signal comes; `once`: one look.
int watch_command(const std::filesystem::path& directory, double every_s, bool once);
/// Lists `benches`. Throws ConfigError if `arguments` are left, of which the first should have been a name.
int bench_command(const std::vector<BenchName>& benches, const std::vector<std::string>& arguments);
int bench_collectives_command(const BenchCollectivesArguments& arguments, const Words& words, JobSlot& job);
/// Becomes `simulator`, or the one that is found, with these arguments. Returns only by a ConfigError.
int simulate_command(const std::optional<std::filesystem::path>& simulator, const std::vector<std::string>& arguments);
int probe_command(const std::filesystem::path& file, const Words& words, JobSlot& job);
int plan_command(const PlanArguments& arguments);
int bench_exchanges_command(const BenchExchangesArguments& arguments, const Words& words, JobSlot& job);
int bench_training_command(const BenchTrainingArguments& arguments, const Words& words, JobSlot& job);
int version_command();
/// Writes the summary that a killed run could not write. Throws ConfigError for a run that is alive, and for none.
int close_command(const std::filesystem::path& directory);
int evaluate_command(const EvaluateArguments& arguments);

/// Throws ConfigError unless it can be the number of ranks that -n says.
void require_ranks(int ranks);

/// Reads the whole configuration as a run would, and builds its graph and weights.
Topology planned_topology(const ConfigArguments& config, int ranks);

struct PlannedModel {
  Layout layout;
  Topology topology;  ///< the configured graph; a ring if the configured exchange has none
  double compute_s;   ///< forward and backward pass of a batch, measured on this machine
};
/// Reads the whole configuration as a run would, loads the data and makes the model.
PlannedModel planned_model(const ConfigArguments& config, int ranks);

}  // namespace hearsay
