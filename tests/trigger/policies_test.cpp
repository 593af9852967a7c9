// What each policy does on traces whose answer is known.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "tests/trigger/replay.hpp"

namespace policies_test {

using namespace hearsay;
using test::Replay;

namespace {

using Trace = std::vector<double>;  // the norm of one segment, iteration by iteration

/// The iterations at which the one segment fires.
std::vector<Iteration> events(const std::string& yaml, const Trace& trace, std::vector<double>* thresholds = nullptr) {
  Replay trigger(yaml, std::span(trace).first(1));
  std::vector<Iteration> fired_at;
  std::vector<std::uint8_t> fired(1);
  for (std::size_t k = 0; k < trace.size(); ++k) {
    trigger.decide(static_cast<Iteration>(k), std::span(trace).subspan(k, 1), fired);
    if (fired[0] == 1) fired_at.push_back(static_cast<Iteration>(k));
    if (thresholds != nullptr) thresholds->push_back(trigger.engine().thresholds()[0]);
  }
  return fired_at;
}

/// ‖x_k‖ = k + 1: every slope is exactly 1.
Trace steady_drift(int iterations) {
  Trace trace;
  for (int k = 0; k < iterations; ++k) trace.push_back(k + 1.0);
  return trace;
}

Trace random_trace(std::uint64_t seed, int iterations) {
  Random random(seed);
  Trace trace;
  double norm = random.uniform(1.0, 10.0);
  for (int k = 0; k < iterations; ++k) {
    const double settling = std::exp(-0.005 * k);
    trace.push_back(norm += 0.05 * settling * random.uniform() + 0.01 * random.normal());
  }
  return trace;
}

std::vector<Iteration> every(Iteration first, Iteration step, Iteration end) {
  std::vector<Iteration> fired_at;
  for (Iteration k = first; k < end; k += step) fired_at.push_back(k);
  return fired_at;
}

/// The loop of EventGraD's released program for one tensor, adaptive mode: passes count from 1, everything starts at 0,
/// the threshold is multiplied in place at every pass, 29 passes are forced. Returns passes − 1.
std::vector<Iteration> released_code(const Trace& trace, double horizon, std::size_t history) {
  double threshold = 0, last_sent_norm = 0;
  std::size_t last_sent_pass = 0;
  std::vector<double> slopes(history, 0.0);
  std::vector<Iteration> fired_at;
  for (std::size_t pass = 1; pass <= trace.size(); ++pass) {
    const double current = trace[pass - 1];
    const double difference = std::fabs(current - last_sent_norm);
    threshold = threshold * horizon;
    if (!(difference >= threshold || pass < 30)) continue;
    fired_at.push_back(static_cast<Iteration>(pass) - 1);
    for (std::size_t i = 0; i + 1 < history; ++i) slopes[i] = slopes[i + 1];
    slopes[history - 1] = difference / static_cast<double>(pass - last_sent_pass);
    threshold = 0;
    for (std::size_t i = 0; i < history; ++i) threshold += slopes[i];
    threshold /= static_cast<double>(history);
    last_sent_norm = current;
    last_sent_pass = pass;
  }
  return fired_at;
}

/// Equation (6) read wrongly: the threshold re-computed from the current change at every iteration.
std::vector<Iteration> threshold_of_the_moment(const Trace& trace, double horizon) {
  std::vector<Iteration> fired_at{0};
  for (std::size_t k = 1; k < trace.size(); ++k) {
    const auto silence = static_cast<double>(static_cast<Iteration>(k) - fired_at.back());
    const double change = std::fabs(trace[k] - trace[static_cast<std::size_t>(fired_at.back())]);
    if (change >= horizon * (change / silence)) fired_at.push_back(static_cast<Iteration>(k));
  }
  return fired_at;
}

std::string adaptive(double horizon, int history = 2, int warmup = 0) {
  return "{name: adaptive, horizon: " + std::to_string(horizon) + ", history: " + std::to_string(history) +
         ", warmup_iterations: " + std::to_string(warmup) + "}";
}

std::string compounding(double horizon, int history = 2, const std::string& more = "") {
  return "{name: adaptive_compounding, warmup_iterations: 29, horizon: " + std::to_string(horizon) +
         ", history: " + std::to_string(history) + more + "}";
}

}  // namespace

TEST_CASE("always and a constant threshold of 0 fire at every iteration, also when nothing changes") {
  const Trace still(50, 3.0);
  for (const std::string yaml : {"{name: always, warmup_iterations: 0}", "{name: constant, warmup_iterations: 0}",
                                 "{name: constant, threshold: 0.0, warmup_iterations: 0}"}) {
    CHECK(events(yaml, still) == every(0, 1, 50));
    CHECK(events(yaml, random_trace(1, 50)) == every(0, 1, 50));
  }
}

TEST_CASE("a constant threshold fires when the norm has moved so far since it was sent") {
  CHECK(events("{name: constant, threshold: 3, warmup_iterations: 0}", steady_drift(31)) == every(3, 3, 31));
  CHECK(events("{name: constant, threshold: 2.5, warmup_iterations: 0}", steady_drift(31)) == every(3, 3, 31));
  Trace falling = steady_drift(31);
  for (double& norm : falling) norm = 100.0 - norm;
  CHECK(events("{name: constant, threshold: 3, warmup_iterations: 0}", falling) == every(3, 3, 31));
  CHECK(events("{name: constant, threshold: 1e9, warmup_iterations: 4}", steady_drift(31)) == every(0, 1, 4));
  CHECK(events("{name: constant, threshold: 1e9, warmup_iterations: 0, maximum_silence: 5}", steady_drift(31)) ==
        every(4, 5, 31));
}

TEST_CASE("periodic fires at multiples of its period, and says that the steps between are local") {
  CHECK(events("{name: periodic, period: 7, warmup_iterations: 0}", random_trace(2, 60)) == every(0, 7, 60));
  CHECK(events("{name: periodic, period: 1, warmup_iterations: 0}", random_trace(2, 60)) == every(0, 1, 60));
  CHECK(events("{name: periodic, period: 20, warmup_iterations: 3}", random_trace(2, 60)) ==
        std::vector<Iteration>{0, 1, 2, 20, 40});
  const auto says_so = [](const std::string& yaml) {
    Config config = Config::from_text(yaml);
    return TriggerPlan(config).policy->local_steps_between_events();
  };
  CHECK(says_so("{name: periodic, period: 7}"));
  for (const char* name : {"always", "adaptive", "geometric"})
    CHECK_FALSE(says_so("{name: " + std::string(name) + "}"));
}

TEST_CASE("policies whose rate is proved for the change are meant for it") {
  for (const char* name : {"geometric", "sparq", "etg"}) {
    Config config = Config::from_text("{name: " + std::string(name) + "}");
    CHECK(TriggerPlan(config).measure == Measure::change);
  }
}

TEST_CASE("geometric: the threshold is scale times ratio to the k") {
  std::vector<double> thresholds;
  const std::vector<Iteration> fired_at =
      events("{name: geometric, scale: 8, ratio: 0.5, warmup_iterations: 0}", steady_drift(12), &thresholds);
  for (std::size_t k = 0; k < 12; ++k) CHECK(thresholds[k] == std::ldexp(8.0, -static_cast<int>(k)));
  // Changes 0, 1, 2 against 8, 4, 2; then 1 an iteration against 1, 1/2, …
  CHECK(fired_at == every(2, 1, 12));
}

TEST_CASE("periodic sends segments of at most small_always values at every iteration, none if it is 0") {
  const std::vector<std::size_t> lengths{1000, 10, 11, 0};
  const std::vector<double> norms(lengths.size(), 1.0);
  std::vector<std::uint8_t> fired(lengths.size());
  for (const int small : {0, 9, 10, 11, 1000}) {
    CAPTURE(small);
    TriggerEngine trigger = test::make_engine(
        "{name: periodic, period: 4, warmup_iterations: 0, small_always: " + std::to_string(small) + "}", lengths,
        norms);
    for (Iteration k = 0; k < 12; ++k) {
      trigger.decide(k, norms, {}, fired);
      for (std::size_t s = 0; s < lengths.size(); ++s) {
        const bool is_small = small > 0 && lengths[s] <= static_cast<std::size_t>(small);
        CHECK(fired[s] == (k % 4 == 0 || is_small));
      }
    }
  }
}

TEST_CASE("etg: the threshold is scale over a power of k + 1, by default the square root") {
  std::vector<double> thresholds, roots;
  events("{name: etg, scale: 8, exponent: 1, warmup_iterations: 0}", steady_drift(9), &thresholds);
  events("{name: etg, scale: 8, warmup_iterations: 0}", steady_drift(9), &roots);
  for (std::size_t k = 0; k < 9; ++k) {
    CHECK(thresholds[k] == 8.0 / (static_cast<double>(k) + 1.0));
    CHECK(roots[k] * roots[k] == doctest::Approx(8.0 * thresholds[k]));
  }
  const std::string constant = "threshold: 2.5, warmup_iterations: 0}";
  CHECK(events("{name: etg, scale: 2.5, exponent: 0, warmup_iterations: 0}", random_trace(6, 300)) ==
        events("{name: constant, " + constant, random_trace(6, 300)));
}

TEST_CASE("sparq: the threshold's square is c times that of the learning rate, and c grows as a power of k + 1") {
  std::vector<double> still, growing;
  events("{name: sparq, scale: 4, exponent: 0, warmup_iterations: 0}", steady_drift(9), &still);
  events("{name: sparq, scale: 4, exponent: 0.5, warmup_iterations: 0}", steady_drift(9), &growing);
  for (std::size_t k = 0; k < 9; ++k) {
    CHECK(still[k] == 2.0 * Replay::learning_rate);
    const double c = 4.0 * std::sqrt(static_cast<double>(k) + 1.0);
    CHECK(growing[k] * growing[k] == doctest::Approx(c * Replay::learning_rate * Replay::learning_rate));
  }
}

TEST_CASE("sparq: steps and learning rate scaled alike give the same events") {
  const std::vector<std::size_t> one{1};
  const std::vector<double> none{0.0};
  const Trace trace = random_trace(8, 300);
  std::vector<std::vector<std::uint8_t>> events;
  for (const double factor : {1.0, 0.25, 16.0}) {
    TriggerEngine trigger = test::make_engine("{name: sparq, scale: 9, warmup_iterations: 0}", one, none);
    trigger.learning_rate(0, factor * 0.01);
    double sent = 0.0;
    events.emplace_back(trace.size());
    for (std::size_t k = 0; k < trace.size(); ++k) {
      const std::vector<double> change{factor * std::abs(trace[k] - sent)};
      const auto fired = std::span(events.back()).subspan(k, 1);
      trigger.decide(static_cast<Iteration>(k), none, change, fired);
      if (fired[0] != 0) sent = trace[k];
    }
    CHECK(events.back() == events.front());
  }
  const auto count = std::ranges::count(events.front(), 1);
  CHECK(count > 1);
  CHECK(count < 300);
}

TEST_CASE("adaptive, steady drift: an event every ceil(horizon) iterations") {
  for (const double horizon : {0.3, 1.0, 1.5, 2.0, 2.7, 7.2, 30.5}) {
    for (const int history : {1, 2, 5}) {
      CAPTURE(horizon);
      CAPTURE(history);
      // k = 0 and k = 1 are events for want of a slope; from then on the threshold is the horizon.
      std::vector<Iteration> expected{0};
      for (const Iteration k : every(1, static_cast<Iteration>(std::ceil(horizon)), 300)) expected.push_back(k);
      CHECK(events(adaptive(horizon, history), steady_drift(300)) == expected);
    }
  }
}

TEST_CASE("adaptive: the threshold is horizon times the mean slope of the last events, held in between") {
  const Trace trace{1, 3, 4, 9, 9.5, 9.5, 9.5, 9.5, 30, 31, 32};
  std::vector<double> thresholds;
  const auto fired_at = events(adaptive(2.0, 2), trace, &thresholds);
  // Event at 1: slope 2, thr 4. At 3: slope (9 − 3)/2 = 3, thr 2 · (2 + 3)/2 = 5. At 8: slope 21/5, thr 2 · (3
  // + 4.2)/2.
  CHECK(fired_at == std::vector<Iteration>{0, 1, 3, 8});
  CHECK(thresholds == std::vector<double>{0, 0, 4, 4, 5, 5, 5, 5, 5, 2 * ((3 + 4.2) / 2), 2 * ((3 + 4.2) / 2)});
}

TEST_CASE("adaptive is not the equation re-evaluated at every iteration, which is a timer") {
  const Trace trace = random_trace(4, 1000);
  for (const double horizon : {1.5, 2.5, 4.5}) {
    const auto timer = threshold_of_the_moment(trace, horizon);
    CHECK(timer == every(0, static_cast<Iteration>(std::ceil(horizon)), 1000));
    CHECK(events(adaptive(horizon), trace) != timer);
  }
}

TEST_CASE("compounding, steady drift: fires at the first silence n with n >= horizon^n, or never again") {
  struct Case {
    double horizon;
    Iteration period;
  };
  for (const auto& [horizon, period] :
       {Case{0.5, 1}, Case{1.0, 1}, Case{1.01, 2}, Case{1.41, 2}, Case{1.42, 3}, Case{1.44, 3}}) {
    CAPTURE(horizon);
    std::vector<Iteration> expected = every(0, 1, 28);
    for (const Iteration k : every(28, period, 400)) expected.push_back(k);
    CHECK(events(compounding(horizon), steady_drift(400)) == expected);
  }
  for (const double horizon : {1.45, 2.0, 50.0})
    CHECK(events(compounding(horizon), steady_drift(5000)) == every(0, 1, 29));
}

TEST_CASE("compounding: maximum_silence bounds what would be silent for ever") {
  std::vector<Iteration> expected = every(0, 1, 28);
  for (const Iteration k : every(28, 40, 5000)) expected.push_back(k);
  CHECK(events(compounding(2.0, 2, ", maximum_silence: 40"), steady_drift(5000)) == expected);
}

TEST_CASE("compounding: slots of the history that no event has filled count as 0") {
  std::vector<double> thresholds;
  events("{name: adaptive_compounding, horizon: 1, history: 4, warmup_iterations: 4}", steady_drift(6), &thresholds);
  // The event at k = 0 has slope 0, those at 1, 2 and 3 have slope 1.
  CHECK(thresholds == std::vector<double>{0, 0, 0.25, 0.5, 0.75, 1.0});
}

TEST_CASE("compounding: a norm that never moves keeps the threshold 0 and is always sent, however large the power") {
  const Trace still(3000, 2.0);
  CHECK(events(compounding(50.0), still) == every(0, 1, 3000));
  // Silent so long that the power overflows, with a slope before: the threshold is +∞, not NaN.
  Trace settled(3000, 1.28);
  for (std::size_t k = 0; k < 29; ++k) settled[k] = 1.0 + 0.01 * static_cast<double>(k);
  std::vector<double> thresholds;
  CHECK(events(compounding(50.0), settled, &thresholds) == every(0, 1, 29));
  CHECK(thresholds.back() == std::numeric_limits<double>::infinity());
}

TEST_CASE("compounding: without a slope the threshold is 0 after any silence, also where the power overflows") {
  Config config = Config::from_text("horizon: 50");
  for (const TriggerEntry& entry : triggers()) {
    if (entry.name != "adaptive_compounding") continue;
    CHECK(entry.make(config)->for_segments(1)->threshold({.segment = 0,
                                                          .length = 1,
                                                          .iteration = 100000,
                                                          .norm = 1.0,
                                                          .norm_at_event = 1.0,
                                                          .change = 0.0,
                                                          .iteration_of_event = 3,
                                                          .learning_rate = 0.1}) == 0.0);
  }
}

TEST_CASE("compounding decides as the released code does") {
  CHECK(rc::check([] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const double horizon = *rc::gen::element(0.5, 0.9, 0.95, 1.0, 1.02, 1.05, 1.3);
    const auto history = *rc::gen::inRange(1, 6);
    const Trace trace = random_trace(seed, 1200);
    const auto expected = released_code(trace, horizon, static_cast<std::size_t>(history));
    RC_ASSERT(expected.size() < trace.size());
    RC_ASSERT(events(compounding(horizon, history), trace) == expected);
  }));
}

TEST_CASE("held and compounding thresholds are different rules") {
  const Trace trace = random_trace(9, 1000);
  for (const double horizon : {0.9, 1.05})
    CHECK(events(adaptive(horizon, 2, 29), trace) != events(compounding(horizon), trace));
}

namespace {

/// How often each of `segments` fires in so many iterations on this rank, and how often it does with the next one.
struct Rates {
  std::vector<double> of_segment;
  double together = 0.0;
};
Rates rates(const std::string& yaml, std::size_t segments, Iteration iterations, int rank = 0) {
  const std::vector<std::size_t> lengths(segments, 1);
  const std::vector<double> norms(segments, 1.0);
  TriggerEngine trigger = test::make_engine(yaml, lengths, norms, rank);
  Rates rates{.of_segment = std::vector<double>(segments)};
  std::vector<std::uint8_t> fired(segments);
  const auto n = static_cast<double>(iterations);
  for (Iteration k = 0; k < iterations; ++k) {
    trigger.decide(k, norms, {}, fired);
    for (std::size_t s = 0; s < segments; ++s) {
      rates.of_segment[s] += fired[s] / n;
      rates.together += fired[s] * fired[(s + 1) % segments] / n / static_cast<double>(segments);
    }
  }
  return rates;
}

std::vector<std::vector<std::uint8_t>> draws(const std::string& yaml, int rank) {
  const std::vector<std::size_t> lengths(4, 1);
  const std::vector<double> norms(4, 1.0);
  TriggerEngine trigger = test::make_engine(yaml, lengths, norms, rank);
  std::vector<std::vector<std::uint8_t>> all(200, std::vector<std::uint8_t>(4));
  for (std::size_t k = 0; k < all.size(); ++k) trigger.decide(static_cast<Iteration>(k), norms, {}, all[k]);
  return all;
}

}  // namespace

// Six standard deviations of the mean of 40,000 draws.
TEST_CASE("random: every segment fires at the stated rate, independently of the others and of what it holds") {
  for (const double p : {0.02, 0.3, 0.9}) {
    const std::string yaml = "{name: random, warmup_iterations: 0, probability: " + std::to_string(p) + "}";
    const Rates seen = rates(yaml, 5, 40000);
    const double allowed = 6.0 * std::sqrt(p * (1.0 - p) / 40000.0);
    for (const double rate : seen.of_segment) CHECK(std::abs(rate - p) <= allowed);
    CHECK(std::abs(seen.together - p * p) <= allowed);
  }
  for (const double rate : rates("{name: random, warmup_iterations: 0, probability: 1}", 3, 50).of_segment)
    CHECK(rate == doctest::Approx(1.0));
}

TEST_CASE("random: the draws are the seed's and the rank's, and nothing else's") {
  const std::string yaml = "{name: random, warmup_iterations: 0, probability: 0.4";
  CHECK(draws(yaml + "}", 0) == draws(yaml + "}", 0));
  CHECK(draws(yaml + "}", 0) != draws(yaml + "}", 1));
  CHECK(draws(yaml + "}", 0) != draws(yaml + ", seed: 1}", 0));
  // Ranks fire together as often as chance has it: no more than six standard deviations off.
  double both = 0.0;
  const auto here = draws(yaml + "}", 0), there = draws(yaml + "}", 1);
  for (std::size_t k = 0; k < here.size(); ++k)
    for (std::size_t s = 0; s < 4; ++s) both += here[k][s] * there[k][s] / 800.0;
  CHECK(std::abs(both - 0.16) <= 6.0 * std::sqrt(0.16 * 0.84 / 800.0));
}

}  // namespace policies_test
