// The table of launchers, in environments that are maps.
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/launchers.hpp"

namespace hearsay::launchers_test {
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
      {"HTCondor", {{"_CONDOR_NPROCS", "2"}, {"_CONDOR_PROCNO", "0"}}},
  };
  return jobs;
}

TEST_CASE("a launcher that MPI has not heard of is named with its variables and the commands that work") {
  for (const auto& [name, variables] : jobs_of_two()) {
    for (const char* library : {open_mpi, mpich}) {
      const auto launch = unheard_launch({variables}, library);
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
  const auto launch = launch_of({variables});
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
  CHECK(unheard_launch({hydra}, open_mpi).has_value());
  const Variables orte{{"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "0"}};
  CHECK(unheard_launch({orte}, mpich).has_value());
}

TEST_CASE("one process is one process") {
  const std::vector<Variables> alone{
      {},
      {{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "1"}},
      {{"RANK", "3"}, {"WORLD_SIZE", "1"}},
      {{"WORLD_SIZE", "4"}},  // no number of its own: nobody has started this process
      {{"WORLD_SIZE", "4"}, {"MASTER_ADDR", "localhost"}, {"RANK", ""}},
      {{"RANK", "one"}},
      {{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}},  // a shell of salloc, a batch script
      {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}},
      {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967290"}},  // interactive step
      {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PTY_PORT", "4321"}},
      {{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "7"}},  // Open MPI sets this itself
      {{"FLUX_JOB_SIZE", "1"}, {"FLUX_TASK_RANK", "0"}},
  };
  for (const Variables& variables : alone)
    for (const char* library : {open_mpi, mpich}) CHECK_FALSE(unheard_launch({variables}, library).has_value());
}

const Variables one_by_mpirun{{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}};
const Variables one_by_mpiexec{{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}};

/// A process that `inner` has started, which `outer` has started: what it and its parent began with.
Lineage nested(const Variables& inner, const Variables& outer) {
  Variables own = inner;
  own.insert(outer.begin(), outer.end());
  return {.own = own, .began_with = {own, outer, {}}};
}

std::string refusal(const Lineage& lineage, const char* library = open_mpi) {
  try {
    static_cast<void>(launch_of(lineage, library));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("one process that this MPI's own launcher was asked for is alone on purpose, whatever is around it") {
  for (const auto& [name, variables] : jobs_of_two()) {
    CAPTURE(name);
    CHECK_FALSE(unheard_launch(nested(one_by_mpirun, variables), open_mpi).has_value());
    CHECK_FALSE(unheard_launch(nested(one_by_mpiexec, variables), mpich).has_value());
    CHECK(unheard_launch(nested(one_by_mpirun, variables), mpich).has_value());
  }
}

TEST_CASE("what one process of an MPI has launched is a job of its own") {
  for (const auto& [name, variables] : jobs_of_two()) {
    CAPTURE(name);
    for (const auto& [outer, library] : {std::pair{one_by_mpirun, open_mpi}, {one_by_mpiexec, mpich}}) {
      const auto launch = unheard_launch(nested(variables, outer), library);
      REQUIRE(launch.has_value());
      CHECK(std::string(launch->by.name).starts_with(name));
    }
  }
}

TEST_CASE("the innermost of several launchers numbers the process, also through a shell") {
  const Variables torchrun{{"RANK", "3"}, {"WORLD_SIZE", "4"}},
      srun{{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}};
  const Variables pmi{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, own{{"HEARSAY_RANK", "0"}, {"HEARSAY_RANKS", "3"}};
  for (const auto& [inner, outer] : {std::pair{torchrun, srun},
                                     {srun, torchrun},
                                     {torchrun, pmi},
                                     {pmi, torchrun},
                                     {own, torchrun},
                                     {torchrun, own},
                                     {own, pmi},
                                     {pmi, own}}) {
    Lineage lineage = nested(inner, outer);
    const auto expected = launch_of({inner});
    for (int shells = 0; shells < 3; ++shells) {
      const auto launch = launch_of(lineage);
      REQUIRE(launch.has_value());
      CHECK(launch->by.rank == expected->by.rank);
      CHECK(launch->rank == expected->rank);
      CHECK(launch->ranks == expected->ranks);
      lineage.began_with.insert(lineage.began_with.begin(), lineage.own);
    }
  }
}

TEST_CASE("launchers that contradict each other, and cannot be told apart, are refused with the commands that work") {
  for (Variables own :
       {Variables{{"RANK", "1"}, {"WORLD_SIZE", "2"}}, Variables{{"HEARSAY_RANK", "1"}, {"HEARSAY_RANKS", "2"}}}) {
    const std::string theirs = own.contains("RANK") ? "-u WORLD_SIZE -u RANK" : "-u HEARSAY_RANKS -u HEARSAY_RANK";
    own.insert(one_by_mpirun.begin(), one_by_mpirun.end());
    const std::vector<Lineage> hidden{{own}, {own, {own}}, {own, {own, {}}}};  // no /proc; some of it; one has set both
    for (const Lineage& lineage : hidden) {
      const std::string said = refusal(lineage);
      CAPTURE(said);
      CHECK(said.find("`env " + theirs + " PROGRAM …` is alone") != std::string::npos);
      CHECK(said.find("`env -u OMPI_COMM_WORLD_SIZE -u OMPI_COMM_WORLD_RANK PROGRAM …` is rank 1 of 2") !=
            std::string::npos);
    }
  }
  const Variables alike{{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  CHECK(launch_of({alike})->rank == 1);
}

TEST_CASE("what a program sets itself hands its number on, and numbers a process that was alone") {
  const Variables mpirun{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}};
  const auto sets = [](Variables before, const Variables& more) {
    Lineage lineage{.own = before, .began_with = {before, {}}};
    lineage.own.insert(more.begin(), more.end());
    return lineage;
  };
  const Variables same{{"RANK", "1"}, {"WORLD_SIZE", "2"}}, other{{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  CHECK(launch_of(sets(mpirun, same))->by.rank == "OMPI_COMM_WORLD_RANK");
  CHECK(launch_of(sets(one_by_mpirun, same), open_mpi)->by.rank == "RANK");
  CHECK(launch_of(sets(mpirun, {{"LOCAL_RANK", "0"}, {"WORLD_SIZE", "2"}}))->rank == 1);
  CHECK(refusal(sets(mpirun, other)).find("cannot be seen") != std::string::npos);
}

TEST_CASE("what a rank has started is no rank, unless a launcher has started it meanwhile") {
  Variables rank{{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  Variables child = rank;
  child[rank_process_variable] = "1";
  for (const Lineage& lineage :
       {Lineage{child, {child, rank, {}}}, Lineage{child, {child, child, rank}}, Lineage{child}})
    CHECK(refusal(lineage).find("process 1, a rank of a job, has started this one, which has its variables "
                                "(WORLD_SIZE=2, RANK=1)") == 0);
  CHECK(launch_of(nested({{"HEARSAY_RANK", "0"}, {"HEARSAY_RANKS", "1"}}, child))->ranks == 1);
  CHECK_FALSE(unheard_launch(nested(one_by_mpirun, child), open_mpi).has_value());
  rank[rank_process_variable] = std::to_string(::getpid());  // the rank itself, when it asks again
  CHECK(launch_of({rank})->rank == 1);
  CHECK_FALSE(launch_of({{{rank_process_variable, "1"}}}).has_value());
}

TEST_CASE("the number of a process on its node is none in the job") {
  const auto rank_of = [](const Variables& more) {
    Variables variables{{"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}};
    variables.insert(more.begin(), more.end());
    return launch_of({variables})->rank;
  };
  CHECK(rank_of({}) == 1);
  CHECK(rank_of({{"NODE_RANK", "0"}}) == 1);
  CHECK(rank_of({{"NODE_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}) == 3);
  CHECK(rank_of({{"NODE_RANK", "1"}, {"RANK", "3"}}) == 3);
  const std::string said = refusal({{{"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}, {"NODE_RANK", "1"}}});
  CHECK(said.find("NODE_RANK=1, LOCAL_RANK=1: ") == 0);
  CHECK(said.find("LOCAL_WORLD_SIZE") != std::string::npos);
  const auto refused_on = [](const std::string& node) {
    return refusal({{{"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}, {"NODE_RANK", node}, {"LOCAL_WORLD_SIZE", "2"}}});
  };
  CHECK(refused_on("5").find("NODE_RANK=5, LOCAL_WORLD_SIZE=2, LOCAL_RANK=1: that is rank 11 of the job, whose 4 ") ==
        0);
  CHECK(refused_on("9000000000000000000").find("which of the job is not known") != std::string::npos);
}

TEST_CASE("numbers that are none of a process in a job are refused by name; those of an outer launcher do not count") {
  const std::vector<std::pair<std::string, Variables>> wrong{
      {"RANK=2, WORLD_SIZE=2: ", {{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}}},
      {"RANK=one, WORLD_SIZE=2: ", {{"RANK", "one"}, {"WORLD_SIZE", "2"}}},
      {"RANK=-1, WORLD_SIZE=2: ", {{"RANK", "-1"}, {"WORLD_SIZE", "2"}}},
      {"RANK=0, WORLD_SIZE=many: ", {{"RANK", "0"}, {"WORLD_SIZE", "many"}}},
      {"RANK=0, WORLD_SIZE=0: ", {{"RANK", "0"}, {"WORLD_SIZE", "0"}}},
      {"RANK=0, WORLD_SIZE=1000001: ", {{"RANK", "0"}, {"WORLD_SIZE", "1000001"}}},
      {"RANK=0, WORLD_SIZE=99999999999: ", {{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}},
      {"LOCAL_RANK=2, WORLD_SIZE=2: ", {{"LOCAL_RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}}},
      {"SLURM_PROCID=2, SLURM_STEP_NUM_TASKS=2: ",
       {{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NUM_NODES", "1"}}},
      {"OMPI_COMM_WORLD_RANK=2, OMPI_COMM_WORLD_SIZE=2: ",
       {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "2"}}},
      {"HEARSAY_RANK=1, HEARSAY_RANKS=1: ", {{"HEARSAY_RANK", "1"}, {"HEARSAY_RANKS", "1"}}},
  };
  for (const auto& [begin, variables] : wrong) {
    const std::string said = refusal({variables});
    CAPTURE(said);
    CHECK(said.find(begin) == 0);
    CHECK(said.find("one from 0 to below it. Number the processes from 0 on; or, if no") != std::string::npos);
    CHECK(said.find("`env -u ") != std::string::npos);
    CHECK(refusal(nested(one_by_mpirun, variables)).empty());
  }
  // Whoever wraps mpirun may say so that there is no other launcher.
  const Variables wrapped{
      {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"RANK", "-1"}, {"WORLD_SIZE", "-1"}};
  CHECK(refusal({wrapped}).empty());
  const Variables half{{"HEARSAY_RANKS", "2"}};
  CHECK(refusal({half}).find("HEARSAY_RANK=, HEARSAY_RANKS=2: a process needs both") == 0);
  CHECK(refusal(nested(one_by_mpirun, half)).empty());
}

TEST_CASE("a process sees its own generations") {
  const Lineage lineage = own_lineage();
  REQUIRE(lineage.began_with.size() >= 2);
  CHECK(lineage.began_with.front().contains("PATH"));
  CHECK(status_of(::getpid())->parent == ::getppid());
  CHECK_FALSE(status_of(-1).has_value());
  CHECK_FALSE(first_variables(-1).has_value());
}

}  // namespace
}  // namespace hearsay::launchers_test
