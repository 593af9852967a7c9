#pragma once
// Decentralised training of P workers in one process, one loop, no communication: what the exchanges must compute.
// Written from the papers' definitions, on its own: it calls nothing of trigger/, sparsify/, topology/ or
// runtime/exchange/. Only lockstep: all neighbours of a worker then hold the same copy of it, so there is one copy a
// worker.
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace hearsay::reference {

enum class Policy { always, periodic, constant, geometric, adaptive, adaptive_compounding };
enum class Mixing { stale, difference, arrival };

struct TriggerRule {
  Policy policy = Policy::always;
  double threshold = 0.0;           ///< constant
  double scale = 0.0, ratio = 0.0;  ///< geometric: scale · ratio^k
  std::int64_t period = 1;          ///< periodic
  double horizon = 1.0;             ///< adaptive ones
  std::size_t history = 2;          ///< adaptive ones
  std::int64_t warmup = 0;
  std::int64_t maximum_silence = 0;
};

struct Setup {
  std::vector<std::vector<double>> weights;  ///< W, dense
  /// Where the graph changes, iteration k mixes with sequence[k mod its length] instead, row i being what i hears of.
  std::vector<std::vector<std::vector<double>>> sequence{};
  std::vector<std::size_t> segment_lengths;  ///< floats
  std::vector<float> initial;                ///< x_0
  double learning_rate = 0.0;
  std::int64_t iterations = 0;
  TriggerRule trigger;
  Mixing mixing = Mixing::stale;
  double gamma = 0.5;       ///< difference mixing
  double density = 1.0;     ///< below 1: top-k copies
  std::int64_t delay = 0;   ///< 1: both copies of an edge are those of the iteration before (stale mixing: j's only)
  double correction = 0.0;  ///< strength c of the drift correction; not with stale mixing
  bool diffusion = false;   ///< gradients are taken at what mixing has made of x
};

/// The decision that came closest to falling the other way: | change − threshold | / norm.
struct ClosestCall {
  double margin = std::numeric_limits<double>::infinity();
  std::int64_t iteration = -1;
  int worker = -1;
  std::size_t segment = 0;
  std::string text() const;
};

struct Outcome {
  std::vector<std::vector<float>> x;                   ///< (workers, floats) after the last step
  std::vector<std::vector<std::vector<bool>>> events;  ///< (workers, iterations, segments)
  std::uint64_t event_count = 0;
  std::uint64_t message_count = 0;  ///< events × neighbours
  ClosestCall closest;
};

/// `problem.gradient(worker, k, x, g)` fills g.
class GradientSource {
 public:
  virtual ~GradientSource() = default;
  virtual void gradient(int worker, std::int64_t k, std::span<const float> x, std::span<float> g) const = 0;
};

Outcome simulate(const Setup& setup, const GradientSource& problem);

/// The methods that send everything at every iteration, in the form that mixes while the gradient is computed.
enum class Method { quasi_global_momentum, gradient_tracking, momentum_tracking, push_sum };
/// It reads of `setup` weights (for push_sum w_ij is the share of what j has that goes to i), sequence, lengths, start,
/// rate and iterations. Of push_sum x is z.
Outcome simulate(const Setup& setup, Method method, double momentum, const GradientSource& problem);

/// W by hand. ring: 1/3 each (1/2 for two workers, 1 for one); star and complete: 1/P an edge, the rest on the
/// diagonal.
std::vector<std::vector<double>> ring_weights(int workers);
std::vector<std::vector<double>> star_weights(int workers);
std::vector<std::vector<double>> complete_weights(int workers);
/// Half of a worker's own and half of that 2^t behind it on a circle, t = 0 … ⌈log2 P⌉ − 1; P > 1.
std::vector<std::vector<std::vector<double>>> one_peer_exponential_sequence(int workers);
/// Directed graphs: j keeps one share and gives each of its targets another one. Targets: the next on a circle; 1, 2,
/// 4, … further; the next and, of even workers, worker 0.
std::vector<std::vector<double>> directed_ring_shares(int workers);
std::vector<std::vector<double>> directed_exponential_shares(int workers);
std::vector<std::vector<double>> towards_zero_shares(int workers);

}  // namespace hearsay::reference
