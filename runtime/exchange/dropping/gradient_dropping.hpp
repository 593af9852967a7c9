#pragma once
// What both schedules of gradient dropping are made of: shards, what a client pushes, what a server lets be pulled.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "runtime/collectives/ring.hpp"
#include "runtime/collectives/sparse_vector.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/global/parts/error_feedback.hpp"
#include "runtime/exchange/global/parts/sparse_sgd.hpp"

namespace hearsay {

struct DroppingSettings {
  SparseSgdSettings push;
  double pull_density = 0.0;  ///< 0: that of the push; 1: everything, whatever the selector
  std::size_t in_flight = 1;  ///< asynchronous: packets from one rank to another that may be under way

  /// Density of the pull, where that of the push is `density`.
  double pull(double density) const { return pull_density > 0.0 ? pull_density : density; }
};

/// What several iterations may send that could not go one by one.
inline double of_iterations(double density, double iterations) { return std::min(1.0, density * iterations); }

/// The block cut among the ranks as servers, and how sparse parts of the shards travel. Positions in shards count from
/// the shard's start.
class Shards {
 public:
  /// `ledger`: as SparseWire wants it; must outlive the shards.
  Shards(std::shared_ptr<const Codec> codec, const Layout& layout, int servers, Ledger* ledger = nullptr);
  int count() const { return static_cast<int>(parts_.size()); }
  const Part& part(int server) const { return parts_[static_cast<std::size_t>(server)]; }
  const SparseWire& wire(int server) const { return wires_[static_cast<std::size_t>(server)]; }

 private:
  std::shared_ptr<const Codec> codec_;
  std::vector<Part> parts_;
  std::vector<SparseWire> wires_;
};

/// The client's side: residual, selection, and the selection cut into shards.
///   r ← r + g;  the positions of T(r);  for each server that can take it: v_s ← r at its positions;  r ← r − v_s
class PushSide {
 public:
  /// `context` and `shards` must outlive it.
  PushSide(const ExchangeContext& context, const DroppingSettings& settings, const Shards& shards);
  /// Adds this iteration's gradient and selects, as many values as `iterations` ask for. With a single rank nothing
  /// travels and nothing is dropped. Throws DivergenceError naming the segment.
  void collect(std::span<const float> g, double epoch, double iterations = 1.0);
  /// How many values are selected for a server that are not zero.
  std::size_t owed(int server) const;
  /// The values selected for a server, moved out of the residual.
  SparseVector take(int server);
  /// What was taken has been applied but for `rest`, which rounding kept back.
  void sent(int server, const SparseVector& received, const SparseVector& rest);
  void add_residual(std::span<float> block) const { feedback_.add_residual(block); }
  void take_residual(std::span<const float> sum) { take_own_part(feedback_, context_.peers, sum); }
  void state(Archive& archive) {
    sparsifier_.selector->state(archive);
    feedback_.state(archive);
  }

 private:
  std::span<const std::uint32_t> selected(int server) const;

  const ExchangeContext& context_;
  Sparsifier sparsifier_;
  const Shards& shards_;
  BlockSelection selection_;
  ErrorFeedback feedback_;
  std::vector<std::uint32_t> positions_;  // in the block, ascending
};

/// The server's side: which changes of its shard clients get to see.
class PullSide {
 public:
  /// `context` and `shards` must outlive it.
  PullSide(const ExchangeContext& context, const DroppingSettings& settings, const Shards& shards)
      : context_(context), settings_(settings), sparsifier_(settings.push.sparsifier->fresh()), shards_(shards) {}
  /// T(master − copy), as many values as `iterations` ask for; the two are this rank's shard. Throws DivergenceError
  /// naming the segment.
  SparseVector select(std::span<const float> master, std::span<const float> copy, double epoch,
                      double iterations = 1.0);
  /// The most entries that `select` may give.
  std::size_t most(double epoch, double iterations) const;
  void state(Archive& archive) { sparsifier_.selector->state(archive); }

 private:
  /// How many values are asked for.
  std::size_t wanted(double epoch, double iterations, std::size_t n) const {
    return kept_count(of_iterations(settings_.pull(sparsifier_.density(epoch)), iterations), n);
  }

  const ExchangeContext& context_;
  const DroppingSettings settings_;
  Sparsifier sparsifier_;
  const Shards& shards_;
  std::vector<float> change_;
  std::vector<std::uint32_t> positions_;
};

std::unique_ptr<Exchange> make_lockstep_dropping(const ExchangeContext& context, const DroppingSettings& settings);
std::unique_ptr<Exchange> make_asynchronous_dropping(const ExchangeContext& context, const DroppingSettings& settings);
/// The largest packet of the asynchronous schedule.
std::size_t dropping_packet_bound(const DroppingSettings& settings, const Layout& layout, int ranks);

}  // namespace hearsay
