#include "base/launchers.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.hpp"
#include "base/ids.hpp"

namespace hearsay {
namespace {

constexpr std::string_view unknown, srun = "srun", kubernetes = "an indexed job of Kubernetes",
                                    lightning = "Lightning (or what else sets its variables)";

/// Where one process has set those of several, they say the same, and the first speaks for all.
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
    Launcher{lightning, "WORLD_SIZE", "LOCAL_RANK", never_tells_mpi},
    Launcher{"horovodrun", "HOROVOD_SIZE", "HOROVOD_RANK"},
    Launcher{"flux run", "FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
    Launcher{"mpiexec of PALS", "PALS_SIZE", "PALS_RANKID"},
    Launcher{"aprun", unknown, "ALPS_APP_PE"},
    Launcher{srun, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
    Launcher{"a launcher with PMIx", unknown, "PMIX_RANK"},
    Launcher{"AWS Batch", "AWS_BATCH_JOB_NUM_NODES", "AWS_BATCH_JOB_NODE_INDEX"},
    Launcher{"HTCondor", "_CONDOR_NPROCS", "_CONDOR_PROCNO"},
    Launcher{kubernetes, unknown, "JOB_COMPLETION_INDEX"},
};

/// Empty where it is not set.
std::string value_of(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

std::optional<long> number(const Variables& variables, std::string_view name) {
  const std::string text = value_of(variables, name);
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

/// Lightning says which node this is, and which process there. Where nothing says how many there are on a node, the
/// number is known on the first one only.
std::optional<long> rank_of_lightning(const Variables& variables) {
  const auto node = number(variables, "NODE_RANK"), here = number(variables, "LOCAL_WORLD_SIZE");
  const long rank = number(variables, "LOCAL_RANK").value_or(0);
  if (node.value_or(0) == 0) return rank;
  const bool can_be = here && std::max({*node, *here, rank}) <= most_ranks;  // else the product may be no number
  return can_be ? std::optional(*node * *here + rank) : std::nullopt;
}

/// Whether somebody else has set a launcher's variables: torchrun sets Lightning's, too, and Slurm's shells srun's.
bool says_nothing(const Launcher& launcher, const Variables& variables) {
  if (launcher.name == lightning) return variables.contains("RANK");
  return launcher.name == srun && is_shell_of_slurm(variables);
}

bool is_open_mpi(std::string_view library) { return library.starts_with("Open MPI"); }

/// Whether it belongs to Hearsay or to this MPI: one process that it was asked for is alone on purpose.
bool may_start_one(const Launcher& launcher, std::string_view library) {
  if (launcher.size == "OMPI_COMM_WORLD_SIZE") return library.empty() || is_open_mpi(library);
  if (launcher.size == "PMI_SIZE") return !is_open_mpi(library);
  return launcher.rank == hearsay_launcher.rank;
}

std::optional<Launch> said_by(const Launcher& launcher, const Variables& variables, std::string_view library) {
  const auto rank = number(variables, launcher.rank), ranks = number(variables, launcher.size);
  if (!rank) return std::nullopt;
  if (ranks == 1 && may_start_one(launcher, library)) return Launch{launcher, ranks, *rank};
  const bool numbers_several = launcher.name == kubernetes;  // no pod is told how many there are, not even the first
  if (!(ranks ? *ranks > 1 : *rank > 0 || numbers_several)) return std::nullopt;
  return Launch{launcher, ranks, *rank};
}

/// How many generations, this process being the first, began with what it has: 0 where it has set that itself.
std::size_t generations(const Lineage& lineage, std::initializer_list<std::string_view> names) {
  const auto has_all = [&](const Variables& variables) {
    return std::ranges::all_of(names, [&](std::string_view name) {
      const auto own = lineage.own.find(name), there = variables.find(name);
      return own == lineage.own.end() || (there != variables.end() && there->second == own->second);
    });
  };
  return static_cast<std::size_t>(std::ranges::find_if_not(lineage.began_with, has_all) - lineage.began_with.begin());
}

/// "-u WORLD_SIZE -u RANK"
std::string without(const Launcher& launcher) {
  return (launcher.size.empty() ? "" : "-u " + std::string(launcher.size) + " ") + "-u " + std::string(launcher.rank);
}

/// What is wrong with the two numbers that a launcher has left, as a sentence; empty where nothing is.
///
/// Half a pair is nobody's: every launcher here that sets both sets both for each process, while a shell keeps the
/// WORLD_SIZE of a job that is over, and scripts set it before they start processes by themselves. Such a process is
/// alone. Hearsay's own variables are set for nothing else, so that there half a pair is a mistake. And who is told to
/// be the only one is alone, whatever its number: `WORLD_SIZE=1 PROGRAM …` within a job is a way to ask for that.
std::string wrong_numbers(const Launcher& launcher, const Variables& variables) {
  const bool is_own = launcher.rank == hearsay_launcher.rank;
  const std::string rank = value_of(variables, launcher.rank), ranks = value_of(variables, launcher.size);
  const std::string rank_name(launcher.rank), size_name(launcher.size);
  const std::string both = rank_name + "=" + rank + ", " + size_name + "=" + ranks + ": ";
  if (rank.empty() != ranks.empty() && is_own)
    return both + "a process needs both, its number from 0 and how many there are; `hearsay launch -n P …` sets them";
  if (rank.empty() || ranks.empty()) return {};
  const auto at = number(variables, launcher.rank), of = number(variables, launcher.size);
  if (of == 1 && !is_own) return {};
  if (at && of && *of >= 1 && *of <= most_ranks && *at < *of) return {};
  return both + size_name + " is a number from 1 to " + std::to_string(most_ranks) + ", and " + rank_name +
         " one from 0 to below it. Number the processes from 0 on; or, if no launcher has started this one, `env " +
         without(launcher) + " PROGRAM …` is alone";
}

struct Claim {
  Launch launch;
  std::size_t generations;
  std::string wrong;  ///< of its numbers; empty where they are right
  bool has_numbers;   ///< from 0, and a size from 1: LOCAL_RANK=-1 says that there is no such launcher
};

/// The innermost first.
std::vector<Claim> claims(const Lineage& lineage, std::string_view library) {
  std::vector<Claim> all;
  for (const Launcher& launcher : launchers) {
    if (says_nothing(launcher, lineage.own)) continue;
    const std::string wrong = wrong_numbers(launcher, lineage.own);
    const auto launch = said_by(launcher, lineage.own, library);
    if (!launch && wrong.empty()) continue;
    const bool has_numbers = number(lineage.own, launcher.rank) && number(lineage.own, launcher.size).value_or(0) > 0;
    all.push_back({launch.value_or(Launch{launcher, std::nullopt, 0}),
                   generations(lineage, {launcher.size, launcher.rank}), wrong, has_numbers});
  }
  std::ranges::stable_sort(all, {}, &Claim::generations);
  return all;
}

/// Throws ConfigError where the innermost has numbers that cannot be. Those that outer ones have handed down do not
/// count then, and go; so do those that are none at all, where another launcher's are right.
void require_numbers(std::vector<Claim>& all) {
  const bool another_is_right = std::ranges::any_of(all, [](const Claim& claim) { return claim.wrong.empty(); });
  for (const Claim& claim : all) {
    const bool counts = claim.generations == all.front().generations && (claim.has_numbers || !another_is_right);
    if (counts && !claim.wrong.empty()) throw ConfigError(claim.wrong);
  }
  std::erase_if(all, [](const Claim& claim) { return !claim.wrong.empty(); });
}

/// Whether both can be true. The number of a process on its node is none in the job.
bool agree(const Launch& one, const Launch& other) {
  const bool same_number = one.rank == other.rank || one.by.name == lightning || other.by.name == lightning;
  return same_number && (one.ranks == other.ranks || !one.ranks || !other.ranks);
}

/// "WORLD_SIZE=2, RANK=0"
std::string words_of(const Launch& launch) {
  const std::string rank = std::string(launch.by.rank) + "=" + std::to_string(launch.rank);
  return launch.ranks ? std::string(launch.by.size) + "=" + std::to_string(*launch.ranks) + ", " + rank : rank;
}

std::string part_of(const Launch& launch) {
  if (launch.ranks == 1) return "is alone";
  return "is rank " + std::to_string(launch.rank) + (launch.ranks ? " of " + std::to_string(*launch.ranks) : "");
}

[[noreturn]] void refuse(const Launch& one, const Launch& other) {
  const auto said = [](const Launch& launch) {
    return std::string(launch.by.name) + " has numbered this process (" + words_of(launch) + ")";
  };
  throw ConfigError(said(one) + " and " + said(other) +
                    ", and which of them has started it cannot be seen. Take away what the other one has left: `env " +
                    without(other.by) + " PROGRAM …` " + part_of(one) + ", `env " + without(one.by) + " PROGRAM …` " +
                    part_of(other));
}

/// A program may hand its number on to others under their names, but not have another one.
Launch innermost(const std::vector<Claim>& all, bool sees_itself) {
  const Claim& first = all.front();
  for (const Claim& other : all) {
    if (other.generations == first.generations && !agree(first.launch, other.launch))
      refuse(first.launch, other.launch);
    if (other.generations == first.generations) continue;
    const bool is_set_here = sees_itself && first.generations == 0;
    if (!is_set_here || other.launch.ranks == 1) break;
    if (!agree(first.launch, other.launch)) refuse(first.launch, other.launch);
    return other.launch;
  }
  return first.launch;
}

/// For what a rank has started, unless a launcher has done so meanwhile.
void require_no_child(const Lineage& lineage, const Claim& claim) {
  const auto rank = lineage.own.find(rank_process_variable);
  if (rank == lineage.own.end() || rank->second == std::to_string(::getpid())) return;
  if (claim.generations < generations(lineage, {rank_process_variable})) return;
  throw ConfigError("process " + rank->second + ", a rank of a job, has started this one, which has its variables (" +
                    words_of(claim.launch) +
                    ") but is no rank. Start it by a launcher of its own: `hearsay launch -n 1 PROGRAM …` or "
                    "`python3 -m hearsay launch --without-mpi -n 1 PROGRAM …`");
}

}  // namespace

Lineage own_lineage() {
  constexpr std::size_t most = 64;  // a loop of shells does not go deeper
  Lineage lineage{.own = own_variables()};
  for (pid_t process = ::getpid(); process > 0 && lineage.began_with.size() < most;) {
    auto variables = first_variables(process);
    if (!variables) break;
    lineage.began_with.push_back(std::move(*variables));
    process = status_of(process).value_or(ProcessStatus{}).parent;
  }
  return lineage;
}

std::optional<Launch> launch_of(const Lineage& lineage, std::string_view library) {
  std::vector<Claim> all = claims(lineage, library);
  if (all.empty()) return std::nullopt;
  require_numbers(all);
  require_no_child(lineage, all.front());
  Launch launch = innermost(all, !lineage.began_with.empty());
  if (launch.by.name != lightning) return launch;
  const auto rank = rank_of_lightning(lineage.own);
  if (!rank)
    throw ConfigError(
        "NODE_RANK=" + lineage.own.at("NODE_RANK") + ", LOCAL_RANK=" + std::to_string(launch.rank) +
        ": that is one process of a node, and which of the job is not known. Let LOCAL_WORLD_SIZE say how "
        "many a node has, or RANK which this one is");
  if (launch.ranks && *rank >= *launch.ranks)
    throw ConfigError("NODE_RANK=" + lineage.own.at("NODE_RANK") +
                      ", LOCAL_WORLD_SIZE=" + lineage.own.at("LOCAL_WORLD_SIZE") +
                      ", LOCAL_RANK=" + std::to_string(launch.rank) + ": that is rank " + std::to_string(*rank) +
                      " of the job, whose " + std::to_string(*launch.ranks) +
                      " are numbered from 0 (WORLD_SIZE). Correct these, or let RANK say which this one is");
  launch.rank = *rank;
  return launch;
}

std::optional<Launch> unheard_launch(const Lineage& lineage, std::string_view library) {
  const auto launch = launch_of(lineage, library);
  return launch && launch->ranks == 1 ? std::nullopt : launch;
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
