#pragma once
// The keys of `train:` that say what a rank that dies is to the others.
#include <chrono>

#include "base/config/config.hpp"
#include "runtime/exchange/exchange.hpp"

namespace hearsay {

struct OnFailure {
  bool others_go_on = false;  ///< on_failure: continue
  std::chrono::nanoseconds timeout{0};
  int spares = 0;  ///< processes of the job that wait to replace somebody
  int joins = 0;   ///< processes that may come later
  int vacant = 0;  ///< vertices of the graph that are empty until somebody comes

  /// ParticipantOptions::failure_timeout: 0 where a death is the end of the job.
  std::chrono::nanoseconds going_on() const { return others_go_on ? timeout : std::chrono::nanoseconds{0}; }
  /// ParticipantOptions::stall_timeout.
  std::chrono::nanoseconds ending() const { return others_go_on ? std::chrono::nanoseconds{0} : timeout; }
  /// Vertices of the graph where so many processes start: all but the spares have one, and some are vacant. Throws
  /// ConfigError if nobody trains.
  int ranks(int processes) const;
  /// Processes without a vertex, there from the start or later.
  int without_vertex() const { return spares + joins; }
};

/// Complains where `exchange` cannot go on without a rank.
OnFailure read_on_failure(Config& train, const ExchangePlan& exchange);
/// The same but for spares: nobody waits from the start.
OnFailure read_without_spares(Config& train, const ExchangePlan& exchange);

}  // namespace hearsay
