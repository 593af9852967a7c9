#include "runtime/training/dry_run.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include "base/timing.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/training/set_up.hpp"

namespace hearsay {
namespace {

/// The most that this process has had in memory, by the system's account; 0 where it keeps none. The most and not what
/// it has now: a step's activations are given back at its end.
std::uint64_t most_resident_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::uint64_t kibibytes = 0;
    if (word == "VmHWM:" && file >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

/// The neighbours of a rank that has most of them.
std::size_t highest_degree(const Topology& topology) {
  if (topology.everybody) return static_cast<std::size_t>(topology.ranks() - 1);
  std::size_t degree = 0;
  for (int rank = 0; rank < topology.ranks(); ++rank)
    degree = std::max(degree, topology.neighbourhood(rank).neighbours.size());
  return degree;
}

/// After a step of the model has been made here.
std::vector<DryRun::Memory> memory_of(const RunPlan::Parts& plan, Model& model, const Topology& topology) {
  const Layout& layout = model.replica().layout;
  const std::size_t block = layout.size() * sizeof(float), degree = highest_degree(topology);
  // The mean model, what it stands in for meanwhile, and the library's own block while it adds.
  const std::size_t evaluation = (topology.ranks() > 1 ? 3 : 2) * block;
  std::vector<DryRun::Memory> memory{
      {"program, data, model and one step", most_resident_bytes()},
      {"window", window_bytes(*plan.exchange, layout, degree, topology.ranks(), plan.on_failure.spares)},
      {"exchange", plan.exchange->kept_bytes(layout, degree, topology.ranks())},
      {"optimizer", plan.optimizer->kept_bytes(model)},
      {"evaluation", evaluation}};
  if (plan.checkpoint.periodic())
    memory.push_back({"checkpoint, while it is written", checkpoint_bytes(plan, model, degree, topology.ranks())});
  return memory;
}

/// Nothing where segments are moved in unlike ways.
std::optional<Stability> stability_of(const RunPlan::Parts& plan, Model& model, const Topology& topology) {
  const std::vector<StepResponse> steps = plan.optimizer->build(model)->steps();
  if (steps.empty() || std::ranges::any_of(steps, [&](const StepResponse& step) { return step != steps.front(); }))
    return std::nullopt;
  return plan.exchange->stability(topology, steps.front());
}

}  // namespace

DryRun dry_run(const RunPlan& plan, int processes) {
  use_threads(plan.parts().threads);
  const int ranks = plan.ranks(processes);
  const Topology topology = plan.topology(processes);
  const DataSet data = load_data(plan.parts());
  Model model = make_model(plan.parts(), data, 0);
  const Layout& layout = model.replica().layout;
  const RunLength length = plan.length(data.train->size(), ranks);
  model.loss_and_gradient(make_batches(plan.parts(), data, ranks, 0).next());
  return {.ranks = ranks,
          .spares = plan.parts().on_failure.spares,
          .directed_edges = topology.directed_edges(),
          .spectral_gap = topology.spectrum().gap,
          .parameters = layout.size(),
          .segments = layout.count(),
          .memory = memory_of(plan.parts(), model, topology),
          .stability = stability_of(plan.parts(), model, topology),
          .worst_case_bytes_per_iteration = plan.parts().exchange->worst_case_bytes(layout, topology),
          .iterations_per_epoch = length.iterations_per_epoch,
          .iterations = length.iterations};
}

MeasuredModel measure_model(const RunPlan& plan, int ranks) {
  use_threads(plan.parts().threads);
  const DataSet data = load_data(plan.parts());
  Model model = make_model(plan.parts(), data, 0, 0);
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
