#include "apps/tools/comparison.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "apps/shared/text.hpp"
#include "base/text/foreign_text.hpp"

namespace hearsay {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t widest_name = 23, beside_bits = 18;  // columns
constexpr double bits_of_float = 32.0;

std::string path_text(const std::filesystem::path& directory) {
  std::string text = directory.lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

/// "…gest/part/of/the/end" if longer than `widest` columns; names are ASCII or cut at a code point.
std::string shortened(const std::string& name, std::size_t widest) {
  if (screen_width(name) <= widest) return name;
  std::size_t at = 0;
  while (screen_width(std::string_view(name).substr(at)) >= widest ||
         (static_cast<unsigned char>(name[at]) & 0xC0U) == 0x80U) {
    ++at;
  }
  return "…" + name.substr(at);
}

/// Exact below ten million, as the table has room for.
std::string count_text(std::uint64_t n) {
  constexpr std::uint64_t ten_million = 10'000'000;
  if (n < ten_million) return with_separators(n);
  const double millions = 1e-6 * static_cast<double>(n);
  return millions < 9999.5 ? fixed(millions, millions < 99.95 ? 2 : 1) + " M" : fixed(1e-3 * millions, 1) + " G";
}

std::string number_of_percent(double fraction) {
  const double x = 100.0 * fraction;
  return x >= 99999.5 ? ">99999" : fixed(x, x < 9.995 ? 2 : x < 999.95 ? 1 : 0);
}

/// Bits that were sent for each value that D-PSGD would have sent.
std::string bits_a_value(const Summary& run) {
  return significant(run.replica_hashes.empty() ? not_a_number : bits_of_float * run.bytes_fraction(), 3);
}

bool is_simulated(const Summary& run) { return run.clock == "simulated"; }

/// What a run that broke off has not measured is shown as missing, never as 0: it has no hashes and no evaluation.
std::vector<std::string> row(const std::string& name, const Summary& run, const Summary& baseline) {
  const bool counted = !run.replica_hashes.empty();
  const std::string missing = significant(not_a_number, 1);
  const auto of_first = [&](std::uint64_t part, std::uint64_t whole) {
    return counted ? number_of_percent(fraction_of(part, whole)) : missing;
  };
  const RunQuality quality = run.quality().value_or(RunQuality{.metric = metric_of(baseline)});
  return {name,
          metric_text(quality.metric, quality.mean_model),
          metric_text(quality.metric, quality.rank_worst),
          run.quality() ? significant(run.consensus_distance, 3) : missing,
          counted ? count_text(run.totals.messages) : missing,
          of_first(run.totals.messages, baseline.totals.messages),
          counted ? byte_count(static_cast<double>(run.totals.bytes())) : missing,
          of_first(run.totals.bytes(), baseline.totals.bytes()),
          counted ? (is_simulated(run) ? "~" : "") + duration(run.time_per_iteration_s) : missing};
}

/// "ranks 8 (baseline: 4)" for everything in which the run is another experiment.
std::string differences(const Summary& run, const Summary& baseline) {
  std::string text;
  const auto compare = [&](const char* what, const std::string& here, const std::string& there) {
    if (here != there)
      text += (text.empty() ? "" : ", ") + std::string(what) + " " + here + " (baseline: " + there + ")";
  };
  compare("ranks", std::to_string(run.ranks), std::to_string(baseline.ranks));
  compare("directed edges", std::to_string(run.edges), std::to_string(baseline.edges));
  compare("model", run.model, baseline.model);
  compare("parameters", std::to_string(run.parameters), std::to_string(baseline.parameters));
  compare("data", run.dataset, baseline.dataset);
  compare("iterations", std::to_string(run.iterations), std::to_string(baseline.iterations));
  compare("schedule", run.schedule, baseline.schedule);
  if (run.quality() && baseline.quality())
    compare("judged by", metric_name(metric_of(run)), metric_name(metric_of(baseline)));
  return text;
}

/// "lost rank 3 after 12.0 s, a spare after 14.1 s; in the places of dead ranks came …", or how many, where they are
/// many; empty: nobody.
std::string losses(const Summary& run) {
  constexpr std::size_t most_names = 4;
  const auto listed = [](const auto& ranks, const auto& name) {
    if (ranks.size() > most_names) return counted(static_cast<std::int64_t>(ranks.size()), "rank");
    std::string text;
    for (const auto& of : ranks) text += (text.empty() ? "" : ", ") + name(of) + " after " + duration(of.at_s);
    return text;
  };
  if (run.ranks_lost.empty()) return "";
  std::string text = "lost " + listed(run.ranks_lost, [](const LostRank& lost) {
                       return lost.rank ? "rank " + std::to_string(*lost.rank) : std::string("a spare");
                     });
  if (run.ranks_joined.empty()) return text;
  return text + "; in the places of dead ranks came " + listed(run.ranks_joined, [](const JoinedRank& joined) {
           return "process " + std::to_string(joined.process) + " (rank " + std::to_string(joined.rank) + ")";
         });
}

}  // namespace

Metric metric_of(const Summary& run) {
  const auto quality = run.quality();
  return quality ? quality->metric : accuracy_metric();
}

double fraction_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? not_a_number : static_cast<double>(part) / static_cast<double>(whole);
}

std::vector<std::string> run_names(const std::vector<ComparedRun>& runs) {
  std::vector<std::string> names, paths;
  for (const ComparedRun& run : runs) {
    paths.push_back(path_text(run.directory));
    names.push_back(std::filesystem::path(paths.back()).filename().string());
  }
  const std::vector<std::string> short_names = names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::count(short_names.begin(), short_names.end(), short_names[i]) > 1) names[i] = paths[i];
  }
  return names;
}

// Where single values are events, what is sent of a segment says nothing of its bytes: bits a value do.
std::string comparison_table(const std::vector<ComparedRun>& runs) {
  const bool bits = std::ranges::any_of(runs, [](const ComparedRun& of) { return of.summary.totals.value_events > 0; });
  std::vector<std::vector<std::string>> rows{{"run", metric_name(metric_of(runs[0].summary)), "worst", "consensus",
                                              "messages", "% of", "bytes", "% of", "time per"},
                                             {"", "averaged", "rank", "distance", "", "first", "", "first", "iter."}};
  const std::vector<std::string> names = run_names(runs);
  for (std::size_t i = 0; i < runs.size(); ++i)
    rows.push_back(row(shortened(shown(names[i]), bits ? beside_bits : widest_name), runs[i].summary, runs[0].summary));
  if (bits) {
    std::vector<std::string> column{std::string("bits a"), std::string("value")};
    for (const ComparedRun& run : runs) column.push_back(bits_a_value(run.summary));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].insert(rows[i].end() - 1, column[i]);
  }
  return aligned_table(rows);
}

std::string time_table(const std::vector<ComparedRun>& runs) {
  const Metric metric = metric_of(runs[0].summary);
  std::vector<std::vector<Evaluated>> evaluations;
  for (const ComparedRun& run : runs) evaluations.push_back(run.evaluations);
  const auto common = reached_by_all(evaluations, metric);
  if (!common) return "";
  std::vector<std::vector<std::string>> rows{
      {metric_name(metric) + " " + metric_text(metric, common->value) + ", which all reach", "after", "% of first"}};
  const std::vector<std::string> names = run_names(runs);
  for (std::size_t i = 0; i < runs.size(); ++i)
    rows.push_back({shortened(shown(names[i]), widest_name),
                    (is_simulated(runs[i].summary) ? "~" : "") + duration(common->time_s[i]),
                    number_of_percent(common->time_s[i] / common->time_s[0])});
  return aligned_table(rows);
}

std::vector<std::string> comparison_notes(const std::vector<ComparedRun>& runs) {
  std::vector<std::string> notes;
  const std::vector<std::string> names = run_names(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Summary& run = runs[i].summary;
    if (run.status == "finished") continue;
    notes.push_back(names[i] + " " + run.status + " after " + counted(run.iterations, "iteration") +
                    (run.message.empty() ? "." : ": " + run.message));
  }
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (const std::string text = losses(runs[i].summary); !text.empty()) notes.push_back(names[i] + " " + text + ".");
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const std::string text = differences(runs[i].summary, runs[0].summary);
    if (!text.empty()) notes.push_back(names[i] + " is another experiment than the first run: " + text + ".");
    if (!runs[i].summary.replica_hashes.empty() && runs[i].summary.replica_hashes == runs[0].summary.replica_hashes)
      notes.push_back(names[i] + " ended with the replicas of the first run, to the last bit.");
  }
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (is_simulated(runs[i].summary)) notes.push_back("~ the time of " + names[i] + " is simulated, not measured.");
  if (runs[0].summary.totals.messages == 0)
    notes.push_back(names[0] + " counted no messages, so nothing can be a % of it.");
  return notes;
}

}  // namespace hearsay
