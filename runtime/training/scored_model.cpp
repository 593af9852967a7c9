#include "runtime/training/scored_model.hpp"

#include <algorithm>

#include "runtime/training/set_up.hpp"

namespace hearsay {

ScoredModel score_model(const RunPlan& plan, const std::filesystem::path& file) {
  const DataSet data = load_data(plan.parts());
  Model model = make_model(plan.parts(), data, 0);
  model.load(file);
  model.module().eval();
  const TestSet test = test_set(data);
  Score sum;
  sum.sums.resize(model.objective().measures.size(), 0.0);
  for (std::size_t first = 0; first < test.size; first += std::min(test.batch_size, test.size - first))
    sum += model.score(test.batch(first, std::min(test.batch_size, test.size - first)));
  return {.metrics = values_of(model.objective(), sum), .loss = sum.loss_sum / sum.targets, .examples = test.size};
}

}  // namespace hearsay
