#include "tests/reference/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace hearsay::reference {
namespace {

double norm_of(std::span<const float> values) {
  double squares = 0.0;
  for (const float v : values) squares += static_cast<double>(v) * v;
  return std::sqrt(squares);
}

/// The nearest number of 8 significant bits.
float of_8_bits(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return static_cast<float>(std::ldexp(std::round(std::ldexp(fraction, 8)), exponent - 8));
}

/// What one worker remembers of one segment's events.
struct SegmentMemory {
  double norm_sent = 0.0;
  std::int64_t sent_at = -1;
  std::vector<double> slopes;  // of all events, oldest first

  double mean_of_last(std::size_t count, double divide_by) const {
    const std::size_t first = slopes.size() - std::min(count, slopes.size());
    double sum = 0.0;
    for (std::size_t i = first; i < slopes.size(); ++i) sum += slopes[i];
    return sum / divide_by;
  }
};

double threshold_of(const TriggerRule& rule, const SegmentMemory& memory, std::int64_t k) {
  switch (rule.policy) {
    case Policy::always:
      return 0.0;
    case Policy::constant:
      return rule.threshold;
    case Policy::geometric:
      return rule.scale * std::pow(rule.ratio, static_cast<double>(k));
    case Policy::periodic:
      return k % rule.period == 0 ? 0.0 : std::numeric_limits<double>::infinity();
    case Policy::adaptive: {  // held between events: slopes do not change there
      const std::size_t known = std::min(rule.history, memory.slopes.size());
      return known == 0 ? 0.0 : rule.horizon * memory.mean_of_last(rule.history, static_cast<double>(known));
    }
    case Policy::adaptive_compounding: {  // slots without a slope count as 0
      const double mean = memory.mean_of_last(rule.history, static_cast<double>(rule.history));
      return mean == 0.0 ? 0.0 : std::pow(rule.horizon, static_cast<double>(k - memory.sent_at)) * mean;
    }
  }
  return 0.0;
}

class Simulation {
 public:
  Simulation(const Setup& setup, const GradientSource& problem)
      : setup_(setup),
        problem_(problem),
        workers_(setup.weights.size()),
        copies_(workers_, setup.initial),
        drift_(workers_, std::vector<float>(setup.initial.size(), 0.0F)),
        crossings_(workers_ * workers_, std::vector<Crossings>(setup.segment_lengths.size())),
        sent_(workers_, std::vector<bool>(setup.initial.size(), false)),
        sent_before_(sent_),
        gradients_(workers_, setup.initial),
        memories_(workers_, std::vector<SegmentMemory>(setup.segment_lengths.size())) {
    outcome_.x.assign(workers_, setup.initial);
    outcome_.events.resize(workers_);
    std::size_t offset = 0;
    for (const std::size_t length : setup.segment_lengths) {
      offsets_.push_back(offset);
      offset += length;
    }
    for (auto& memory : memories_) {
      for (std::size_t s = 0; s < memory.size(); ++s) memory[s].norm_sent = norm_of(slice(setup_.initial, s));
    }
  }

  Outcome run() {
    for (std::int64_t k = 0; k < setup_.iterations; ++k) {
      before_ = copies_;
      sent_before_ = sent_;
      for (auto& sent : sent_) sent.assign(sent.size(), false);
      for (std::size_t i = 0; i < workers_; ++i) {
        if (!setup_.diffusion) problem_.gradient(static_cast<int>(i), k, outcome_.x[i], gradients_[i]);
        decide_and_publish(i, k);
      }
      std::vector<std::vector<float>> mixed = outcome_.x;
      for (std::size_t i = 0; i < workers_; ++i) {
        if (!local_step(i, k)) mix(i, k, mixed[i]);
        if (setup_.diffusion) problem_.gradient(static_cast<int>(i), k, mixed[i], gradients_[i]);
        for (std::size_t e = 0; e < drift_[i].size(); ++e) gradients_[i][e] -= drift_[i][e];
      }
      const auto rate = static_cast<float>(setup_.learning_rate);
      for (std::size_t i = 0; i < workers_; ++i) {
        for (std::size_t e = 0; e < mixed[i].size(); ++e) mixed[i][e] -= rate * gradients_[i][e];
      }
      outcome_.x = mixed;
    }
    return std::move(outcome_);
  }

 private:
  std::span<const float> slice(const std::vector<float>& x, std::size_t s) const {
    return std::span(x).subspan(offsets_[s], setup_.segment_lengths[s]);
  }
  const std::vector<std::vector<double>>& weights(std::int64_t k) const {
    if (setup_.sequence.empty()) return setup_.weights;
    return setup_.sequence[static_cast<std::size_t>(k) % setup_.sequence.size()];
  }
  /// Whether i hears of j in iteration k.
  bool hears(std::size_t i, std::size_t j, std::int64_t k) const { return i != j && weights(k)[i][j] != 0.0; }

  void decide_and_publish(std::size_t i, std::int64_t k) {
    std::vector<bool> events;
    for (std::size_t s = 0; s < offsets_.size(); ++s) {
      events.push_back(fires(i, s, k));
      if (!events.back()) continue;
      publish(i, s);
      ++outcome_.event_count;
      for (std::size_t j = 0; j < workers_; ++j) outcome_.message_count += hears(j, i, k) ? 1 : 0;
    }
    outcome_.events[i].push_back(events);
  }

  bool fires(std::size_t i, std::size_t s, std::int64_t k) {
    SegmentMemory& memory = memories_[i][s];
    const double now = norm_of(slice(outcome_.x[i], s));
    const double change = std::abs(now - memory.norm_sent);
    const double threshold = threshold_of(setup_.trigger, memory, k);
    const bool forced = k < setup_.trigger.warmup ||
                        (setup_.trigger.maximum_silence > 0 && k - memory.sent_at >= setup_.trigger.maximum_silence);
    if (!forced) note_margin(std::abs(change - threshold) / std::max(now, 1e-30), threshold, i, s, k);
    if (!forced && change < threshold) return false;
    // The paper's policy knows slopes between two events only; the released code's starts at iteration −1.
    if (setup_.trigger.policy != Policy::adaptive || memory.sent_at >= 0) {
      memory.slopes.push_back(change / static_cast<double>(k - memory.sent_at));
    }
    memory.norm_sent = now;
    memory.sent_at = k;
    return true;
  }

  void note_margin(double margin, double threshold, std::size_t i, std::size_t s, std::int64_t k) {
    if (threshold == 0.0 || std::isinf(threshold) || margin >= outcome_.closest.margin) return;
    outcome_.closest = {.margin = margin, .iteration = k, .worker = static_cast<int>(i), .segment = s};
  }

  void publish(std::size_t i, std::size_t s) {
    const std::size_t n = setup_.segment_lengths[s];
    std::size_t kept = n;
    if (setup_.density < 1.0) {
      kept = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(setup_.density * static_cast<double>(n))));
    }
    std::vector<std::size_t> order(n);
    for (std::size_t e = 0; e < n; ++e) order[e] = offsets_[s] + e;
    const auto& x = outcome_.x[i];
    auto& copy = copies_[i];
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return std::abs(x[a] - copy[a]) > std::abs(x[b] - copy[b]); });
    for (std::size_t rank = 0; rank < kept; ++rank) {
      copy[order[rank]] = x[order[rank]];
      sent_[i][order[rank]] = true;
    }
  }

  /// Local SGD on a graph: between two exchanges workers do not mix at all.
  bool local_step(std::size_t i, std::int64_t k) const {
    if (setup_.trigger.policy != Policy::periodic) return false;
    const auto& events = outcome_.events[i][static_cast<std::size_t>(k)];
    return std::find(events.begin(), events.end(), false) != events.end();
  }

  void mix(std::size_t i, std::int64_t k, std::vector<float>& x) {
    const auto weight = [&](std::size_t j) { return static_cast<float>(weights(k)[i][j]); };
    if (setup_.mixing == Mixing::stale) {
      for (float& v : x) v *= weight(i);
    }
    for (std::size_t j = 0; j < workers_; ++j) {
      if (!hears(i, j, k)) continue;
      const auto& theirs = setup_.delay > 0 ? before_[j] : copies_[j];
      const auto& ours = setup_.delay > 0 ? before_[i] : copies_[i];
      const float w = setup_.mixing == Mixing::difference ? static_cast<float>(setup_.gamma) * weight(j) : weight(j);
      for (std::size_t s = 0; s < offsets_.size(); ++s) {
        for (std::size_t e = offsets_[s]; e < offsets_[s] + setup_.segment_lengths[s]; ++e) {
          if (!moves(i, j, s, e)) continue;
          const float move = setup_.mixing == Mixing::stale ? w * theirs[e] : w * (theirs[e] - ours[e]);
          x[e] += move;
        }
        if (setup_.correction > 0.0) learn(i, j, s, k, w, theirs, ours);
      }
    }
  }

  /// Whether a value that mixes now has travelled between i and j, one way or the other.
  bool crossed(std::size_t i, std::size_t j, std::size_t e) const {
    const auto& sent = setup_.delay > 0 ? sent_before_ : sent_;
    return sent[i][e] || sent[j][e];
  }

  /// Whether value e of segment s moves along the edge: with `arrival` only if it has crossed; with a correction a
  /// difference only if something of the segment has.
  bool moves(std::size_t i, std::size_t j, std::size_t s, std::size_t e) const {
    if (setup_.mixing == Mixing::arrival) return crossed(i, j, e);
    if (setup_.mixing == Mixing::stale || setup_.correction == 0.0) return true;
    const std::size_t first = offsets_[s], n = setup_.segment_lengths[s];
    return has_sent(i, first, n) || has_sent(j, first, n);
  }

  /// v_i learns of the moves that edge {i, j} makes in segment s, at a rate that falls with how rarely a value crosses.
  void learn(std::size_t i, std::size_t j, std::size_t s, std::int64_t k, float w, const std::vector<float>& theirs,
             const std::vector<float>& ours) {
    const std::size_t first = offsets_[s], n = setup_.segment_lengths[s];
    Crossings& edge = crossings_[i * workers_ + j][s];
    std::size_t values = 0;
    for (std::size_t e = first; e < first + n; ++e) values += crossed(i, j, e) ? 1 : 0;
    if (values > 0) {
      const auto silence = static_cast<double>(k - setup_.delay - edge.last);
      edge.mean_silence += (silence - edge.mean_silence) / 8.0;
      edge.last = k - setup_.delay;
      edge.part = static_cast<double>(values) / static_cast<double>(n);
    }
    const double iterations_between = std::max(edge.mean_silence / edge.part, 1.0 + static_cast<double>(setup_.delay));
    const double share = has_sent(i, first, n) && has_sent(j, first, n) ? 1.0 : share_of_one(weights(k)[i][j]);
    const double told = of_8_bits(setup_.learning_rate);
    const float rate = of_8_bits(share * setup_.correction / (iterations_between * told));
    for (std::size_t e = first; e < first + n; ++e) {
      if (!moves(i, j, s, e)) continue;
      drift_[i][e] += rate * (w * (theirs[e] - ours[e]));
    }
  }

  /// Whether i has sent something of these values that mixes now.
  bool has_sent(std::size_t i, std::size_t first, std::size_t n) const {
    const auto& sent = setup_.delay > 0 ? sent_before_ : sent_;
    return std::find(sent[i].begin() + static_cast<std::ptrdiff_t>(first),
                     sent[i].begin() + static_cast<std::ptrdiff_t>(first + n),
                     true) != sent[i].begin() + static_cast<std::ptrdiff_t>(first + n);
  }
  static double share_of_one(double weight) {
    const double w = static_cast<float>(weight);
    return std::min(1.0, 2.0 * w / (1.0 - w));
  }

  const Setup& setup_;
  const GradientSource& problem_;
  std::size_t workers_;
  std::vector<std::size_t> offsets_;
  std::vector<std::vector<float>> copies_;  // what the neighbours hold of each worker
  std::vector<std::vector<float>> before_;  // the same one iteration ago
  std::vector<std::vector<float>> drift_;   // v of each worker
  struct Crossings {
    std::int64_t last = -1;
    double mean_silence = 1.0, part = 1.0;
  };
  std::vector<std::vector<Crossings>> crossings_;      // (pairs, segments)
  std::vector<std::vector<bool>> sent_, sent_before_;  // which values, in this iteration and in the one before
  std::vector<std::vector<float>> gradients_;
  std::vector<std::vector<SegmentMemory>> memories_;
  Outcome outcome_;
};

std::vector<std::vector<double>> zeros(int workers) {
  const auto n = static_cast<std::size_t>(workers);
  return std::vector<std::vector<double>>(n, std::vector<double>(n, 0.0));
}

/// All workers' vectors; (workers, floats). Exact to double precision, so that what differs is the exchange's rounding.
using Vectors = std::vector<std::vector<double>>;

Vectors product(const Vectors& weights, const Vectors& x) {
  Vectors mixed(x.size(), std::vector<double>(x[0].size(), 0.0));
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      for (std::size_t e = 0; e < x[i].size(); ++e) mixed[i][e] += weights[i][j] * x[j][e];
    }
  }
  return mixed;
}

/// a + scale · b.
Vectors sum(Vectors a, double scale, const Vectors& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t e = 0; e < a[i].size(); ++e) a[i][e] += scale * b[i][e];
  }
  return a;
}

class MethodSimulation {
 public:
  MethodSimulation(const Setup& setup, Method method, double momentum, const GradientSource& problem)
      : setup_(setup),
        method_(method),
        momentum_(momentum),
        problem_(problem),
        x_(setup.weights.size(), std::vector<double>(setup.initial.begin(), setup.initial.end())),
        z_(x_),
        state_(x_.size(), std::vector<double>(setup.initial.size(), 0.0)),
        before_(state_),
        push_(x_.size(), {1.0}) {}

  Outcome run() {
    Outcome outcome;
    outcome.events.resize(x_.size());
    for (std::int64_t k = 0; k < setup_.iterations; ++k) {
      const Vectors& w = weights(k);
      iterate(w, gradients(k));
      for (std::size_t i = 0; i < x_.size(); ++i) {
        outcome.events[i].emplace_back(setup_.segment_lengths.size(), true);
        outcome.event_count += setup_.segment_lengths.size();
        for (std::size_t j = 0; j < x_.size(); ++j)
          outcome.message_count += i != j && w[i][j] != 0.0 ? setup_.segment_lengths.size() : 0;
      }
    }
    for (const auto& z : z_) outcome.x.emplace_back(z.begin(), z.end());
    return outcome;
  }

 private:
  const Vectors& weights(std::int64_t k) const {
    if (setup_.sequence.empty()) return setup_.weights;
    return setup_.sequence[static_cast<std::size_t>(k) % setup_.sequence.size()];
  }
  /// At what the models are.
  Vectors gradients(std::int64_t k) const {
    Vectors g;
    for (std::size_t i = 0; i < z_.size(); ++i) {
      const std::vector<float> at(z_[i].begin(), z_[i].end());
      std::vector<float> gradient(at.size());
      problem_.gradient(static_cast<int>(i), k, at, gradient);
      g.emplace_back(gradient.begin(), gradient.end());
    }
    return g;
  }
  void iterate(const Vectors& w, const Vectors& g) {
    switch (method_) {
      case Method::quasi_global_momentum:
        return along_the_way(w, g);
      case Method::gradient_tracking:
        return track(w, g);
      case Method::momentum_tracking:
        return correct(w, g);
      case Method::push_sum:
        return push(w, g);
    }
  }
  /// m = β m̂ + g; x' = W x − η m; m̂ ← β m̂ + (1 − β) d, d = (x − x') / η.
  void along_the_way(const Vectors& w, const Vectors& g) {
    const double rate = setup_.learning_rate;
    const Vectors next = sum(product(w, x_), -rate, sum(g, momentum_, state_));
    for (std::size_t i = 0; i < x_.size(); ++i) {
      for (std::size_t e = 0; e < x_[i].size(); ++e)
        state_[i][e] = momentum_ * state_[i][e] + (1.0 - momentum_) * (x_[i][e] - next[i][e]) / rate;
    }
    z_ = x_ = next;
  }
  /// y' = W y + g' − g, W being that of the iteration in which y travels with x.
  void track(const Vectors& w, const Vectors& g) {
    state_ = sum(sum(product(w, state_), 1.0, g), -1.0, before_);
    before_ = g;
    z_ = x_ = sum(product(w, x_), -setup_.learning_rate, state_);
  }
  /// As the paper has it: u' = β u + g; x' = W x − η (u' − c); c' = W (c − u') + u'. The last is done when the next
  /// iteration begins, by the W of that one.
  void correct(const Vectors& w, const Vectors& g) {
    const Vectors c = sum(before_, -1.0, product(w, state_));
    before_ = sum(g, momentum_, before_);  // u
    state_ = sum(before_, -1.0, c);        // u − c
    z_ = x_ = sum(product(w, x_), -setup_.learning_rate, state_);
  }
  /// x' = P x − η g(z); w' = P w; z = x' / w'.
  void push(const Vectors& shares, const Vectors& g) {
    x_ = sum(product(shares, x_), -setup_.learning_rate, g);
    push_ = product(shares, push_);
    for (std::size_t i = 0; i < x_.size(); ++i) {
      for (std::size_t e = 0; e < x_[i].size(); ++e) z_[i][e] = x_[i][e] / push_[i][0];
    }
  }

  const Setup& setup_;
  Method method_;
  double momentum_;
  const GradientSource& problem_;
  Vectors x_, z_;
  Vectors state_;   // m̂, y or u − c
  Vectors before_;  // the last gradients, or u
  Vectors push_;    // w, one number a worker
};

/// `targets(j)`: whom j sends to, itself left out.
template <class TargetsOf>
Vectors shares_of(int workers, TargetsOf targets) {
  Vectors shares = zeros(workers);
  for (std::size_t j = 0; j < shares.size(); ++j) {
    std::vector<std::size_t> of_worker = targets(j);
    std::sort(of_worker.begin(), of_worker.end());
    of_worker.erase(std::unique(of_worker.begin(), of_worker.end()), of_worker.end());
    std::erase(of_worker, j);
    of_worker.push_back(j);
    for (const std::size_t i : of_worker) shares[i][j] = 1.0 / static_cast<double>(of_worker.size());
  }
  return shares;
}

}  // namespace

std::string ClosestCall::text() const {
  std::ostringstream out;
  out << "closest decision: worker " << worker << ", segment " << segment << ", iteration " << iteration << ", margin "
      << margin << " of the norm";
  if (margin < 1e-6) out << " (rounding may have decided it: choose other data)";
  return out.str();
}

Outcome simulate(const Setup& setup, const GradientSource& problem) { return Simulation(setup, problem).run(); }

Outcome simulate(const Setup& setup, Method method, double momentum, const GradientSource& problem) {
  return MethodSimulation(setup, method, momentum, problem).run();
}

std::vector<std::vector<double>> ring_weights(int workers) {
  auto w = zeros(workers);
  const auto n = w.size();
  for (std::size_t i = 0; i < n; ++i) {
    const double share = n == 1 ? 1.0 : n == 2 ? 0.5 : 1.0 / 3.0;
    w[i][i] = w[i][(i + 1) % n] = w[i][(i + n - 1) % n] = share;
  }
  return w;
}

// Metropolis: 1 / (1 + the centre's degree) = 1/P an edge.
std::vector<std::vector<double>> star_weights(int workers) {
  auto w = zeros(workers);
  const auto n = w.size();
  const double share = 1.0 / static_cast<double>(n);
  for (std::size_t i = 1; i < n; ++i) {
    w[0][i] = w[i][0] = share;
    w[i][i] = 1.0 - share;
  }
  w[0][0] = 1.0 - static_cast<double>(n - 1) * share;
  return w;
}

std::vector<std::vector<double>> complete_weights(int workers) {
  auto w = zeros(workers);
  for (auto& row : w) std::fill(row.begin(), row.end(), 1.0 / static_cast<double>(workers));
  return w;
}

std::vector<std::vector<std::vector<double>>> one_peer_exponential_sequence(int workers) {
  std::vector<std::vector<std::vector<double>>> sequence;
  const auto n = static_cast<std::size_t>(workers);
  for (std::size_t distance = 1; distance < n; distance *= 2) {
    auto w = zeros(workers);
    for (std::size_t i = 0; i < n; ++i) w[i][i] = w[i][(i + n - distance) % n] = 0.5;
    sequence.push_back(w);
  }
  return sequence;
}

std::vector<std::vector<double>> directed_ring_shares(int workers) {
  const auto n = static_cast<std::size_t>(workers);
  return shares_of(workers, [n](std::size_t j) { return std::vector{(j + 1) % n}; });
}

std::vector<std::vector<double>> directed_exponential_shares(int workers) {
  const auto n = static_cast<std::size_t>(workers);
  return shares_of(workers, [n](std::size_t j) {
    std::vector<std::size_t> targets;
    for (std::size_t distance = 1; distance < n; distance *= 2) targets.push_back((j + distance) % n);
    return targets;
  });
}

std::vector<std::vector<double>> towards_zero_shares(int workers) {
  const auto n = static_cast<std::size_t>(workers);
  return shares_of(workers, [n](std::size_t j) { return std::vector{(j + 1) % n, j % 2 == 0 ? 0 : j}; });
}

}  // namespace hearsay::reference
