#include "runtime/training/dry_run.hpp"

#include <algorithm>

#include "base/timing.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/training/process/threads.hpp"
#include "runtime/training/set_up.hpp"

namespace hearsay {

DryRun dry_run(const RunPlan& plan, int ranks) {
  const Topology topology = plan.topology(ranks);
  const ImageData data = load_data(plan.parts());
  const Model model = make_model(plan.parts(), data.train, 0);
  const Layout& layout = model.replica().layout;
  const RunLength length = plan.length(data.train.size(), ranks);
  std::size_t degree = 0;
  for (int rank = 0; rank < ranks; ++rank) degree = std::max(degree, topology.neighbourhood(rank).neighbours.size());
  return {.ranks = ranks,
          .directed_edges = topology.directed_edges(),
          .spectral_gap = topology.spectrum().gap,
          .parameters = layout.size(),
          .segments = layout.count(),
          .window_bytes = Participant::window_bytes(*plan.parts().exchange, layout, degree, ranks),
          .worst_case_bytes_per_iteration = plan.parts().exchange->worst_case_bytes(layout, topology),
          .iterations_per_epoch = length.iterations_per_epoch,
          .iterations = length.iterations};
}

MeasuredModel measure_model(const RunPlan& plan, int ranks) {
  use_threads(plan.parts().threads);
  const ImageData data = load_data(plan.parts());
  Model model = make_model(plan.parts(), data.train, 0, 0);
  TrainingBatches batches = make_batches(plan.parts(), data, ranks, 0);
  constexpr int steps = 5;
  std::vector<double> seconds;
  model.loss_and_gradient(batches.next());  // the first one allocates
  for (int i = 0; i < steps; ++i) {
    const Batch batch = batches.next();
    seconds.push_back(seconds_taken([&] { model.loss_and_gradient(batch); }));
  }
  return {.layout = model.replica().layout, .step_s = median(std::move(seconds))};
}

}  // namespace hearsay
