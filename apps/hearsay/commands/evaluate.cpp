// hearsay evaluate RUN: what a run's model is worth on its test set.
#include <cstdio>

#include "apps/hearsay/commands.hpp"
#include "apps/shared/chosen_run.hpp"
#include "apps/shared/configuration.hpp"
#include "apps/shared/launch.hpp"
#include "apps/shared/output.hpp"
#include "apps/shared/text.hpp"
#include "base/error.hpp"
#include "base/text/foreign_text.hpp"
#include "runtime/report/json.hpp"
#include "runtime/training/scored_model.hpp"

namespace hearsay {
namespace {

std::string text_of(const std::filesystem::path& file, const ScoredModel& scored) {
  constexpr std::size_t width = 41;
  std::string text = shown(file.string()) + " on " + with_separators(scored.examples) + " test examples\n";
  for (const MetricValue& value : scored.metrics)
    if (value.metric.name != loss_metric().name)
      text += "  " + pad_right(metric_name(value.metric), width) + metric_text(value.metric, value.value) + "\n";
  return text + "  " + pad_right("loss", width) + significant(scored.loss, 6) + "\n";
}

std::string json_of(const std::filesystem::path& file, const ScoredModel& scored) {
  Json json{{"model", file.string()}, {"examples", scored.examples}, {"loss", scored.loss}};
  for (const MetricValue& value : scored.metrics) json["metrics"][value.metric.name] = value.value;
  return dumped(json, 2, true) + "\n";
}

}  // namespace

int evaluate_command(const EvaluateArguments& arguments) {
  default_to_one_thread();
  const std::filesystem::path config = arguments.run / "config.yaml";
  std::error_code error;
  if (!std::filesystem::exists(config, error))
    throw ConfigError(arguments.run.string() + ": there is no config.yaml, so it is no run folder");
  const ChosenRun run = read_configuration(config, {}, [](Config root) { return ChosenRun(std::move(root)); });
  const std::filesystem::path file = arguments.model.value_or(arguments.run / "model.pt");
  const ScoredModel scored = score_model(run.plan(), file);
  const std::string text = arguments.json ? json_of(file, scored) : text_of(file, scored);
  print(text);
  return 0;
}

}  // namespace hearsay
