#include "apps/hearsay/views/progress.hpp"

#include <unistd.h>

#include <cmath>

#include "apps/shared/launch.hpp"
#include "apps/shared/text.hpp"
#include "base/text/foreign_text.hpp"

namespace hearsay {
namespace {

constexpr std::chrono::milliseconds between_bars{250};
constexpr std::chrono::milliseconds between_lines{2000};
constexpr double bytes_per_megabyte = 1e6;

ProgressMode resolved(ProgressMode mode, std::FILE* out) {
  if (mode != ProgressMode::automatic) return mode;
  const bool alone_on_terminal = !started_by_launcher() && ::isatty(::fileno(out)) == 1;
  return alone_on_terminal ? ProgressMode::bar : ProgressMode::lines;
}

std::string rate_text(double rate) { return fixed(rate, rate < 9.95 ? 2 : rate < 99.5 ? 1 : 0); }

}  // namespace

std::string progress_line(const Progress& p) {
  // `epoch` counts what is done: 1.2 is in the second epoch, and so is 2.
  return "iter " + std::to_string(p.iteration) + "/" + std::to_string(p.iterations) + " · epoch " +
         fixed(std::ceil(p.epoch), 0) + "/" + fixed(std::ceil(p.epochs), 0) + " · loss " + significant(p.loss, 3) +
         " · sent " + (p.messages_fraction > 0.0 ? percent(p.messages_fraction, 1) + " · " : "") +
         byte_count(bytes_per_megabyte * p.megabytes_sent) + " · " + rate_text(p.iterations_per_second) +
         " it/s · left " + duration(p.seconds_left);
}

ProgressDisplay::ProgressDisplay(ProgressMode mode, std::FILE* out)
    : mode_(resolved(mode, out)), out_(out), shown_(std::chrono::steady_clock::now()) {}

void ProgressDisplay::update(const Progress& progress) {
  if (mode_ == ProgressMode::off) return;
  const auto now = std::chrono::steady_clock::now();
  const bool due = now - shown_ >= (mode_ == ProgressMode::bar ? between_bars : between_lines);
  if (!due && progress.iteration < progress.iterations) return;
  shown_ = now;
  const std::string line = progress_line(progress);
  if (mode_ == ProgressMode::bar) {
    std::fprintf(out_, "\r%s", pad_right(line, bar_width_).c_str());
    bar_width_ = screen_width(line);
  } else {
    std::fprintf(out_, "%s\n", line.c_str());
  }
  std::fflush(out_);
}

void ProgressDisplay::say(const std::string& line) {
  if (mode_ == ProgressMode::off) return;
  finish();
  std::fprintf(out_, "%s\n", shown_message(line).c_str());
  std::fflush(out_);
}

void ProgressDisplay::evaluated(const EvaluationRecord& record) {
  std::string metrics;
  for (const auto& [metric, value] : record.metrics)
    if (metric.name != loss_metric().name) metrics += " · " + metric_name(metric) + " " + metric_text(metric, value);
  say("evaluation at iter " + std::to_string(record.iteration) + " · epoch " + significant(record.epoch, 4) + metrics +
      " · loss " + significant(record.loss_mean_model, 3) + " · consensus distance " +
      significant(record.consensus_distance, 3) + " · " + duration(record.time_s));
}

void ProgressDisplay::finish() {
  if (bar_width_ == 0) return;
  std::fprintf(out_, "\r%s\r", std::string(bar_width_, ' ').c_str());
  std::fflush(out_);
  bar_width_ = 0;
}

}  // namespace hearsay
