#include "apps/simulator/job.hpp"

#include <cstdio>
#include <memory>
#include <utility>

#include "apps/shared/configuration.hpp"
#include "apps/shared/train_report.hpp"
#include "apps/simulator/synthetic.hpp"
#include "runtime/mpi/simulated/failure.hpp"

namespace hearsay {
namespace {

SimulatedJob synthetic_job(const Config& root, SimulationPlan simulation, int ranks, const std::string& command) {
  const auto run = std::make_shared<SyntheticRun>(read_synthetic_run(root, std::move(simulation), ranks, command));
  const auto folder = std::make_shared<RunFolder>(run->report);
  run->run_id = folder->id();
  return {.scale = run->simulation.scale, .threads = false, .run = [run, folder](mpi::Environment& mpi) {
            const auto say = [&](const Summary& summary) {
              std::printf("%s", outcome_text(summary, run->report.directory, false).c_str());
              require_all_written(summary);
            };
            const Summary summary = run_synthetic(mpi, *run,
                                                  {.begun = [&] { fail_when_due(run->simulation, mpi.rank()); },
                                                   .survived =
                                                       [&](const Summary* of_all) {
                                                         if (of_all != nullptr) say(*of_all);
                                                         mpi::stand_still();
                                                       }});
            if (mpi.rank() == 0) say(summary);
          }};
}

}  // namespace

void fail_when_due(const SimulationPlan& simulation, int rank) {
  if (const auto after_s = simulation.fails_after_s(rank)) mpi::fail_after(*after_s);
}

SimulatedJob read_job(const SimulateArguments& arguments, const std::string& command) {
  return read_configuration(arguments.config, arguments.assignments(), [&](Config root) {
    SimulationPlan simulation = read_simulation(root, arguments.ranks);
    const bool synthetic = simulation.gradients == Gradients::synthetic;
    return (synthetic ? synthetic_job : read_training_job)(root, std::move(simulation), arguments.ranks, command);
  });
}

}  // namespace hearsay
