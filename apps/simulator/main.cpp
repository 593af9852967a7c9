// hearsay-simulator: what `hearsay simulate` starts. All ranks are threads of this one process, of which one runs at a
// time, on a simulated cluster.
#include <sys/resource.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <memory>
#include <optional>

#include "apps/shared/failure.hpp"
#include "apps/shared/launch.hpp"
#include "apps/shared/options.hpp"
#include "apps/shared/output.hpp"
#include "apps/simulator/job.hpp"
#include "base/error.hpp"
#include "runtime/mpi/simulated/cluster.hpp"
#include "runtime/mpi/simulated/failure.hpp"
#include "runtime/transport/failure_detector.hpp"

namespace {

using namespace hearsay;

std::string joined(int argc, char** argv) {
  std::string text = "hearsay simulate";
  for (int i = 1; i < argc; ++i) text += " " + std::string(argv[i]);
  return text;
}

/// Every rank keeps its metrics open, and the usual limit is 1024 files a process.
void raise_open_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

/// One rank, from its MPI_Init to its MPI_Finalize. An error ends the process; a rank that others have taken for dead
/// ends alone.
void run_rank(const SimulatedJob& job) {
  std::unique_ptr<mpi::Environment> environment;
  bool alone = false;
  try {
    environment = std::make_unique<mpi::Environment>();
    job.run(*environment);
  } catch (const TakenForDead& error) {
    say("hearsay: [rank " + std::to_string(environment->rank()) + "]", error.what());
    alone = true;
  } catch (const std::exception&) {
    const Failure failure = failure_in_flight();
    say("hearsay: [rank " + std::to_string(environment ? environment->rank() : 0) + "]", failure.message);
    leave(failure.code);  // all ranks are one process
  }
  if (alone) mpi::stand_still();
}

int run(int argc, char** argv) {
  CLI::App app("Runs a configuration on a simulated cluster, in simulated time.", "hearsay simulate");
  SimulateArguments arguments;
  add_simulate_options(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& request) {
    if (request.get_exit_code() == 0) return app.exit(request);  // --help
    throw ConfigError(std::string(request.what()) + " (see hearsay simulate --help)");
  }
  default_to_one_thread();
  const SimulatedJob job = read_job(arguments, joined(argc, argv));
  raise_open_files();
  mpi::run_cluster(
      {.platform = arguments.platform, .ranks = arguments.ranks, .scale = job.scale, .threads = job.threads},
      [&job] { run_rank(job); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    if (code == 0) require_printed();
    return code;
  } catch (...) {
    const Failure failure = failure_in_flight();
    say("hearsay:", failure.message);
    return failure.code;
  }
}
