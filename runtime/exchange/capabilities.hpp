#pragma once
// What some exchanges can do beside the loop. Who needs it asks for it (Exchange::capabilities); nothing says that an
// exchange cannot.
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace hearsay {

/// A fraction of something, as sums that can be added over ranks: part / whole.
struct Share {
  std::string_view name;  ///< as in summary.json, e.g. "lost_mass_fraction"
  double part = 0.0, whole = 0.0;
  double fraction() const { return whole > 0.0 ? part / whole : 0.0; }
};

/// What reports say of an iteration, and of the run so far.
class Measures {
 public:
  /// (segments) the threshold that the last `start` compared norms with, and the norms; empty without a trigger.
  virtual std::span<const double> thresholds() const { return {}; }
  virtual std::span<const double> norms() const { return {}; }
  /// (segments) 1 where the last `start` has sent the segment.
  virtual std::span<const std::uint8_t> events() const { return {}; }
  /// What only this algorithm can say of itself, summed up since the start on this rank.
  virtual std::vector<Share> shares() const { return {}; }

 protected:
  ~Measures() = default;
};

/// What ranks still owe to the sum over them.
class Residual {
 public:
  /// Adds this rank's to `block` of n floats.
  virtual void add_residual(std::span<float> block) const = 0;
  /// Takes its part of what all ranks together owe, `sum` of n floats: all ranks together take all of it. For ranks
  /// that go on where others have stopped.
  virtual void take_residual(std::span<const float> sum) = 0;

 protected:
  ~Residual() = default;
};

/// Asynchronous ranks have iterations in which they compute nothing, and come to an end at different times.
class IdleWork {
 public:
  /// In place of an iteration where this rank has nothing to compute: it goes on sending, mixing and serving. k rises
  /// on. True where the gradient holds something for the optimizer now: its step and `stepped` follow.
  virtual bool idle(Iteration k) = 0;
  /// Everything that any rank has posted has arrived: takes in what is left. After the last iteration, or between two
  /// of them.
  virtual void drain() = 0;
  /// Training is over on this rank: where it takes local steps, x is the model of its last round from here on. What it
  /// still sends, the `drain` that follows on all ranks takes in.
  virtual void end() {}

 protected:
  ~IdleWork() = default;
};

/// Ranks are servers of a part of the model each.
class ServedModel {
 public:
  /// x has just become the servers' model, on all ranks, and nothing is under way.
  virtual void x_is_of_servers() = 0;

 protected:
  ~ServedModel() = default;
};

/// What an outer step asks of the exchange that its rounds go through.
class RoundWork {
 public:
  /// Asynchronous, between two rounds, for which `start(k)` is the next: mixes with what has come, and sends what has
  /// fired and could not go. `has_to_answer`: whether there is any of that.
  virtual void answer(Iteration k) = 0;
  virtual bool has_to_answer() const = 0;
  /// Takes the drift correction off the gradient, as `finish` does, with what has been learnt since.
  virtual void correct() = 0;

 protected:
  ~RoundWork() = default;
};

struct Capabilities {
  Measures* measures = nullptr;
  Residual* residual = nullptr;
  IdleWork* idle_work = nullptr;
  ServedModel* served_model = nullptr;
  RoundWork* round_work = nullptr;
  bool layer_wise = false;  ///< `gradient_ready` is to be called: hooks in the backward pass cost time
};

}  // namespace hearsay
