// hearsay bench training
#include <cstdio>

#include "apps/bench/training/training.hpp"
#include "apps/hearsay/commands.hpp"
#include "apps/shared/launch.hpp"
#include "apps/shared/long_work.hpp"
#include "apps/shared/text.hpp"
#include "base/error.hpp"
#include "base/timing.hpp"
#include "hearsay_version.hpp"
#include "runtime/report/json.hpp"

namespace hearsay {
namespace {

constexpr std::array shown_phases{Phase::compute, Phase::trigger, Phase::select,   Phase::encode,
                                  Phase::wait,    Phase::mix,     Phase::optimizer};

const std::vector<std::string> all_exchanges{
    "eventgrad:asynchronous", "eventgrad:lockstep", "dpsgd:lockstep", "allreduce", "topk", "gtopk", "lkgs", "hitopk",
    "gradient_dropping"};

TrainingOptions checked_training(const BenchTrainingArguments& arguments) {
  for (const auto& [flag, number] :
       {std::pair{"--batch", arguments.batch}, {"--iterations", arguments.iterations}, {"--blocks", arguments.blocks}})
    if (number < 1) throw ConfigError(std::string(flag) + " " + std::to_string(number) + ": at least 1");
  return {.model = arguments.model,
          .device = arguments.device,
          .batch_size = arguments.batch,
          .exchanges = arguments.exchanges.empty() ? all_exchanges : arguments.exchanges,
          .settings = arguments.settings,
          .iterations = arguments.iterations,
          .blocks = arguments.blocks};
}

std::string training_table(const std::vector<TrainingTiming>& timings) {
  std::vector<std::vector<std::string>> rows{{"exchange", "bare", "hearsay", "ratio", "lowest", "highest"}};
  for (const Phase phase : shown_phases) rows.front().emplace_back(phase_names[static_cast<std::size_t>(phase)]);
  for (const TrainingTiming& t : timings) {
    rows.push_back({t.exchange, duration(t.bare_s), duration(t.hearsay_s), fixed(t.ratio, 3), fixed(t.lowest_ratio, 3),
                    fixed(t.highest_ratio, 3)});
    for (const Phase phase : shown_phases)
      rows.back().push_back(percent(t.phase_s[static_cast<std::size_t>(phase)] / t.hearsay_s, 1));
  }
  return aligned_table(rows);
}

std::string json_lines(const std::vector<TrainingTiming>& timings, const TrainingOptions& options, int ranks) {
  const std::string kind = options.device == "cpu" ? "training/" : "training_" + options.device + "/";
  std::string lines;
  for (const TrainingTiming& t : timings) {
    Json line{{"kernel", kind + options.model + "/p" + std::to_string(ranks) + "/" + t.exchange},
              {"repetitions", options.blocks},
              {"median_s", t.hearsay_s},
              {"floor", "bare LibTorch loop"},
              {"ratio", t.ratio},
              {"machine", processor_name()},
              {"hearsay", std::string(full_version)}};
    for (std::size_t p = 0; p < t.phase_s.size(); ++p) line[std::string(phase_names[p]) + "_s"] = t.phase_s[p];
    lines += line.dump() + "\n";
  }
  return lines;
}

}  // namespace

int bench_training_command(const BenchTrainingArguments& arguments, const Words& words, JobSlot& job) {
  const TrainingOptions options = checked_training(arguments);
  default_to_one_thread();
  start_measuring(words, job);
  const bool speaks = job->rank() == 0;
  LongWork work("bench training", "exchange", speaks);
  const auto timings = measure_training(
      options, *job, [&](const BenchStep& step) { work.reached(step.index - 1, step.count, step.what); });
  if (!speaks) return 0;
  if (arguments.json) {
    std::printf("%s", json_lines(timings, options, job->ranks()).c_str());
    return 0;
  }
  std::printf(
      "%s, batch %d a rank, %s, %s (%s); %d pairs of blocks of %d iterations\n%s\n%s", options.model.c_str(),
      options.batch_size, counted(job->ranks(), "rank").c_str(), processor_name().c_str(), options.device.c_str(),
      options.blocks, options.iterations, training_table(timings).c_str(),
      "bare: a loop that only LibTorch runs, on every rank at once; ratio: of neighbouring blocks, median, lowest and\n"
      "highest; the rest: shares of an iteration under Hearsay, mean over ranks.\n");
  return 0;
}

}  // namespace hearsay
