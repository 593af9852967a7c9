#pragma once
// Corrections of the bias that skewed data give to ranks that mix models.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config/table.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/neighbour/correction/gain.hpp"
#include "runtime/exchange/neighbour/correction/strength.hpp"
#include "runtime/exchange/neighbour/mixing/mixing.hpp"

namespace hearsay {

constexpr double usual_strength = 0.5;  // c at most, where the configuration does not say it

/// The section `exchange.correction`, read and checked.
struct CorrectionPlan {
  std::optional<double> strength = 0.0;  ///< c; 0: no correction; nothing: as each edge allows

  bool on() const { return strength != 0.0; }
  /// What theory calls unstable. `growth`: how many times the usual silence one may last; nothing: no bound.
  /// `most_strength`: which strength is unstable where silences are equal.
  std::vector<std::string> warnings(const Topology& topology, std::optional<double> growth,
                                    const std::function<double()>& most_strength) const;
  /// c of every edge {i, j} of lockstep ranks, as EdgeStrength::most has it. `topology` must outlive what is returned.
  std::function<double(int i, int j)> strengths(const Topology& topology, double step, bool delayed,
                                                double growth) const;
  /// For what moves by single events: where a rank takes more of its neighbours than it has itself, events of these
  /// alone take it past all of them. Throws ConfigError, with the rank and its weight.
  void require_own_shares(const Topology& topology) const;
  /// Bytes of v.
  std::size_t kept_bytes(const Layout& layout) const { return on() ? layout.size() * sizeof(float) : 0; }
  /// v off g: three streams; two copies and v, read and written, where a fraction of the segments moves on all edges.
  LocalWork work(const Layout& layout, const Topology& topology, double moved_fraction) const;
};

using CorrectionEntry = Entry<CorrectionPlan>;
std::span<const CorrectionEntry> corrections();
CorrectionPlan read_correction(Config correction);

/// Learns from what mixing does to x, and takes what it has learnt off the gradient. See drift.cpp.
class DriftCorrection final : public EdgeListener {
 public:
  /// `strength`: c, above 0; nothing: as each edge allows. `growth`: how many times the usual silence one may last.
  DriftCorrection(std::optional<double> strength, const ExchangeContext& context, const Settling& settling,
                  double growth);

  /// This rank begins iteration k. Iterations that it has not begun, because it was not there, are no silence.
  void start(Iteration k);
  /// Mixing, with values of iteration k, is to be what `rule` says.
  void learn(Iteration k, const Mixing& mixing, const MixingRule& rule);
  /// g ← g − v.
  void correct(std::span<float> g);
  /// What the other end of an edge is to know of this rank, per segment, before iteration k sends: how far a gradient
  /// moves it; along an alternating edge, in the time between two moves.
  std::span<const float> gains(std::size_t edge, Iteration k);
  /// `last`: the iteration that this rank has begun last.
  void state(Archive& archive, Iteration last);

 private:
  /// How often one edge is heard of.
  struct Rhythm {
    explicit Rhythm(std::size_t segments)
        : last(segments, Iteration{-1}), mean_silence(segments, 1.0), values_a_crossing(segments, 1.0) {}
    void event(SegmentId s, Iteration k) { mean_silence[s] = with_event(s, k), last[s] = k; }
    double with_event(SegmentId s, Iteration k) const;
    std::vector<Iteration> last;
    std::vector<double> mean_silence;       // of some eight events, in iterations
    std::vector<double> values_a_crossing;  // as a fraction of the segment
  };
  /// A rank has died, and what it had learnt with it: what the others know does not add up to 0 any more, so all of
  /// them learn from the beginning.
  void rank_lost() override;
  /// The other process has learnt nothing: so the sum of what all know stays 0.
  void edge_begins(std::size_t edge) override;
  void listen(Iteration k, const Mixing& mixing);
  double least_interval(SegmentId s) const { return std::max(settling_.iterations, steps_[s].lag()); }
  double interval(SegmentId s, double silence, double values_a_crossing) const;
  double most_of(std::size_t edge, double step) const;
  float scale(double interval, const MixEdge& edge, SegmentId s, double strength) const;

  Device& device_;
  const double strength_;
  std::vector<EdgeStrength> allowed_;  // an edge each; none where the configuration or nothing bounds c
  const double growth_;
  const std::span<const StepResponse> steps_;
  const Layout& layout_;
  RunningGain gain_;
  const Settling settling_;
  FloatBlock v_;
  std::span<const float> own_gains_{};  // (segments) in `start`
  std::vector<float> told_;             // (segments)
  std::vector<Rhythm> rhythms_;         // an edge each
  Iteration last_ = -1;                 // that this rank has begun
};

}  // namespace hearsay
