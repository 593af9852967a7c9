#include "apps/shared/long_work.hpp"

#include <cstdio>
#include <utility>

#include "apps/shared/output.hpp"
#include "apps/shared/text.hpp"

namespace hearsay {

std::string beginning_of_work(std::int64_t steps, const std::string& unit, std::optional<double> step_s) {
  const std::string count = counted(steps, unit);
  return step_s ? count + ", at most about " + duration(*step_s * static_cast<double>(steps))
                : count + "; how long they take is said as soon as the first is done";
}

std::string progress_of_work(std::int64_t done, std::int64_t steps, const std::string& unit, double elapsed_s,
                             const std::string& next) {
  std::string line =
      unit + " " + std::to_string(done) + "/" + std::to_string(steps) + " done after " + duration(elapsed_s);
  if (done > 0 && done < steps)
    line += ", about " + duration(elapsed_s * static_cast<double>(steps - done) / static_cast<double>(done)) + " left";
  return line + (next.empty() ? "" : " · " + next);
}

LongWork::LongWork(std::string name, std::string unit, bool shows, std::optional<double> step_s)
    : name_(std::move(name)), unit_(std::move(unit)), shows_(shows), step_s_(step_s) {}

void LongWork::reached(std::int64_t done, std::int64_t steps, const std::string& next) {
  constexpr std::chrono::seconds between_lines{2};
  if (!shows_) return;
  const auto now = Clock::now();
  if (!begun_) {
    begun_ = true;
    start_ = shown_ = now;
    if (done < steps) say(beginning_of_work(steps - done, unit_, step_s_));
  } else if (now - shown_ >= between_lines) {
    shown_ = now;
    say(progress_of_work(done, steps, unit_, std::chrono::duration<double>(now - start_).count(), next));
  }
}

void LongWork::say(const std::string& line) const { hearsay::say(name_ + ":", line); }

}  // namespace hearsay
