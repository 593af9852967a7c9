#pragma once
// What lockstep ranks have to do after the same iteration: stop at a signal or because time is up, write a checkpoint
// because it is due by the clock.
//   now and then, all in the same iteration:   hands in what it wants; the maximum over ranks is under way
//   the next time:                             what all wanted then holds for all, from this iteration on
// The sum is made by the communication thread while the ranks go on, so nobody waits for it unless a rank is more than
// an interval late. A signal that only one rank has received stops all of them.
// Cost: 40 bytes a rank every `seconds_between`, or every iteration where these take longer.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <optional>

#include "runtime/exchange/participant.hpp"
#include "runtime/transport/communicator.hpp"

namespace hearsay {

class Agreement {
 public:
  /// What a rank wants, or all of them.
  struct Wish {
    int signal = 0;           ///< the number of one that has been received
    bool time_is_up = false;  ///< training has lasted as long as it may
    bool checkpoint = false;  ///< one is due
  };

  static constexpr double seconds_between = 0.1;

  /// The communicator must outlive what is under way: it, and this, are made before the participant.
  explicit Agreement(Communicator& communicator) : communicator_(communicator) {}

  /// Between two iterations, with `done` rising by one on all ranks alike: what all ranks wanted a while ago, if that
  /// holds from now on. Throws what communication throws.
  std::optional<Wish> arrived(Participant& participant, Iteration done) {
    if (!under_way_ || done < next_) return std::nullopt;
    participant.communication().engine().wait_until([this] { return arrived_.load(); });
    under_way_ = false;
    constexpr double most = 1000.0;
    interval_ = static_cast<Iteration>(std::clamp(seconds_between / std::max(values_[3], 1e-9), 1.0, most));
    return Wish{.signal = static_cast<int>(values_[0]), .time_is_up = values_[1] > 0, .checkpoint = values_[2] > 0};
  }
  /// After that: hands in what this rank wants, if it is time to. `seconds`: of this rank's clock.
  void ask(Participant& participant, Iteration done, double seconds, const Wish& own) {
    if (under_way_) return;
    const double each_s = (seconds - last_s_) / static_cast<double>(std::max<Iteration>(1, done - began_));
    values_ = {static_cast<double>(own.signal), own.time_is_up ? 1.0 : 0.0, own.checkpoint ? 1.0 : 0.0, each_s};
    last_s_ = seconds;
    began_ = done;
    next_ = done + interval_;
    under_way_ = true;
    arrived_ = false;
    participant.communication().flush();  // in a simulation nobody sends while a rank is in a collective
    const PhaseTimer waiting(participant.ledger(), Phase::wait);  // an inline engine runs it here
    participant.communication().engine().submit([this] {
      communicator_.maximum(values_);
      arrived_ = true;
    });
  }

 private:
  Communicator& communicator_;
  std::array<double, 4> values_{};
  std::atomic<bool> arrived_{false};
  bool under_way_ = false;
  Iteration next_ = 0, began_ = 0, interval_ = 1;
  double last_s_ = 0.0;
};

}  // namespace hearsay
