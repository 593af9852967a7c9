// Laws that every trigger policy and the engine around it keep, and the norms they watch.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "tests/trigger/replay.hpp"

namespace trigger_contract_test {

using namespace hearsay;
using test::Replay;

namespace {

using Trace = std::vector<std::vector<double>>;    // (iterations, segments): norms; row 0 is that of x_0
using Events = std::vector<std::vector<uint8_t>>;  // (iterations, segments)

std::string named(const TriggerEntry& entry, const std::string& options = "warmup_iterations: 0") {
  return "{name: " + std::string(entry.name) + ", " + options + "}";
}

Events run(const std::string& yaml, const Trace& trace) {
  Replay trigger(yaml, trace[0]);
  Events events;
  for (std::size_t k = 0; k < trace.size(); ++k) {
    events.emplace_back(trace[k].size());
    trigger.decide(static_cast<Iteration>(k), trace[k], events.back());
  }
  return events;
}

/// Norms that wander.
Trace random_trace(std::uint64_t seed, std::size_t iterations, std::size_t segments) {
  Random random(seed);
  Trace trace(iterations, std::vector<double>(segments));
  for (std::size_t s = 0; s < segments; ++s) {
    double norm = random.uniform(1.0, 10.0);
    for (std::size_t k = 0; k < iterations; ++k) trace[k][s] = std::abs(norm += 0.02 * random.normal() + 0.005);
  }
  return trace;
}

/// `trace` with one segment of another.
Trace with_column(Trace trace, std::size_t segment, const Trace& of) {
  for (std::size_t k = 0; k < trace.size(); ++k) trace[k][segment] = of[k][segment];
  return trace;
}

}  // namespace

TEST_CASE("every trigger says what it is, under a name of its own") {
  std::set<std::string_view> names;
  for (const TriggerEntry& entry : triggers()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    for (const auto text : {entry.name, entry.summary, entry.equation, entry.cost, entry.citation})
      CHECK_FALSE(text.empty());
  }
  CHECK(names.size() >= 8);
}

TEST_CASE("every trigger builds from its name alone, and adaptive is the default") {
  const std::vector<double> initial{1.0, 2.0};
  for (const TriggerEntry& entry : triggers()) CHECK_NOTHROW(Replay("name: " + std::string(entry.name), initial));
  const Trace trace = random_trace(3, 300, 2);
  CHECK(run("{}", trace) == run("name: adaptive", trace));
}

TEST_CASE("a norm that drifts without bound fires again and again") {
  Trace trace;
  for (int k = 0; k < 2000; ++k) trace.push_back({1.0 + k});
  for (const TriggerEntry& entry : triggers()) {
    CAPTURE(entry.name);
    const Events events = run(named(entry), trace);
    for (int from = 0; from < 2000; from += 100) {
      int count = 0;
      for (int k = from; k < from + 100; ++k) count += events[static_cast<std::size_t>(k)][0];
      CHECK(count > 0);
    }
  }
}

TEST_CASE("equal histories give equal decisions, and segments do not touch each other") {
  for (const TriggerEntry& entry : triggers()) {
    CAPTURE(entry.name);
    CHECK(rc::check(std::string(entry.name), [&](std::uint64_t seed) {
      const Trace trace = random_trace(seed, 200, 3);
      const std::string yaml = named(entry, "warmup_iterations: 5");
      const Events together = run(yaml, trace);
      RC_ASSERT(together == run(yaml, trace));
      // Whatever the other segments do, and however many follow.
      for (std::size_t s = 0; s < 3; ++s) {
        const Trace other = random_trace(~seed, 200, 5);
        const Events events = run(yaml, with_column(other, s, trace));
        for (std::size_t k = 0; k < trace.size(); ++k) RC_ASSERT(events[k][s] == together[k][s]);
      }
    }));
  }
}

TEST_CASE("an event is warm-up, a change that reaches the threshold, or too long a silence; nothing else") {
  for (const TriggerEntry& entry : triggers()) {
    CAPTURE(entry.name);
    const Trace trace = random_trace(11, 400, 2);
    Replay trigger(named(entry, "warmup_iterations: 7, maximum_silence: 6"), trace[0]);
    std::vector<double> sent = trace[0];
    std::vector<Iteration> last(2, -1);
    std::vector<std::uint8_t> fired(2);
    for (std::size_t row = 0; row < trace.size(); ++row) {
      const auto k = static_cast<Iteration>(row);
      trigger.decide(k, trace[row], fired);
      for (std::size_t s = 0; s < 2; ++s) {
        const bool reached = std::abs(trace[row][s] - sent[s]) >= trigger.engine().thresholds()[s];
        REQUIRE((fired[s] == 1) == (k < 7 || reached || k - last[s] >= 6));
        if (fired[s] == 0) continue;
        sent[s] = trace[row][s];
        last[s] = k;
        CHECK(trigger.engine().iterations_of_events()[s] == k);
      }
    }
  }
}

TEST_CASE("silence_growth adds events where a silence is so many times the longest recent one, nowhere else") {
  for (const TriggerEntry& entry : triggers()) {
    for (const double growth : {1.0, 1.5, 3.0}) {
      CAPTURE(entry.name);
      CAPTURE(growth);
      const Trace trace = random_trace(13, 600, 1);
      Replay trigger(named(entry, "warmup_iterations: 4, silence_growth: " + std::to_string(growth)), trace[0]);
      double sent = trace[0][0], peak = 1.0;
      Iteration last = -1;
      std::vector<std::uint8_t> fired(1);
      for (std::size_t row = 0; row < trace.size(); ++row) {
        const auto k = static_cast<Iteration>(row);
        trigger.decide(k, trace[row], fired);
        const auto silence = static_cast<double>(k - last);
        const bool reached = std::abs(trace[row][0] - sent) >= trigger.engine().thresholds()[0];
        REQUIRE((fired[0] == 1) == (k < 4 || reached || silence >= growth * peak));
        if (fired[0] == 0) continue;
        peak = silence > peak ? silence : peak - (peak - silence) / 8.0;
        sent = trace[row][0];
        last = k;
      }
    }
  }
}

TEST_CASE("a segment with nothing to say is silent at most silence_growth times as long as before") {
  const Trace still(3000, {1.0});
  const std::string never = "{name: constant, threshold: 1, warmup_iterations: 0, silence_growth: ";
  // Silences of 2, 4, 8, …: the events are at 2^(m + 1) − 3.
  Events expected(3000, {0});
  for (std::size_t power = 4; power - 3 < expected.size(); power *= 2) expected[power - 3] = {1};
  CHECK(run(never + "2}", still) == expected);
  CHECK(run(never + "1}", still) == Events(3000, {1}));
  CHECK(run(never + "0}", still) == Events(3000, {0}));
  // With both bounds the nearer one counts.
  const Events bounded = run(never + "2, maximum_silence: 5}", still);
  CHECK(bounded[1][0] + bounded[5][0] + bounded[10][0] + bounded[15][0] == 4);
}

TEST_CASE("the longest silence: a longer one counts at once, an eighth is forgotten with every shorter one") {
  LongestSilence silence(2);
  CHECK(silence.longest(0) == 1.0);
  silence.event(0, 65);
  CHECK(silence.longest(0) == 65.0);
  CHECK(silence.longest(1) == 1.0);
  for (int n = 1; n <= 10; ++n) {
    silence.event(0, 1);
    CHECK(silence.longest(0) == doctest::Approx(1.0 + 64.0 * std::pow(7.0 / 8.0, n)).epsilon(1e-14));
  }
  silence.event(0, 66);
  CHECK(silence.longest(0) == 66.0);
  silence.event(0, 66);
  CHECK(silence.longest(0) == 66.0);
}

TEST_CASE("on segments of one value that keeps its sign, both measures give the same events") {
  for (const TriggerEntry& entry : triggers()) {
    CAPTURE(entry.name);
    const Trace trace = random_trace(17, 400, 3);
    const auto measured = [&](const std::string& measure) {
      return run(named(entry, "warmup_iterations: 2, measure: " + measure), trace);
    };
    CHECK(measured("norm") == measured("change"));
  }
}

TEST_CASE("a tensor that rotates is silent for ever by its norm, and sent by its change") {
  const std::vector<std::size_t> lengths{2};
  const std::vector<double> five{5.0};
  std::vector<std::uint8_t> by_norm(1), by_change(1);
  const std::string options = "{name: constant, threshold: 6, warmup_iterations: 0, measure: ";
  TriggerEngine norms = test::make_engine(options + "norm}", lengths, five);
  TriggerEngine changes = test::make_engine(options + "change}", lengths, five);
  std::vector<float> x{3.0F, 4.0F}, sent = x;
  for (Iteration k = 0; k < 40; ++k) {
    x = {-x[1], x[0]};  // by a right angle, which changes it by 5 √2
    const std::vector<double> norm_of_x{norm(x)}, change{norm_of_difference(x, sent)};
    norms.decide(k, norm_of_x, {}, by_norm);
    changes.decide(k, norm_of_x, change, by_change);
    CHECK(by_norm[0] == 0);
    CHECK(by_change[0] == 1);
    if (by_change[0] != 0) sent = x;
  }
}

TEST_CASE("a policy watches the measure that it is meant for unless it is told otherwise") {
  for (const TriggerEntry& entry : triggers()) {
    CAPTURE(entry.name);
    Config none;
    const Measure expected = entry.make(none)->default_measure();
    const auto measure_of = [&](const std::string& options) {
      Config config = Config::from_text(named(entry, options));
      return TriggerPlan(config).measure;
    };
    CHECK(measure_of("warmup_iterations: 0") == expected);
    CHECK(measure_of("measure: norm") == Measure::norm);
    CHECK(measure_of("measure: change") == Measure::change);
    CHECK(measure_of("measure: largest") == Measure::largest);
  }
}

TEST_CASE("a threshold is a pure function of the policy's state") {
  for (const TriggerEntry& entry : triggers()) {
    CAPTURE(entry.name);
    Config config;
    const auto policy = entry.make(config)->for_segments(1);
    const auto seen = [](Iteration k, double norm, double norm_at_event, Iteration iteration_of_event) {
      return Observation{.segment = 0,
                         .length = 64,
                         .iteration = k,
                         .norm = norm,
                         .norm_at_event = norm_at_event,
                         .change = norm - norm_at_event,
                         .iteration_of_event = iteration_of_event,
                         .learning_rate = 0.1};
    };
    for (int e = 1; e <= 3; ++e) policy->fired(seen(e, 2.5 * e, 0.0, e - 1));
    const auto at = [&](Iteration k) { return seen(k, 9.0, 7.5, 3); };
    const double near = policy->threshold(at(4)), far = policy->threshold(at(1000000));
    CHECK(policy->threshold(at(4)) == near);
    CHECK(policy->threshold(at(1000000)) == far);
    CHECK(near >= 0.0);
    CHECK(far >= 0.0);
  }
}

TEST_CASE("a norm that is not finite stops the run, names its place and changes nothing") {
  for (const TriggerEntry& entry : triggers()) {
    CAPTURE(entry.name);
    const Trace trace = random_trace(5, 60, 2);
    Replay trigger(named(entry), trace[0]), undisturbed(named(entry), trace[0]);
    std::vector<std::uint8_t> fired(2), expected(2);
    for (std::size_t k = 0; k < trace.size(); ++k) {
      if (k == 17) {
        for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
          const std::vector<double> norms{3.0, bad};
          CHECK_THROWS_AS(trigger.decide(17, norms, fired), DivergenceError);
          CHECK_THROWS_WITH(trigger.decide(17, norms, fired),
                            doctest::Contains("parameter 1 (from 0, in the model's order) at iteration 17 is "));
        }
      }
      trigger.decide(static_cast<Iteration>(k), trace[k], fired);
      undisturbed.decide(static_cast<Iteration>(k), trace[k], expected);
      CHECK(fired == expected);
    }
  }
}

TEST_CASE("a change that is not finite stops the run as a norm does, and changes nothing") {
  const std::vector<std::size_t> lengths{1, 1};
  const std::vector<double> norms{1.0, 2.0}, right{0.5, 0.5};
  std::vector<std::uint8_t> fired(2);
  TriggerEngine trigger = test::make_engine("{name: constant, threshold: 9, measure: change}", lengths, norms);
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const std::vector<double> changes{0.5, bad};
    CHECK_THROWS_WITH_AS(
        trigger.decide(0, norms, changes, fired),
        doctest::Contains("the change of parameter 1 (from 0, in the model's order) at iteration 0 is "),
        DivergenceError);
  }
  CHECK_NOTHROW(trigger.decide(0, norms, right, fired));
}

TEST_CASE("wrong calls of the engine are found") {
  const std::vector<std::size_t> lengths{1, 1};
  const std::vector<double> norms{1.0, 2.0}, one{1.0};
  std::vector<std::uint8_t> fired(2), too_few(1);
  for (const bool change : {false, true}) {
    CAPTURE(change);
    TriggerEngine trigger =
        test::make_engine(change ? "{name: always, measure: change}" : "{name: always}", lengths, norms);
    const std::span<const double> right = change ? std::span(norms) : std::span<const double>();
    const std::span<const double> wrong = change ? std::span<const double>() : std::span(norms);
    trigger.decide(0, norms, right, fired);
    CHECK_THROWS_AS(trigger.decide(0, norms, right, fired), std::logic_error);
    CHECK_THROWS_AS(trigger.decide(1, norms, right, too_few), std::logic_error);
    CHECK_THROWS_AS(trigger.decide(1, one, right, fired), std::logic_error);
    CHECK_THROWS_AS(trigger.decide(1, norms, wrong, fired), std::logic_error);
    CHECK_THROWS_AS(trigger.decide(1, norms, one, fired), std::logic_error);
    CHECK_NOTHROW(trigger.decide(1, norms, right, fired));
  }
  CHECK_THROWS_AS(test::make_engine("{name: always}", lengths, one), std::logic_error);
}

TEST_CASE("keys out of range are refused") {
  for (const std::string yaml : {"{name: adaptive, horizon: 0}",
                                 "{name: adaptive, horizon: -1}",
                                 "{name: adaptive, horizon: .inf}",
                                 "{name: adaptive, history: 0}",
                                 "{name: adaptive_compounding, horizon: 0}",
                                 "{name: constant, threshold: -1}",
                                 "{name: periodic, period: 0}",
                                 "{name: geometric, scale: 0}",
                                 "{name: geometric, ratio: 1}",
                                 "{name: geometric, ratio: 0}",
                                 "{name: always, horizon: 1}",
                                 "{name: never}",
                                 "{warmup_iterations: -1}",
                                 "{maximum_silence: -1}",
                                 "{silence_growth: -1}",
                                 "{silence_growth: 0.5}",
                                 "{silence_growth: .inf}",
                                 "{measure: length}",
                                 "{name: periodic, small_always: -1}",
                                 "{name: sparq, scale: 0}",
                                 "{name: sparq, exponent: 1}",
                                 "{name: sparq, exponent: -0.1}",
                                 "{name: etg, scale: 0}",
                                 "{name: etg, exponent: -1}",
                                 "{name: random, probability: 0}",
                                 "{name: random, probability: 1.1}",
                                 "{name: random, seed: -1}"}) {
    CAPTURE(yaml);
    CHECK_THROWS_AS(Replay(yaml, {}), ConfigError);
  }
}

TEST_CASE("the norm is exact where the arithmetic is") {
  CHECK(norm({}) == 0.0);
  const std::vector<float> sides{3.0F, -4.0F};
  CHECK(norm(sides) == 5.0);
  for (const std::size_t n : {1U, 15U, 16U, 17U, 31U, 1000U, 4099U}) {
    // 1² + 2² + … + n² = n (n + 1) (2n + 1) / 6, all of it exact in double.
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = (i % 2 == 0 ? 1.0F : -1.0F) * static_cast<float>(i + 1);
    const auto m = static_cast<double>(n);
    CHECK(norm(values) == std::sqrt(m * (m + 1) * (2 * m + 1) / 6));
  }
}

TEST_CASE("the norm neither overflows nor drowns, and shows what is not finite") {
  const std::vector<float> huge(100, std::numeric_limits<float>::max());
  CHECK(norm(huge) == 10.0 * static_cast<double>(std::numeric_limits<float>::max()));
  const std::vector<float> tiny(4, std::numeric_limits<float>::denorm_min());
  CHECK(norm(tiny) == 2.0 * static_cast<double>(std::numeric_limits<float>::denorm_min()));
  for (const std::size_t position : {0U, 20U, 32U}) {
    std::vector<float> values(33, 1.0F);
    values[position] = std::numeric_limits<float>::infinity();
    CHECK(std::isinf(norm(values)));
    values[position] = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(norm(values)));
  }
}

TEST_CASE("the norm of a difference is the norm of the differences, bit for bit") {
  CHECK(norm_of_difference({}, {}) == 0.0);
  for (const std::size_t n : {1U, 15U, 16U, 17U, 31U, 1000U, 4099U}) {
    for (const std::size_t shift : {0U, 1U, 3U}) {
      Random random(n + shift);
      std::vector<float> x(shift + n), y(n), difference(n);
      for (float& value : x) value = static_cast<float>(random.normal());
      for (float& value : y) value = static_cast<float>(random.normal());
      const std::span<const float> of_x = std::span(x).subspan(shift);
      for (std::size_t i = 0; i < n; ++i) difference[i] = of_x[i] - y[i];
      CHECK(norm_of_difference(of_x, y) == norm(difference));
      CHECK(norm_of_difference(y, of_x) == norm(difference));
      CHECK(norm_of_difference(y, y) == 0.0);
      y[n / 2] = std::numeric_limits<float>::quiet_NaN();
      CHECK(std::isnan(norm_of_difference(of_x, y)));
    }
  }
}

TEST_CASE("the norm agrees with a sum in long double") {
  CHECK(rc::check([](std::uint64_t seed) {
    Random random(seed);
    std::vector<float> values(random.below(3000));
    long double sum = 0;
    for (float& value : values) {
      value = static_cast<float>(random.normal());
      sum += static_cast<long double>(value) * value;
    }
    RC_ASSERT(std::abs(norm(values) - static_cast<double>(std::sqrt(sum))) <= 1e-14 * norm(values));
  }));
}

}  // namespace trigger_contract_test
