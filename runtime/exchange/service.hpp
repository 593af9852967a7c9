#pragma once
// What an asynchronous rank does for the others when it has made its own iterations: it goes on sending, mixing and,
// where ranks are servers of a part of the model each, stepping with what they have pushed, until all are there.
//   an iteration of the exchange:  one of the loop, or one in which the rank only serves; they are counted together
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/finite_check.hpp"
#include "runtime/exchange/membership/communication.hpp"
#include "runtime/exchange/step_response.hpp"

namespace hearsay {

class Service {
 public:
  /// All of it must outlive the service; `exchange` may change. `follow`: hears of changes to the edges.
  struct Parts {
    Parameters& replica;
    const Edges& edges;
    Communication& communication;
    FiniteCheck& finite;
    const StepResponses& steps;
    const std::unique_ptr<Exchange>& exchange;
    std::function<bool()> interrupted;
    std::function<void()> follow;
    bool sharded;
  };
  explicit Service(Parts parts) : parts_(std::move(parts)) {}

  /// Whether ranks are servers of a part each.
  bool is_sharded() const { return parts_.sharded; }
  /// What moves x by the gradient after this rank's own iterations: the optimizer's step. Without it x ← x − η g, η
  /// being the last `learning_rate` or that of the options; ConfigError where neither is known, or where the options
  /// speak of another optimizer.
  void optimizer(std::function<void()> step) { optimizer_ = std::move(step); }
  /// In place of an iteration where this rank has nothing to compute and others have: it goes on sending, mixing and
  /// serving. True where the gradient holds something for the optimizer now: its step and `stepped` follow.
  bool idle(Iteration k);
  /// After this rank's own iterations: one of `idle` after the other, as long ones as its own were, while
  /// `others_work`. Where it has made none since all have settled, it only waits: what it knows, the others have, and
  /// replicas stay what they were told to be. Throws WaitInterrupted.
  void accompany(const std::function<bool()>& others_work);
  /// Asynchronous: accompanies the others until all have come here equally often. In lockstep, and where ranks may die,
  /// it returns at once. Throws CommunicationError where a rank has left that did not come.
  void await_all();
  /// The model of n floats that the ranks serve, a part each: what a rank holds of other parts may be a little older.
  /// Collective; only where ranks are servers.
  std::vector<float> servers_model();
  /// Training is over on this rank (IdleWork::end); before the last `Participant::settle`, on all ranks that take part
  /// in that.
  void end();

  /// The loop begins its iteration k. Returns the exchange's.
  Iteration begin(Iteration k);
  /// The loop has not begun, and its next iteration is k.
  void begin_at(Iteration k) { next_ = k + served_; }
  /// The exchange's iteration at the loop's iteration k.
  Iteration iteration(Iteration k) const { return k + served_; }
  /// The loop's.
  Iteration now() const { return now_; }
  /// All that the others have pushed is applied, in rounds of `take_in`, and x is the servers' model on all ranks.
  /// Collective.
  void finish_serving(const std::function<void()>& take_in);
  /// All ranks have taken in what any has sent.
  void note_settled() { settled_ = true; }
  void state(Archive& archive);

 private:
  void serve_once();
  void apply_gradient();
  bool all_have_stopped(std::uint64_t stops) const;
  void await_read();

  const Parts parts_;
  std::function<void()> optimizer_{};
  Iteration now_ = 0;                                // the loop's iteration
  Iteration next_ = 0;                               // of the exchange
  Iteration served_ = 0;                             // iterations of the exchange in which this rank has only served
  std::optional<std::chrono::nanoseconds> began_{};  // the first iteration
  Iteration begun_ = 0;                              // iterations since
  bool settled_ = false;                             // and no iteration since
};

}  // namespace hearsay
