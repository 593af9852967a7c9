#include "apps/tools/watch_view.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>
#include <vector>

#include "apps/shared/text.hpp"
#include "base/text/foreign_text.hpp"

namespace hearsay {
namespace {

constexpr std::array<const char*, 8> blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/// The means of `width` equal shares of `values`; of fewer where there are fewer values.
std::vector<double> shares_of(const std::deque<double>& values, std::size_t width) {
  const std::size_t count = std::min(width, values.size());
  std::vector<double> means;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = i * values.size() / count, to = (i + 1) * values.size() / count;
    double sum = 0.0;
    for (std::size_t j = from; j < to; ++j) sum += values[j];
    means.push_back(sum / static_cast<double>(to - from));
  }
  return means;
}

std::int64_t fastest(const WatchedRun& run) {
  std::int64_t most = 0;
  for (int r = 0; r < run.ranks(); ++r) most = std::max(most, run.rank(r).iteration + 1);
  return most;
}

/// "running", what the summary says, or how long nobody has written.
std::string state(const WatchedRun& run) {
  constexpr double records = 5.0;
  if (run.status()) return *run.status();
  double patience_s = dead_after_s;
  for (int r = 0; r < run.ranks(); ++r) patience_s = std::max(patience_s, records * run.rank(r).between_records_s);
  const double silent_s = run.silent_s();
  return silent_s < patience_s ? "running" : "no news for " + duration(silent_s) + ", probably dead";
}

std::string headline(const WatchedRun& run) {
  std::string text = run.directory().filename().string() + ": " + run.title() + ", " + counted(run.ranks(), "rank") +
                     ", " + state(run);
  if (const auto quality = run.quality())
    text += ", " + metric_name(quality->metric) + " " + metric_text(quality->metric, quality->value);
  return shown(text);
}

/// What a rank has sent of what D-PSGD would have sent until now; "–" where there is no such number.
std::string sent_of_possible(const WatchedRun& run, int r) {
  const WatchedRank& rank = run.rank(r);
  const auto possible =
      static_cast<double>(run.segments() * run.neighbours(r).size()) * static_cast<double>(rank.iteration + 1);
  return possible > 0.0 ? percent(static_cast<double>(rank.messages) / possible, 1) : "–";
}

/// A column of the table: its head, what it is (nothing where the head says it), and what it says of a rank.
struct Column {
  std::string head, meaning;
  std::function<std::string(const WatchedRun& run, int r)> cell;
};

std::string iteration_text(const WatchedRun& run, int r) {
  const std::string all =
      run.iterations() > 0 ? "/" + with_separators(static_cast<std::uint64_t>(run.iterations())) : "";
  return with_separators(static_cast<std::uint64_t>(run.rank(r).iteration + 1)) + all;
}

std::string heard_text(const WatchedRun& run, int r) {
  const std::chrono::duration<double> ago = std::filesystem::file_time_type::clock::now() - run.rank(r).heard;
  return duration(std::max(0.0, ago.count()));
}

std::vector<Column> columns() {
  return {{"iteration", "", iteration_text},
          {"epoch", "", [](const WatchedRun& run, int r) { return fixed(run.rank(r).epoch, 2); }},
          {"it/s", "iterations a second",
           [](const WatchedRun& run, int r) { return significant(run.rank(r).iterations_per_second, 3); }},
          {"loss", "of its batches", [](const WatchedRun& run, int r) { return significant(run.rank(r).loss, 3); }},
          {"messages", "sent, of what D-PSGD would have sent", sent_of_possible},
          {"sent", "all bytes",
           [](const WatchedRun& run, int r) { return byte_count(static_cast<double>(run.rank(r).bytes_sent)); }},
          {"stale", "oldest copy of a neighbour mixed, in iterations",
           [](const WatchedRun& run, int r) { return std::to_string(run.rank(r).staleness_max); }},
          {"heard", "time since its last record", heard_text}};
}

std::string rank_table(const WatchedRun& run, const std::vector<Column>& shown_columns) {
  std::vector<std::vector<std::string>> rows{{"rank"}};
  for (const Column& column : shown_columns) rows.front().push_back(column.head);
  const std::size_t shown = std::min(shown_ranks, static_cast<std::size_t>(run.ranks()));
  for (int r = 0; r < static_cast<int>(shown); ++r) {
    rows.push_back({std::to_string(r)});
    for (const Column& column : shown_columns)
      rows.back().push_back(run.rank(r).iteration < 0 ? "–" : column.cell(run, r));
  }
  std::string text = aligned_table(rows);
  if (static_cast<std::size_t>(run.ranks()) > shown)
    text += "… and " + std::to_string(static_cast<std::size_t>(run.ranks()) - shown) + " ranks more\n";
  return text;
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, screen_width(line));
  return widest;
}

/// The table with as many columns as there is room for, and what they are.
std::string explained_table(const WatchedRun& run, std::size_t width) {
  std::vector<Column> shown = columns();
  std::string table = rank_table(run, shown);
  for (const char* dispensable : {"epoch", "stale", "it/s", "sent"}) {
    if (widest_line(table) <= width) break;
    std::erase_if(shown, [&](const Column& column) { return column.head == dispensable; });
    table = rank_table(run, shown);
  }
  std::string legend;
  for (const Column& column : shown)
    if (!column.meaning.empty()) legend += (legend.empty() ? "" : "; ") + column.head + ": " + column.meaning;
  return table + wrapped("(" + legend + ")", width, 1) + "\n";
}

/// "0→1 1.2 MB/s", the busiest first.
std::string busiest_edges(const WatchedRun& run, std::size_t width) {
  struct Edge {
    int from, to;
    double rate;
  };
  std::vector<Edge> edges;
  for (int r = 0; r < run.ranks(); ++r) {
    const auto& rates = run.rank(r).neighbour_rates;
    for (std::size_t e = 0; e < std::min(rates.size(), run.neighbours(r).size()); ++e)
      edges.push_back({r, run.neighbours(r)[e], rates[e]});
  }
  if (edges.empty()) return "";
  std::ranges::stable_sort(edges, std::ranges::greater{}, &Edge::rate);
  const std::size_t shown = std::min(shown_edges, edges.size());
  std::string text = shown < edges.size() ? "busiest of " + std::to_string(edges.size()) + " edges " : "edges ";
  for (std::size_t i = 0; i < shown; ++i)
    text += (i == 0 ? "" : " · ") + std::to_string(edges[i].from) + "→" + std::to_string(edges[i].to) + " " +
            byte_count(edges[i].rate) + "/s";
  return wrapped(text, width, 2) + "\n";
}

std::string stragglers(const WatchedRun& run, std::size_t width) {
  const std::int64_t most = fastest(run);
  std::string text;
  for (int r = 0; r < run.ranks(); ++r) {
    const std::int64_t behind = most - (run.rank(r).iteration + 1);
    if (static_cast<double>(behind) > straggles * static_cast<double>(most))
      text += (text.empty() ? "stragglers: rank " : ", rank ") + std::to_string(r) + " by " +
              with_separators(static_cast<std::uint64_t>(behind)) + " iterations";
  }
  return text.empty() ? "" : wrapped(text, width, 2) + "\n";
}

}  // namespace

std::string sparkline(const std::deque<double>& values, std::size_t width) {
  const std::vector<double> means = shares_of(values, width);
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double x : means) {
    if (!std::isfinite(x)) continue;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  std::string line;
  for (const double x : means) {
    const double height = high > low ? (x - low) / (high - low) : 0.0;
    line += std::isfinite(x) ? blocks[std::min<std::size_t>(7, static_cast<std::size_t>(8.0 * height))] : " ";
  }
  return line;
}

std::string watch_view(const WatchedRun& run, std::size_t width) {
  std::string view = wrapped(headline(run), width, 2) + "\n" + explained_table(run, width);
  if (!run.losses().empty()) {
    const std::string label = "loss of rank 0 ", last = " " + significant(run.losses().back(), 3);
    const std::size_t taken = screen_width(label) + screen_width(last);
    view += label + sparkline(run.losses(), width > taken ? width - taken : 1) + last + "\n";
  }
  return shown_lines(view + busiest_edges(run, width) + stragglers(run, width));
}

}  // namespace hearsay
