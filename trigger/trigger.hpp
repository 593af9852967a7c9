#pragma once
// Event triggers: measures in, decisions out.
//
// A Trigger is one policy (one file in policies/). TriggerEngine holds, per segment, what every policy needs (norm and
// iteration of the last event) and applies the options that all policies share (measure, warm-up, bounds of silence).
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/config/table.hpp"
#include "base/ids.hpp"
#include "base/state/archive.hpp"
#include "trigger/longest_silence.hpp"

namespace hearsay {

/// What of a segment has to reach the threshold.
enum class Measure {
  norm,  ///< | ‖x_k‖ − ‖x_sent‖ |, as in EventGraD: one read pass; a tensor that only rotates is silent for ever
  change,  ///< ‖x_k − x̂‖₂, x̂ being what neighbours hold of this rank: a block for x̂, and a pass over both
  largest  ///< max |x_k − x̂|: the value that is furthest from what neighbours hold of it; costs as much
};

/// One segment at one iteration, as a trigger sees it.
struct Observation {
  SegmentId segment;
  std::size_t length;            ///< values in the segment
  Iteration iteration;           ///< k
  double norm;                   ///< ‖x_k‖₂ of the segment
  double norm_at_event;          ///< the norm at the last event; at the start that of the common initial model
  double change;                 ///< by the plan's measure
  Iteration iteration_of_event;  ///< −1 before the first event
  /// η of the step before, or, where the loop tells it sooner, of the one that follows; nothing: not known.
  std::optional<double> learning_rate = std::nullopt;
  int rank = 0;  ///< this one
  /// θΔ: values that are nearer to their copies than that do not travel (sparsify/quantisers/dead_zone.cpp). +∞ while Δ
  /// is not known; nothing: whatever has changed travels.
  std::optional<double> dead_zone = std::nullopt;

  Iteration silence() const { return iteration - iteration_of_event; }  ///< iterations since the last event, ≥ 1
  double slope() const { return change / static_cast<double>(silence()); }
  /// The learning rate. Throws ConfigError while it is not known: no missing rate counts as 0.
  double rate() const;
};

/// A policy: the threshold in force, and what an event changes about it. State per segment; segments are independent.
class Trigger {
 public:
  virtual ~Trigger() = default;
  /// The same policy, with nothing remembered, for a replica of so many segments.
  virtual std::unique_ptr<Trigger> for_segments(std::size_t segments) const = 0;
  /// The threshold that `observation.change` has to reach (≥) for an event, as a pure function of the policy's state.
  /// 0 fires always, +∞ never.
  virtual double threshold(const Observation& observation) const = 0;
  /// The segment fired, for whatever reason; `observation` still describes the previous event.
  virtual void fired(const Observation& observation) { static_cast<void>(observation); }
  /// What the policy remembers (base/state/archive.hpp).
  virtual void state(Archive& archive) { static_cast<void>(archive); }
  /// True for policies whose iterations between events are local steps: the exchange then mixes only when events fire.
  virtual bool local_steps_between_events() const { return false; }
  /// How many iterations lie between two events of every segment; nothing: that depends on what happens.
  virtual std::optional<Iteration> pace() const { return std::nullopt; }
  /// Whether no segment is silent for longer and longer, whatever it does.
  virtual bool bounds_silence() const { return false; }
  /// Whether `Observation::rate` is asked in every iteration.
  virtual bool measures_steps() const { return false; }
  /// Whether it decides by `Observation::dead_zone`, and so about single values.
  virtual bool by_values() const { return false; }
  /// What `trigger.measure` is unless it is given: `change` where a rate is cited that was proved for the change,
  /// `largest` where single values are news.
  virtual Measure default_measure() const { return Measure::norm; }
};

/// `make` reads a policy's keys; what it makes is of no segments yet.
using TriggerEntry = Entry<Trigger>;
std::span<const TriggerEntry> triggers();

/// A policy of the program's own takes the place of the table's if the program provides it (ConfigDocument) before the
/// configuration is read. The section then has the name `own`, and the keys that all policies share.
inline constexpr const char* provided_trigger = "trigger";
using ProvidedTrigger = std::shared_ptr<const Trigger>;

/// The section `trigger:` read whole: `name`, the policy's keys, and those that all policies share.
struct TriggerPlan {
  explicit TriggerPlan(Config& config);
  bool local_steps_between_events() const { return policy->local_steps_between_events(); }
  /// How many times its longest recent silence a silence may last once it is known; nothing: no bound.
  std::optional<double> growth_of_silence() const;
  /// The fewest and the most iterations from one event of a segment to the next; most: nothing where there is no bound.
  std::pair<Iteration, std::optional<Iteration>> paces() const;

  std::shared_ptr<const Trigger> policy;
  Measure measure;
  Iteration warmup_iterations;
  Iteration maximum_silence;  ///< 0 = off
  double silence_growth;      ///< 0 = off, else ≥ 1
};

/// Decides which segments are sent: at iteration k a segment fires if and only if
///   k < warmup_iterations,  or  change ≥ threshold,  or  maximum_silence > 0 and silence ≥ maximum_silence,
///   or  silence_growth > 0 and silence ≥ silence_growth · its longest recent silence.
class TriggerEngine {
 public:
  /// `lengths`: values per segment. `initial_norms`: ‖x_0‖ per segment, known to every neighbour since all ranks start
  /// from the same model. `rank`: this one, for policies that draw.
  TriggerEngine(const TriggerPlan& plan, std::span<const std::size_t> lengths, std::span<const double> initial_norms,
                int rank = 0);

  /// Decides every segment at iteration k. `norms` and `fired`: one entry a segment; fired[s] is 1 for an event, else
  /// 0. `changes`: ‖x_k − x̂‖ or max |x_k − x̂| of every segment if that is the measure, else empty. Must be
  /// called once an iteration, with k rising. Throws DivergenceError, and changes nothing, where one is not finite.
  void decide(Iteration k, std::span<const double> norms, std::span<const double> changes,
              std::span<std::uint8_t> fired);
  /// The η of a segment from now on. Until it is told it is not known.
  void learning_rate(SegmentId s, std::optional<double> eta) { learning_rates_[s] = eta; }

  /// θΔ from now on, as Observation has it.
  void dead_zone(double zone) { dead_zone_ = zone; }

  /// The thresholds that the last `decide` compared with, one a segment (reports only).
  std::span<const double> thresholds() const { return thresholds_; }
  /// The iteration of every segment's last event, −1 before the first: k minus it is the silence (reports only).
  std::span<const Iteration> iterations_of_events() const { return iteration_of_event_; }
  bool local_steps_between_events() const { return policy_->local_steps_between_events(); }
  Measure measure() const { return measure_; }
  void state(Archive& archive);

 private:
  void require_right_call(Iteration k, std::size_t norms, std::size_t changes, std::size_t flags) const;
  bool decide_segment(const Observation& observation);
  bool too_silent(const Observation& observation) const;

  std::unique_ptr<Trigger> policy_;
  int rank_;
  Measure measure_;
  Iteration warmup_iterations_;
  Iteration maximum_silence_;      // 0 = off
  double silence_growth_;          // 0 = off
  Iteration last_iteration_ = -1;  // of the last decide
  std::vector<std::size_t> lengths_;
  std::vector<std::optional<double>> learning_rates_;
  std::optional<double> dead_zone_{};
  std::vector<double> norm_at_event_;
  std::vector<Iteration> iteration_of_event_;
  std::vector<double> thresholds_;
  LongestSilence longest_silence_;
};

/// ‖x‖₂, accumulated in double; 0 for no values, NaN or +∞ if a value is. One read pass at memory bandwidth; the order
/// of the additions is fixed, so equal values give equal bits on every machine.
double norm(std::span<const float> x);
/// ‖x − y‖₂ of as many values, likewise; the differences are taken in float. One read pass over both.
double norm_of_difference(std::span<const float> x, std::span<const float> y);
/// max |x_i − y_i|, taken in float; 0 for no values, NaN or +∞ if a value is. One read pass over both.
double largest_difference(std::span<const float> x, std::span<const float> y);

}  // namespace hearsay
