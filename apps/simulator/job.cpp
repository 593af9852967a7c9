#include "apps/simulator/job.hpp"

#include <cstdio>
#include <memory>
#include <utility>

#include "apps/shared/configuration.hpp"
#include "apps/shared/train_report.hpp"
#include "apps/simulator/synthetic.hpp"

namespace hearsay {
namespace {

SimulatedJob synthetic_job(const Config& root, SimulationPlan simulation, int ranks, const std::string& command) {
  const auto run = std::make_shared<SyntheticRun>(read_synthetic_run(root, std::move(simulation), ranks, command));
  const auto folder = std::make_shared<RunFolder>(run->report);
  run->run_id = folder->id();
  return {.scale = run->simulation.scale, .threads = false, .run = [run, folder](mpi::Environment& mpi) {
            const Summary summary = run_synthetic(mpi, *run);
            if (mpi.rank() != 0) return;
            std::printf("%s", outcome_text(summary, run->report.directory, false).c_str());
            require_all_written(summary);
          }};
}

}  // namespace

SimulatedJob read_job(const SimulateArguments& arguments, const std::string& command) {
  return read_configuration(arguments.config, arguments.assignments(), [&](Config root) {
    SimulationPlan simulation = read_simulation(root);
    const bool synthetic = simulation.gradients == Gradients::synthetic;
    return (synthetic ? synthetic_job : read_training_job)(root, std::move(simulation), arguments.ranks, command);
  });
}

}  // namespace hearsay
