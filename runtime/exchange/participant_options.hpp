#pragma once
// How a participant is configured: what the configuration says of it, and what its loop says.
#include <chrono>
#include <functional>
#include <memory>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// The sections `exchange`, `topology`, `trigger` and `sparsify` of a configuration, read and checked once;
/// participants can be made from it many times, on any thread.
class ParticipantPlan {
 public:
  /// Throws ConfigError, with file, line and column, for anything that is wrong and for any other section.
  explicit ParticipantPlan(Config root);

  const ExchangePlan& exchange() const { return *exchange_; }
  /// Throws ConfigError if graph, weights or exchange do not fit so many ranks.
  std::shared_ptr<const Topology> topology(int ranks) const;

 private:
  std::unique_ptr<ExchangePlan> exchange_;
  std::unique_ptr<TopologyPlan> topology_;
};

struct ParticipantOptions {
  /// Densities that change by the epoch go by it.
  EpochLength iterations_per_epoch{};
  /// What the loop's optimizer makes of a gradient, in all segments, until the loop says something else
  /// (Participant::learning_rate, `steps`). Only exchanges that measure steps ask.
  StepResponse step{};
  /// All ranks get rank 0's x; without it the caller sees to it that they begin with the same.
  bool start_from_rank_0 = true;
  /// Ranks go on without those that die: whoever has not been heard of for so long is dead. 0: a death is the end of
  /// the job, and the launcher's business. Only with an exchange that survives it (ExchangePlan::survives_deaths).
  std::chrono::nanoseconds failure_timeout{0};
  /// So many of the transport's ranks, the last, have no vertex of the graph: each may take that of a rank that has
  /// died (Spare::take_over). Only with a failure_timeout.
  int spares = 0;
  /// So many vertices, the last, have nobody at the start: a spare may take one of them, too. Fewer than vertices.
  int vacant = 0;
  /// When the others' clocks started (Ledger::since_start), where this rank comes later: ages are told from them.
  std::optional<std::chrono::system_clock::time_point> others_began{};
  /// Asked now and then of a spare: whether it may take this vertex, which is empty.
  std::function<bool(int vertex)> may_take = [](int) { return true; };
  /// Where a death is the end of the job: a rank that has not moved for so long while others waited ends it, too. 0:
  /// nobody looks.
  std::chrono::nanoseconds stall_timeout{0};
  /// Ends waiting (a stop signal has come): asked while a rank waits, from any thread; must be cheap.
  std::function<bool()> interrupted = [] { return false; };
};

/// Bytes of the memory that others write into, of a rank with so many neighbours, out of so many ranks, and spares
/// beside them. A spare's is that of a rank with most neighbours.
std::size_t window_bytes(const ExchangePlan& plan, const Layout& layout, std::size_t neighbours, int ranks,
                         int spares = 0);
/// What the rows of a failure detector, or a pulse, which lie behind that, add to it.
std::size_t failure_bytes(const ParticipantOptions& options, int ranks);

}  // namespace hearsay
