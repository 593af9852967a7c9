#pragma once
// How far a run is, on stderr of rank 0.
#include <chrono>
#include <cstdio>
#include <string>

#include "apps/hearsay/commands.hpp"
#include "runtime/training/session.hpp"

namespace hearsay {

/// "iter 1200/9380 · epoch 2/10 · loss 0.143 · sent 31.2 % · 4.1 MB · 812 it/s · left 10 s"
std::string progress_line(const Progress& progress);

/// `bar` rewrites one line, at most four times a second; `lines` writes a line every two seconds. Both write one line
/// an evaluation. `automatic` is `bar` for a process alone on a terminal, else `lines`.
class ProgressDisplay {
 public:
  ProgressDisplay(ProgressMode mode, std::FILE* out);
  ~ProgressDisplay() { finish(); }
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void update(const Progress& progress);
  void evaluated(const EvaluationRecord& record);
  void say(const std::string& line);
  /// Takes the bar off the screen.
  void finish();

 private:
  ProgressMode mode_;
  std::FILE* out_;
  std::chrono::steady_clock::time_point shown_;
  std::size_t bar_width_ = 0;  // columns on the screen now
};

}  // namespace hearsay
