#include "apps/shared/train_report.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <system_error>

#include "apps/shared/output.hpp"
#include "apps/shared/text.hpp"
#include "base/text/foreign_text.hpp"

namespace hearsay {
namespace {

std::string line(std::string_view label, const std::string& text) {
  constexpr std::size_t label_width = 41;
  return "  " + pad_right(shown(label), label_width) + shown(text) + "\n";
}

std::string bytes_text(std::uint64_t bytes) {
  const std::string exact = with_separators(bytes) + " bytes";
  return bytes < 1000 ? exact : byte_count(static_cast<double>(bytes)) + " (" + exact + ")";
}

/// With a warning where what is mixed is old for a run of this length.
std::string staleness_text(const Summary& s) {
  constexpr double large_part = 0.1;
  const auto iterations = static_cast<double>(s.iterations);
  std::string text = line("age of mixed copies, iterations", "mean " + significant(*s.staleness_mean, 3) +
                                                                 ", at most " + significant(*s.staleness_max, 6));
  if (s.staleness_p99_s)
    text += line("age of mixed copies, seconds", "median " + significant(*s.staleness_median_s, 2) + ", 99 % at most " +
                                                     significant(*s.staleness_p99_s, 2));
  if (*s.staleness_max > large_part * iterations)
    text += "  warning: the oldest of them was " + percent(*s.staleness_max / iterations, 0) +
            " of the run behind; staleness.csv says on which edge\n";
  return text;
}

/// The sum, and below it what it is made of.
std::string memory_text(const DryRun& run) {
  std::string text = line("memory of a rank, at most", byte_count(static_cast<double>(run.memory_bytes())));
  for (const DryRun::Memory& part : run.memory)
    text += line("  " + std::string(part.what), byte_count(static_cast<double>(part.bytes)));
  return text;
}

}  // namespace

std::string dry_run_text(const DryRun& run, const Topology& topology) {
  const std::string graph = topology.graph_name + " of " + counted(run.ranks, "rank") + ", " + topology.weights_name;
  const std::string in_use =
      topology.changes() ? ", of which an iteration uses " + std::to_string(topology.edges_in_use()) : "";
  return "dry run: nothing is trained\n" + line("graph", graph + " weights") +
         (run.spares == 0 ? "" : line("spares", std::to_string(run.spares) + " more, to replace ranks that die")) +
         line("directed edges", std::to_string(run.directed_edges) + in_use) +
         line("spectral gap", significant(run.spectral_gap, 6) + (topology.changes() ? " of a period" : "")) +
         line("parameters",
              with_separators(run.parameters) + " in " + counted(static_cast<std::int64_t>(run.segments), "segment")) +
         line("iterations", with_separators(static_cast<std::uint64_t>(run.iterations)) + " (" +
                                with_separators(static_cast<std::uint64_t>(run.iterations_per_epoch)) + " an epoch)") +
         line("stability", stability_text(run.stability)) + memory_text(run) +
         line("bytes per iteration, at most", bytes_text(run.worst_case_bytes_per_iteration));
}

namespace {

std::string lost_text(const LostRank& lost, std::int64_t local_steps) {
  if (!lost.rank) return "process " + std::to_string(lost.process) + ", a spare, after " + duration(lost.at_s);
  const std::string process = lost.process == *lost.rank ? "" : " (process " + std::to_string(lost.process) + ")";
  std::string text = "rank " + std::to_string(*lost.rank) + process + " after " + duration(lost.at_s) +
                     ", in its iteration " + std::to_string(lost.iterations);
  if (local_steps == 1) return text;
  const std::int64_t round = std::max<std::int64_t>(1, (lost.iterations + local_steps - 1) / local_steps);
  return text + ", round " + std::to_string(round) + " of " + std::to_string(local_steps) +
         " local steps: from there on rounds go without it";
}

}  // namespace

std::string outcome_text(const Summary& s, const std::filesystem::path& directory, bool saved_model) {
  const std::string head = s.exchange + " (" + s.schedule + "), " + s.model + " on " + s.dataset + ", " +
                           counted(s.ranks, "rank") + ", " + counted(s.iterations, "iteration") + ": " + s.status;
  std::string text = shown(head) + "\n";
  const RunQuality quality = s.quality().value_or(RunQuality{.metric = accuracy_metric()});
  const std::string judged_by = metric_name(quality.metric);
  text += line(judged_by + " of the averaged model", metric_text(quality.metric, quality.mean_model));
  text += line(judged_by + " of the worst rank", metric_text(quality.metric, quality.rank_worst));
  for (std::size_t i = 1; i < s.metrics.size(); ++i)
    text += line(metric_name(s.metrics[i].metric) + " of the averaged model",
                 metric_text(s.metrics[i].metric, s.metrics[i].mean_model));
  if (s.ranks > 1) {
    text += line("consensus distance", significant(s.consensus_distance, 3));
    const bool neighbours = s.messages_possible > 0;
    text += line("messages", with_separators(s.totals.messages) +
                                 (neighbours ? " (" + percent(s.messages_fraction()) + " of D-PSGD's)" : ""));
    text += line("bytes", byte_count(static_cast<double>(s.totals.bytes())) + " (" + percent(s.bytes_fraction()) +
                              (neighbours ? " of D-PSGD's)" : " of a dense ring all-reduce's)"));
    if (s.totals.value_events > 0) {
      const auto values = static_cast<double>(s.dense_payload_bytes) / sizeof(float);
      text += line("value events",
                   with_separators(s.totals.value_events) + " (" +
                       percent(static_cast<double>(s.totals.value_events) / values) + " of all values, in " +
                       significant(8.0 * static_cast<double>(s.totals.bytes()) / values, 3) + " bits a value)");
    }
    if (s.iterations < s.local_steps && s.totals.bytes() == 0)
      text += "  warning: " + counted(s.iterations, "iteration") + ": a round has " + std::to_string(s.local_steps) +
              " (exchange.local_steps), so the ranks have exchanged nothing\n";
    if (s.staleness_max) text += staleness_text(s);
    const auto [fewest, most] = s.rank_iterations;
    if (fewest < most)
      text += line("iterations of a rank", with_separators(static_cast<std::uint64_t>(fewest)) + " to " +
                                               with_separators(static_cast<std::uint64_t>(most)) + "; idle " +
                                               duration(s.idle_s) + " on average");
    for (const auto& [name, value] : s.shares) text += line(name, significant(value, 3));
  }
  for (const LostRank& lost : s.ranks_lost) text += line("lost", lost_text(lost, s.local_steps));
  for (const JoinedRank& joined : s.ranks_joined)
    text += line("joined", "process " + std::to_string(joined.process) + " in the place of rank " +
                               std::to_string(joined.rank) + " after " + duration(joined.at_s) + ": " +
                               counted(joined.iterations, "iteration"));
  if (s.status == "finished" && !s.message.empty()) text += "  warning: " + shown(s.message) + "\n";
  text += line("time", duration(s.wall_time_s) + " (" + duration(s.time_per_iteration_s) + " per iteration)");
  std::error_code unknown;
  if (saved_model && std::filesystem::exists(directory / "model.pt", unknown))
    text += line("averaged model", (directory / "model.pt").string());
  return text + line("run folder", directory.string());
}

std::vector<std::string> warnings_of(const RunPlan::Parts& plan, const Topology& topology) {
  std::vector<std::string> sentences = plan.exchange->warnings(topology);
  if (plan.device != "cpu")
    for (std::string& sentence : plan.exchange->warnings_on_gpus()) sentences.push_back(std::move(sentence));
  return sentences;
}

void say_warnings(const ExchangePlan& exchange, const Topology& topology) {
  for (const std::string& warning : exchange.warnings(topology)) say("warning:", warning);
}

void require_all_written(const Summary& summary) {
  if (summary.not_written.empty()) return;
  std::string text = "the run has ended, but not all of its files could be written:";
  for (const std::string& problem : summary.not_written) text += "\n  " + problem;
  throw DataError(text);
}

}  // namespace hearsay
