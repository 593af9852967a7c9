#pragma once
// How far a command is that takes long, in lines on stderr: they are read in a pipe and in a log, too.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace hearsay {

/// Work in steps of about the same length: what it is at its beginning, then a line every few seconds.
class LongWork {
 public:
  /// `name`: what is said before every line. `unit`: what a step is, in the singular. `step_s`: what one takes at
  /// most, if that is known beforehand. `shows`: false on all ranks but one.
  LongWork(std::string name, std::string unit, bool shows, std::optional<double> step_s = std::nullopt);
  /// `done` of `steps` are done, `next` (nothing: not named) begins.
  void reached(std::int64_t done, std::int64_t steps, const std::string& next = "");

 private:
  using Clock = std::chrono::steady_clock;
  void say(const std::string& line) const;

  std::string name_, unit_;
  bool shows_, begun_ = false;
  std::optional<double> step_s_;
  Clock::time_point start_{}, shown_{};
};

/// "24 steps, at most about 48.0 s", or that it is not known yet how long they take.
std::string beginning_of_work(std::int64_t steps, const std::string& unit, std::optional<double> step_s);
/// "step 3/24 done after 6.12 s, about 42.8 s left · ring of 1000 values"
std::string progress_of_work(std::int64_t done, std::int64_t steps, const std::string& unit, double elapsed_s,
                             const std::string& next);

}  // namespace hearsay
