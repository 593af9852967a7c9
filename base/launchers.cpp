#include "base/launchers.hpp"

#include <unistd.h>

#include <array>
#include <charconv>

namespace hearsay {
namespace {

constexpr std::string_view unknown, srun = "srun", kubernetes = "an indexed job of Kubernetes";

/// Innermost first: a launcher of MPI may have been started by a scheduler's.
constexpr bool never_tells_mpi = false;
constexpr std::array launchers{
    hearsay_launcher,
    Launcher{"mpirun of Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    Launcher{"mpiexec of MPICH or Intel MPI (or what else speaks PMI)", "PMI_SIZE", "PMI_RANK"},
    Launcher{"mpirun_rsh of MVAPICH", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
    Launcher{"mpiexec of MVAPICH", "MVP_COMM_WORLD_SIZE", "MVP_COMM_WORLD_RANK"},
    Launcher{"jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
    Launcher{"torchrun (or accelerate, DeepSpeed, what else sets its variables)", "WORLD_SIZE", "RANK",
             never_tells_mpi},
    Launcher{"Lightning (or what else sets its variables)", "WORLD_SIZE", "LOCAL_RANK", never_tells_mpi},
    Launcher{"horovodrun", "HOROVOD_SIZE", "HOROVOD_RANK"},
    Launcher{"flux run", "FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
    Launcher{"mpiexec of PALS", "PALS_SIZE", "PALS_RANKID"},
    Launcher{"aprun", unknown, "ALPS_APP_PE"},
    Launcher{srun, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
    Launcher{"a launcher with PMIx", unknown, "PMIX_RANK"},
    Launcher{"AWS Batch", "AWS_BATCH_JOB_NUM_NODES", "AWS_BATCH_JOB_NODE_INDEX"},
    Launcher{kubernetes, unknown, "JOB_COMPLETION_INDEX"},
};

std::optional<long> number(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  if (found == variables.end()) return std::nullopt;
  const std::string& text = found->second;
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// A shell that Slurm has started for somebody to type in: its variables are those of a step of as many tasks as were
/// asked for, but it is one process. Such steps have a terminal, or a number of their own (interactive, batch script).
bool is_shell_of_slurm(const Variables& variables) {
  constexpr long first_special_step = 0xfffffff0;
  return variables.contains("SLURM_PTY_PORT") || number(variables, "SLURM_STEP_ID").value_or(0) >= first_special_step;
}

std::optional<Launch> said_by(const Launcher& launcher, const Variables& variables) {
  const auto rank = number(variables, launcher.rank), ranks = number(variables, launcher.size);
  const bool numbers_several = launcher.name == kubernetes;  // no pod is told how many there are, not even the first
  if (!rank || !(ranks ? *ranks > 1 : *rank > 0 || numbers_several)) return std::nullopt;
  if (launcher.name == srun && is_shell_of_slurm(variables)) return std::nullopt;
  return Launch{launcher, ranks, *rank};
}

bool is_open_mpi(std::string_view library) { return library.starts_with("Open MPI"); }

/// The launcher that belongs to this MPI says that there is one process.
bool is_alone_on_purpose(const Variables& variables, std::string_view library) {
  return number(variables, is_open_mpi(library) ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE") == 1;
}

/// "WORLD_SIZE=2, RANK=0"
std::string words_of(const Launch& launch) {
  const std::string rank = std::string(launch.by.rank) + "=" + std::to_string(launch.rank);
  return launch.ranks ? std::string(launch.by.size) + "=" + std::to_string(*launch.ranks) + ", " + rank : rank;
}

}  // namespace

Variables own_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::optional<Launch> launch_of(const Variables& variables) {
  for (const Launcher& launcher : launchers)
    if (const auto launch = said_by(launcher, variables)) return launch;
  return std::nullopt;
}

std::optional<Launch> unheard_launch(const Variables& variables, std::string_view library) {
  return is_alone_on_purpose(variables, library) ? std::nullopt : launch_of(variables);
}

std::string unheard_text(const Launch& launch, std::string_view library, std::string_view program) {
  const bool open_mpi = is_open_mpi(library);
  const std::string own = open_mpi ? "mpirun" : "mpiexec", count = launch.ranks ? std::to_string(*launch.ranks) : "P";
  const std::string those = " -n " + count + " ", what = std::string(program) + " …`";
  std::string commands = "`" + own + those + what;
  if (launch.by.name == srun)
    commands = "`srun --mpi=pmix" + those + what + " or " + commands;
  else if (program.starts_with("python"))
    commands += " or `python3 -m hearsay launch" + those + "…`";
  else if (open_mpi)
    commands += " or `scripts/launch" + those + what;
  return std::string(launch.by.name) + " has started " + (launch.ranks ? count : "several") + " processes (" +
         words_of(launch) + "), but MPI (" + std::string(library) +
         ") knows of this one only, and each would train alone. Start them by this MPI: " + commands + ". `" + own +
         " -n 1 …` starts a single one";
}

}  // namespace hearsay
