#pragma once
// What the ranks of a member do together, between two steps.
//
//   meet            all ranks are in the same call; who waits for one that calls something else is told
//   …               the work: sums, averages, reports
//   agree           it is done, on every rank that lives
//
// Where ranks may die (train.on_failure: continue), a call is an attempt among those who live (runtime/failure/
// survivors.hpp): whoever hears of a death within it throws RankDied and begins the call again without that rank,
//
//   for (;;) try { begin(); meet(call); work(); agree(); return; }
//   catch (const RankDied&) { if (is_done()) return; }
//
// `agree` is a barrier, so nobody passes it before everybody who took part has done the work. Who has passed it says so
// to all. A rank that hears of a death in that moment, and meets nobody any more, finds that the others have agreed,
// and keeps what its own work has come to. A rank that has come later takes part from a call on that it was told
// (newcomers.hpp).
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "python/core/meetings.hpp"
#include "python/core/newcomers.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/failure/survivors.hpp"
#include "runtime/transport/communicator.hpp"

namespace hearsay::python {

/// Where a member's loop is. Set by its thread, read by any.
struct LoopPlace {
  const std::shared_ptr<Meetings> meetings;
  const int member;     ///< of this process's members
  const bool lockstep;  ///< ranks step together
  std::atomic<Iteration> done = 0;
  std::atomic<bool> in_step = false, in_call = false;

  Presence presence(Call call) const { return {.call = call, .member = member, .steps = done}; }
  /// Why a wait was interrupted, if a rank that left is why.
  std::optional<std::string> departed() const;
};

/// Called by the thread of the loop, but for what says something else. Where ranks may die all of it may throw
/// RankDied, from `begin` to `agree`.
class Together {
 public:
  /// All of it must outlive it. `communicator`: its idle calls `while_waiting`.
  Together(Participant& participant, Communicator& communicator, LoopPlace& place, const Newcomers& newcomers);

  /// From now on operations are among those who live. Nothing where nobody may die.
  void begin();
  /// Collective: all ranks are in this call. What follows has begun with it. Throws RankLeft, WaitInterrupted.
  void meet(Call call);
  /// Collective: the call's work is done on every rank that takes part. Nothing where nobody may die.
  void agree();
  /// How far the ranks are together, between two calls.
  Meetings::Progress progress() const { return meetings_.progress(); }
  /// This rank leaves the call by an exception of its own.
  void give_up();
  /// After RankDied: whether the others have agreed that the call is done, this rank's work being so, too. Throws
  /// TakenForDead where they have agreed without it.
  bool is_done();

  /// Where a rank that has left has ended a step: tells those who wait elsewhere that this rank will not come.
  void tell_of_step();
  /// The communication thread, in every wait of the communicator.
  void while_waiting() const;

  /// Collective: whether this is the same value on every rank that has one.
  bool same_on_all(std::optional<double> value);
  /// Collective: the bytes of the first rank that lives, everywhere.
  void broadcast(std::span<std::byte> bytes);
  /// Collective: everything that any rank has sent has arrived and is taken in. All ranks throw DivergenceError where
  /// one has a value that is not finite.
  void settle();
  /// Collective: `look` may throw DivergenceError for this rank's own values; then all ranks do.
  void require_finite(const std::function<void()>& look);
  /// How many ranks do this together, and whether this one is the first of them: it does what one rank does.
  int ranks() const { return communicator_.size(); }
  bool is_first() const { return communicator_.rank() == 0; }

  const Survivors& survivors() const { return survivors_; }
  /// The end of this rank's part: those who go on do not miss it.
  void leave();

 private:
  void serve() const;
  Waiting waiting(std::function<void()> idle) const;

  Participant& participant_;
  Communicator& communicator_;
  LoopPlace& place_;
  Meetings& meetings_;
  Survivors survivors_;
  bool has_worked_ = false;  // in the call that has begun
};

}  // namespace hearsay::python
