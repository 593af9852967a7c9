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

  /// ParticipantOptions::failure_timeout: 0 where a death is the end of the job.
  std::chrono::nanoseconds going_on() const { return others_go_on ? timeout : std::chrono::nanoseconds{0}; }
  /// ParticipantOptions::stall_timeout.
  std::chrono::nanoseconds ending() const { return others_go_on ? std::chrono::nanoseconds{0} : timeout; }
  /// How many of so many processes train: all but the spares. Throws ConfigError if that is nobody.
  int ranks(int processes) const;
};

/// Complains where `exchange` cannot go on without a rank.
OnFailure read_on_failure(Config& train, const ExchangePlan& exchange);

}  // namespace hearsay
