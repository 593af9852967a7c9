// The measured front: configs/sweeps/skew.yaml, configs/sweeps/skew-others.yaml, 8 ranks in a ring, three seeds. The
// numbers are those of docs/results/tables/skew.md, which a test holds them to.
#include <algorithm>
#include <array>

#include "apps/hearsay/advice/advice.hpp"

namespace hearsay {
namespace {

constexpr std::string_view corrected_events = "{name: eventgrad, mixing: {name: arrival}, correction: {name: drift}}";
constexpr std::string_view int8 = "{quantiser: {name: int8}}", two_bit = "{quantiser: {name: two_bit}}";

constexpr std::array choices{MeasuredChoice{.name = "D-PSGD, corrected",
                                            .exchange = "{name: dpsgd, correction: {name: drift}}",
                                            .trigger = "{}",
                                            .sparsify = "{}",
                                            .unlike = {.accuracy = 0.9670, .worst = 0.9633, .bytes = 1.002},
                                            .alike = {.accuracy = 0.9700, .worst = 0.9700, .bytes = 1.002}},
                             MeasuredChoice{.name = "int8, events 0.5, corrected",
                                            .exchange = corrected_events,
                                            .trigger = "{name: adaptive, horizon: 0.5, maximum_silence: 10}",
                                            .sparsify = int8,
                                            .unlike = {.accuracy = 0.9656, .worst = 0.9539, .bytes = 0.176},
                                            .alike = {.accuracy = 0.9700, .worst = 0.9700, .bytes = 0.176}},
                             MeasuredChoice{.name = "int8, events 1, corrected",
                                            .exchange = corrected_events,
                                            .trigger = "{name: adaptive, horizon: 1, maximum_silence: 10}",
                                            .sparsify = int8,
                                            .unlike = {.accuracy = 0.9628, .worst = 0.9001, .bytes = 0.089},
                                            .alike = {.accuracy = 0.9700, .worst = 0.9700, .bytes = 0.089}},
                             MeasuredChoice{.name = "int8, events 2, corrected",
                                            .exchange = corrected_events,
                                            .trigger = "{name: adaptive, horizon: 2, maximum_silence: 10}",
                                            .sparsify = int8,
                                            .unlike = {.accuracy = 0.9538, .worst = 0.8740, .bytes = 0.050},
                                            .alike = {.accuracy = 0.9700, .worst = 0.9700, .bytes = 0.050}},
                             MeasuredChoice{.name = "2 bits, events 1.2, corrected",
                                            .exchange = corrected_events,
                                            .trigger = "{name: adaptive, horizon: 1.2, maximum_silence: 10}",
                                            .sparsify = two_bit,
                                            .unlike = {.accuracy = 0.9238, .worst = 0.7927, .bytes = 0.020},
                                            .alike = {.accuracy = 0.9700, .worst = 0.9700, .bytes = 0.020}},
                             MeasuredChoice{.name = "2 bits, every 7th, corrected",
                                            .exchange = corrected_events,
                                            .trigger = "{name: periodic, period: 7, warmup_iterations: 0}",
                                            .sparsify = two_bit,
                                            .unlike = {.accuracy = 0.9086, .worst = 0.5086, .bytes = 0.0095},
                                            .alike = {.accuracy = 0.9700, .worst = 0.9700, .bytes = 0.0095}}};

}  // namespace

std::vector<std::string> MeasuredChoice::settings() const {
  return {"exchange=" + std::string(exchange), "trigger=" + std::string(trigger), "sparsify=" + std::string(sparsify)};
}

std::span<const MeasuredChoice> measured_choices() { return choices; }

Reached plain_dpsgd(Shares shares) {
  return shares == Shares::unlike ? Reached{.accuracy = 0.941, .worst = 0.49, .bytes = 1.002}
                                  : Reached{.accuracy = 0.970, .worst = 0.970, .bytes = 1.002};
}

double all_reduce_accuracy(Shares shares) { return shares == Shares::unlike ? 0.969 : 0.970; }

const MeasuredChoice& best_choice(double bytes_fraction, Shares shares) {
  const MeasuredChoice* best = &choices.back();
  for (const MeasuredChoice& choice : choices) {
    const Reached& reached = choice.reached(shares);
    if (reached.bytes <= bytes_fraction && reached.accuracy > best->reached(shares).accuracy) best = &choice;
  }
  return *best;
}

}  // namespace hearsay
