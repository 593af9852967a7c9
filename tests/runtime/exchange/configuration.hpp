#pragma once
// The configurations of the exchange tests: each choice as YAML and as the reference simulation is told of it.
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/exchange/exchange.hpp"
#include "tests/reference/simulation.hpp"

namespace hearsay::test {

struct GraphChoice {
  std::string yaml;
  std::vector<std::vector<double>> (*weights)(int workers);
};
inline std::vector<GraphChoice> graph_choices() {
  return {{"topology: {graph: {name: ring}, weights: {name: uniform}}\n", reference::ring_weights},
          {"topology: {graph: {name: star}, weights: {name: metropolis}}\n", reference::star_weights},
          {"topology: {graph: {name: complete}, weights: {name: uniform}}\n", reference::complete_weights}};
}

struct TriggerChoice {
  std::string yaml;
  reference::TriggerRule rule;
};
/// Every policy, with and without the options that all of them share. Horizons are such that no comparison is exact.
inline std::vector<TriggerChoice> trigger_choices() {
  using reference::Policy;
  return {{"trigger: {name: always, warmup_iterations: 0}\n", {.policy = Policy::always}},
          {"trigger: {name: constant, threshold: 0.05, warmup_iterations: 2}\n",
           {.policy = Policy::constant, .threshold = 0.05, .warmup = 2}},
          {"trigger: {name: constant, threshold: 0.5, warmup_iterations: 0, maximum_silence: 7}\n",
           {.policy = Policy::constant, .threshold = 0.5, .maximum_silence = 7}},
          {"trigger: {name: geometric, scale: 0.7, ratio: 0.93, measure: norm, warmup_iterations: 0}\n",
           {.policy = Policy::geometric, .scale = 0.7, .ratio = 0.93}},
          {"trigger: {name: periodic, period: 4, warmup_iterations: 0}\n", {.policy = Policy::periodic, .period = 4}},
          {"trigger: {name: periodic, period: 7, warmup_iterations: 3, maximum_silence: 5}\n",
           {.policy = Policy::periodic, .period = 7, .warmup = 3, .maximum_silence = 5}},
          {"trigger: {name: adaptive, horizon: 1.7, history: 2, warmup_iterations: 3}\n",
           {.policy = Policy::adaptive, .horizon = 1.7, .history = 2, .warmup = 3}},
          {"trigger: {name: adaptive, horizon: 2.6, history: 3, warmup_iterations: 0, maximum_silence: 11}\n",
           {.policy = Policy::adaptive, .horizon = 2.6, .history = 3, .maximum_silence = 11}},
          {"trigger: {name: adaptive_compounding, horizon: 0.9, history: 2, warmup_iterations: 5}\n",
           {.policy = Policy::adaptive_compounding, .horizon = 0.9, .history = 2, .warmup = 5}},
          {"trigger: {name: adaptive_compounding, horizon: 1.1, history: 3, warmup_iterations: 0}\n",
           {.policy = Policy::adaptive_compounding, .horizon = 1.1, .history = 3}}};
}

struct MixingChoice {
  std::string yaml;  ///< of `exchange.mixing`
  reference::Mixing rule;
};
constexpr double difference_gamma = 0.3;
inline std::vector<MixingChoice> mixing_choices() {
  return {{"{name: stale}", reference::Mixing::stale},
          {"{name: difference, gamma: 0.3}", reference::Mixing::difference},
          {"{name: arrival}", reference::Mixing::arrival}};
}

struct SparsifyChoice {
  std::string yaml;
  double density;
};
inline std::vector<SparsifyChoice> sparsify_choices() {
  return {{"", 1.0}, {"sparsify: {selector: {name: topk, density: 0.1}}\n", 0.1}};
}

/// Sections `sparsify:` as YAML, without its name.
constexpr const char* whole = "{}";
constexpr const char* a_tenth = "{selector: {name: topk, density: 0.1}}";
/// Quantisers that round, alone and behind selectors.
inline std::vector<std::string> rounding_choices() {
  return {"{quantiser: {name: fp16}}",
          "{quantiser: {name: int8}}",
          "{quantiser: {name: fp4}}",
          "{selector: {name: topk, density: 0.5}, quantiser: {name: fp16}, codec: {name: delta}}",
          "{selector: {name: topk, density: 0.3}, quantiser: {name: two_bit}}",
          "{selector: {name: topk, density: 0.3, dense_below: 50}, quantiser: {name: one_bit, centre: row_mean}}",
          "{selector: {name: topk, density: 0.3}, quantiser: {name: one_bit, centre: threshold}}"};
}
/// Whole segments, some values, and changes that are rounded.
inline std::vector<std::string> every_kind_of_body() {
  std::vector<std::string> all = rounding_choices();
  all.insert(all.end(), {whole, a_tenth, "{selector: {name: topk, density: 0.6}, codec: {name: smallest}}",
                         "{selector: {name: sampled, density: 0.1, dense_below: 50}, codec: {name: delta}}",
                         "{selector: {name: threshold, threshold: 0.5}, codec: {name: bitmap}}",
                         "{selector: {name: topk, density: 0.1}, density_schedule: [1, 0.5]}",
                         "{quantiser: {name: dead_zone, step: 0.05}}",
                         "{selector: {name: topk, density: 0.5, dense_below: 50}, quantiser: {name: dead_zone, step: "
                         "0.1, dead_zone: 0.7}}"});
  return all;
}

inline std::string eventgrad(const std::string& mixing, const std::string& schedule = "lockstep") {
  return "exchange: {name: eventgrad, schedule: " + schedule + ", mixing: " + mixing + "}\n";
}

/// The section `exchange:` with rounds of `steps` local steps, where the exchange has rounds; else without `more`.
inline std::string in_rounds(std::string_view name, int steps, const std::string& more = "") {
  const std::string section = "exchange: {name: " + std::string(name);
  const std::string rounds = section + ", local_steps: " + std::to_string(steps) + more + "}\n";
  try {
    Config root = Config::from_text(rounds);
    static_cast<void>(plan_exchange(root));
    root.document().throw_if_invalid();
    return rounds;
  } catch (const ConfigError&) {
    return section + "}\n";
  }
}

constexpr const char* ring = "topology: {graph: {name: ring}, weights: {name: uniform}}\n";
inline const std::string one_peer = "topology: {graph: {name: one_peer_exponential}, weights: {name: uniform}}\n";
constexpr const char* dpsgd = "exchange: {name: dpsgd}\n";

}  // namespace hearsay::test
