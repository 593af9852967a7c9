#include "apps/simulator/job.hpp"

#include <cstdio>
#include <memory>
#include <utility>

#include "apps/shared/configuration.hpp"
#include "apps/shared/output.hpp"
#include "apps/shared/train_report.hpp"
#include "apps/simulator/synthetic.hpp"
#include "runtime/mpi/driver.hpp"
#include "runtime/mpi/simulated/failure.hpp"

namespace hearsay {
namespace {

SimulatedJob synthetic_job(const Config& root, SimulationPlan simulation, int processes, const std::string& command) {
  const auto run = std::make_shared<SyntheticRun>(read_synthetic_run(root, std::move(simulation), processes, command));
  const auto folder = std::make_shared<RunFolder>(run->description.report);
  say_warnings(*run->exchange, *run->topology);
  run->description.run_id = folder->id();
  return {.scale = run->simulation.scale, .threads = false, .run = [run, folder](mpi::Environment& mpi) {
            const auto say = [&](const Summary& summary) {
              print(outcome_text(summary, run->description.report.directory, false));
              require_all_written(summary);
            };
            const auto survived = [&](const Summary* of_all) {
              if (of_all != nullptr) say(*of_all);
              mpi::stand_still();
            };
            Fate fate(run->simulation.failures, mpi.rank());
            const Summary summary = run_synthetic(mpi, *run,
                                                  {.begun = [&] { fate.began(); },
                                                   .survived = survived,
                                                   .may_take = [&](int rank) { return fate.may_take(rank); }});
            if (mpi.rank() == 0) say(summary);
          }};
}

}  // namespace

void Fate::began() {
  start_ = mpi::clock()();
  if (const auto after_s = failures_.fails_after_s(process_)) mpi::fail_after(*after_s);
}

bool Fate::may_take(int rank) const {
  const auto back = failures_.comes_back(process_);
  const std::chrono::duration<double> since_start = mpi::clock()() - start_;
  return back && back->rank == rank && since_start.count() >= back->at_s;
}

SimulatedJob read_job(const SimulateArguments& arguments, const std::string& command) {
  return read_configuration(arguments.config, arguments.assignments(), [&](Config root) {
    SimulationPlan simulation = read_simulation(root, arguments.ranks);
    const bool synthetic = simulation.gradients == Gradients::synthetic;
    return (synthetic ? synthetic_job : read_training_job)(root, std::move(simulation), arguments.ranks, command);
  });
}

}  // namespace hearsay
