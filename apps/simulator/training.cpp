// Simulated runs that train a model: `hearsay train`'s run, its ranks in one process.
#include <cstdio>
#include <memory>
#include <utility>

#include "apps/shared/chosen_run.hpp"
#include "apps/shared/long_work.hpp"
#include "apps/shared/output.hpp"
#include "apps/shared/train_report.hpp"
#include "apps/simulator/job.hpp"
#include "runtime/mpi/simulated/failure.hpp"
#include "runtime/training/session.hpp"

namespace hearsay {

SimulatedJob read_training_job(const Config& root, SimulationPlan simulation, int processes,
                               const std::string& command) {
  const auto run = std::make_shared<ChosenRun>(root);
  const Topology topology = run->plan().topology(processes);
  simulation.settle_failures(processes, run->plan().parts().on_failure);
  run->check();
  run->share_data();
  const auto folder = std::make_shared<RunFolder>(run->plan().report());
  say_warnings(*run->plan().parts().exchange, topology);
  const auto cluster = std::make_shared<SimulationPlan>(std::move(simulation));
  return {.scale = cluster->scale, .run = [run, cluster, command, folder](mpi::Environment& mpi) {
            const RunPlan& plan = run->plan();
            LongWork work("simulate", "iteration", mpi.rank() == 0);
            const auto say = [&](const Summary& summary) {
              print(outcome_text(summary, plan.report().directory, plan.parts().save_model));
              require_all_written(summary);
            };
            const auto survived = [&](const Summary* of_all) {
              if (of_all != nullptr) say(*of_all);
              mpi::stand_still();
            };
            Fate fate(cluster->failures, mpi.rank());
            const Summary summary =
                train(mpi, plan,
                      {.command = command,
                       .progress = [&](const Progress& p) { work.reached(p.iteration, p.iterations); },
                       .compute_s = cluster->compute_time(plan.parts().seed, mpi.rank()),
                       .folder = folder,
                       .begun = [&] { fate.began(); },
                       .survived = survived,
                       .may_take = [&](int rank) { return fate.may_take(rank); },
                       .shares_process = true});
            if (mpi.rank() == 0) say(summary);
          }};
}

}  // namespace hearsay
