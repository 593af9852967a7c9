#pragma once
// What the loop's optimizer makes of a gradient, for exchanges that measure by how far a step moves the model.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/state/archive.hpp"
#include "runtime/replica/layout.hpp"

namespace hearsay {

/// How far a gradient moves a segment.
struct StepResponse {
  /// An optimizer that divides every gradient by the root of its running mean square, or of its sum of squares.
  struct Normalised {
    double memory = 1.0;     ///< β of q ← β q + (1 − β) g², 1 − βᵏ being divided out; 1: q ← q + g²
    double epsilon = 0.0;    ///< added to the root
    bool from_zero = false;  ///< q begins with 0 as it is: 1 − βᵏ is not divided out
    bool operator==(const Normalised&) const = default;
  };

  std::optional<double> learning_rate = std::nullopt;  ///< η ≥ 0 of the next step; nothing: not known
  double momentum = 0.0;                               ///< μ: what an earlier gradient still counts for, in [0, 1)
  double dampening = 0.0;  ///< μ = 0.9 with a dampening of 0.9 is a mean of gradients and not a sum
  bool maximize = false;   ///< x moves along its gradient, and not against it
  bool nesterov = false;   ///< a step is by the momentum that the next one would have of the same gradient
  std::optional<Normalised> normalised = std::nullopt;

  /// What a gradient of 1, held for ever, moves x by in an iteration; where it is normalised, one whose root is 1. 0
  /// while η is not known.
  double gain() const { return learning_rate.value_or(0.0) * (1.0 - dampening) / (1.0 - momentum); }
  /// −1 where x moves along its gradient.
  double sign() const { return maximize ? -1.0 : 1.0; }
  /// Iterations that this takes to show.
  double lag() const { return 1.0 / (1.0 - momentum); }
  bool operator==(const StepResponse&) const = default;
};

/// What the next step is, segment by segment, as the loop tells it.
class StepResponses {
 public:
  /// `needed`: an exchange asks for the rates.
  StepResponses(const Layout& layout, const StepResponse& first, bool needed)
      : layout_(layout), needed_(needed), steps_(layout.count(), first) {}

  /// (segments)
  std::span<const StepResponse> all() const { return steps_; }
  /// The η of all segments; the rest of what a step is stays. Throws ConfigError unless it is a number ≥ 0.
  void learning_rate(double eta);
  /// (segments). Throws ConfigError for what is no step.
  void set(std::span<const StepResponse> steps);
  /// Throws ConfigError if the rates are needed, and that of a segment has never been told.
  void require_rates() const;
  /// Whether every step is x ← x − η g, and η is known.
  bool plain() const;
  void state(Archive& archive);

 private:
  const Layout& layout_;
  const bool needed_;
  std::vector<StepResponse> steps_;
};

}  // namespace hearsay
