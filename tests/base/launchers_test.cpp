// The table of launchers, in environments that are maps.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/launchers.hpp"

namespace hearsay {
namespace {

constexpr auto open_mpi = "Open MPI v4.1.4", mpich = "MPICH Version: 4.0.2";

/// What a rank of two sees of each launcher.
const std::vector<std::pair<std::string, Variables>>& jobs_of_two() {
  static const std::vector<std::pair<std::string, Variables>> jobs{
      {"torchrun", {{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}}},
      {"Lightning", {{"LOCAL_RANK", "0"}, {"NODE_RANK", "0"}, {"WORLD_SIZE", "2"}}},
      {"srun", {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}}},
      {"srun", {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "2"}}},
      {"flux", {{"FLUX_JOB_SIZE", "2"}, {"FLUX_TASK_RANK", "0"}}},
      {"mpiexec of PALS", {{"PALS_RANKID", "1"}}},
      {"mpiexec of PALS", {{"PALS_RANKID", "0"}, {"PALS_SIZE", "2"}}},
      {"jsrun", {{"JSM_NAMESPACE_SIZE", "2"}, {"JSM_NAMESPACE_RANK", "0"}}},
      {"mpirun_rsh", {{"MV2_COMM_WORLD_SIZE", "2"}, {"MV2_COMM_WORLD_RANK", "0"}}},
      {"horovodrun", {{"HOROVOD_SIZE", "2"}, {"HOROVOD_RANK", "0"}}},
      {"an indexed job of Kubernetes", {{"JOB_COMPLETION_INDEX", "1"}}},
      {"an indexed job of Kubernetes", {{"JOB_COMPLETION_INDEX", "0"}}},  // its first pod is not told of the others
      {"a launcher with PMIx", {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "7"}}},
      {"AWS Batch", {{"AWS_BATCH_JOB_NUM_NODES", "2"}, {"AWS_BATCH_JOB_NODE_INDEX", "0"}}},
  };
  return jobs;
}

TEST_CASE("a launcher that MPI has not heard of is named with its variables and the commands that work") {
  for (const auto& [name, variables] : jobs_of_two()) {
    for (const char* library : {open_mpi, mpich}) {
      const auto launch = unheard_launch(variables, library);
      REQUIRE_MESSAGE(launch.has_value(), name);
      CHECK(std::string(launch->by.name).starts_with(name));
      const std::string text = unheard_text(*launch, library, "hearsay");
      CAPTURE(text);
      CHECK(text.find(std::string(launch->by.rank) + "=" + std::to_string(launch->rank)) != std::string::npos);
      const std::string of_this_mpi = library == std::string(open_mpi) ? "`mpirun -n " : "`mpiexec -n ";
      CHECK(text.find(of_this_mpi + (launch->ranks ? "2" : "P") + " hearsay …`") != std::string::npos);
      CHECK(text.find(library) != std::string::npos);
      CHECK(text.find(" -n 1 …` starts a single one") != std::string::npos);
      CHECK((text.find("`srun --mpi=pmix -n 2 hearsay …`") != std::string::npos) == (name == "srun"));
    }
  }
}

TEST_CASE("a Python loop is told Python's commands, a program the script's") {
  const Variables variables{{"RANK", "1"}, {"WORLD_SIZE", "4"}};
  const auto launch = launch_of(variables);
  REQUIRE(launch.has_value());
  CHECK(launch->ranks == 4);
  CHECK(launch->rank == 1);
  const std::string python = unheard_text(*launch, open_mpi, "python3");
  CHECK(python.find("`mpirun -n 4 python3 …` or `python3 -m hearsay launch -n 4 …`") != std::string::npos);
  const std::string program = unheard_text(*launch, open_mpi, "own_loop");
  CHECK(program.find("`mpirun -n 4 own_loop …` or `scripts/launch -n 4 own_loop …`") != std::string::npos);
}

TEST_CASE("the launcher of another MPI has not told this one") {
  const Variables hydra{{"PMI_SIZE", "3"}, {"PMI_RANK", "0"}};
  CHECK(unheard_launch(hydra, open_mpi).has_value());
  const Variables orte{{"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "0"}};
  CHECK(unheard_launch(orte, mpich).has_value());
}

TEST_CASE("one process is one process") {
  const std::vector<Variables> alone{
      {},
      {{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "1"}},
      {{"RANK", "3"}, {"WORLD_SIZE", "1"}},
      {{"WORLD_SIZE", "4"}},                    // no number of its own: nobody has started this process
      {{"WORLD_SIZE", "many"}, {"RANK", "0"}},  // not a number
      {{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}},  // a shell of salloc, a batch script
      {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}},
      {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967290"}},  // interactive step
      {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PTY_PORT", "4321"}},
      {{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "7"}},  // Open MPI sets this itself
      {{"FLUX_JOB_SIZE", "1"}, {"FLUX_TASK_RANK", "0"}},
  };
  for (const Variables& variables : alone)
    for (const char* library : {open_mpi, mpich}) CHECK_FALSE(unheard_launch(variables, library).has_value());
}

TEST_CASE("one process that this MPI's own launcher was asked for is alone on purpose, whatever is around it") {
  for (const auto& [name, variables] : jobs_of_two()) {
    Variables with_mpirun = variables, with_mpiexec = variables;
    with_mpirun.insert({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}});
    with_mpiexec.insert({{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}});
    CHECK_FALSE(unheard_launch(with_mpirun, open_mpi).has_value());
    CHECK_FALSE(unheard_launch(with_mpiexec, mpich).has_value());
    CHECK(unheard_launch(with_mpirun, mpich).has_value());
  }
}

}  // namespace
}  // namespace hearsay
