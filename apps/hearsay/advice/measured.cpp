// The measured front: configs/sweeps/skew.yaml, configs/sweeps/skew-others.yaml, 8 ranks in a ring, three seeds. The
// numbers are those of docs/results/tables/skew.md, which a test holds them to.
#include <array>

#include "apps/hearsay/advice/advice.hpp"

namespace hearsay {
namespace {

constexpr std::string_view corrected_events = "{name: eventgrad, mixing: {name: arrival}, correction: {name: drift}}";
constexpr std::string_view int8 = "{quantiser: {name: int8}}", two_bit = "{quantiser: {name: two_bit}}";

// Those that are worth choosing, the most bytes first.
constexpr std::array choices{MeasuredChoice{.name = "D-PSGD",
                                            .exchange = "{name: dpsgd, correction: {name: drift}}",
                                            .trigger = "{}",
                                            .sparsify = "{}",
                                            .unlike = {.accuracy = 0.9667, .worst = 0.9621, .bytes = 1.0016},
                                            .alike = {.accuracy = 0.9677, .worst = 0.9633, .bytes = 1.0016}},
                             MeasuredChoice{.name = "int8, events 0.5",
                                            .exchange = corrected_events,
                                            .trigger = "{name: adaptive, horizon: 0.5, maximum_silence: 10}",
                                            .sparsify = int8,
                                            .unlike = {.accuracy = 0.9659, .worst = 0.9592, .bytes = 0.1721},
                                            .alike = {.accuracy = 0.9665, .worst = 0.9588, .bytes = 0.1700}},
                             MeasuredChoice{.name = "int8, events 1",
                                            .exchange = corrected_events,
                                            .trigger = "{name: adaptive, horizon: 1, maximum_silence: 10}",
                                            .sparsify = int8,
                                            .unlike = {.accuracy = 0.9611, .worst = 0.9525, .bytes = 0.0944},
                                            .alike = {.accuracy = 0.9655, .worst = 0.9580, .bytes = 0.1002}},
                             MeasuredChoice{.name = "int8, events 2",
                                            .exchange = corrected_events,
                                            .trigger = "{name: adaptive, horizon: 2, maximum_silence: 10}",
                                            .sparsify = int8,
                                            .unlike = {.accuracy = 0.9505, .worst = 0.9207, .bytes = 0.0503},
                                            .alike = {.accuracy = 0.9642, .worst = 0.9492, .bytes = 0.0511}},
                             MeasuredChoice{.name = "2 bits, events 1.2",
                                            .exchange = corrected_events,
                                            .trigger = "{name: adaptive, horizon: 1.2, maximum_silence: 10}",
                                            .sparsify = two_bit,
                                            .unlike = {.accuracy = 0.9283, .worst = 0.7316, .bytes = 0.0206},
                                            .alike = {.accuracy = 0.9661, .worst = 0.9606, .bytes = 0.0236}},
                             MeasuredChoice{.name = "2 bits, every 7th",
                                            .exchange = corrected_events,
                                            .trigger = "{name: periodic, period: 7, warmup_iterations: 0}",
                                            .sparsify = two_bit,
                                            .unlike = {.accuracy = 0.9192, .worst = 0.5672, .bytes = 0.0095},
                                            .alike = {.accuracy = 0.9663, .worst = 0.9606, .bytes = 0.0096}}};

}  // namespace

std::vector<std::string> MeasuredChoice::settings() const {
  std::vector<std::string> all{"exchange=" + std::string(exchange)};
  // A section that the exchange does not open would be an error.
  if (trigger != "{}") all.push_back("trigger=" + std::string(trigger));
  if (sparsify != "{}") all.push_back("sparsify=" + std::string(sparsify));
  return all;
}

Reached plain_dpsgd(Shares shares) {
  return shares == Shares::unlike ? Reached{.accuracy = 0.9443, .worst = 0.5666, .bytes = 1.0016}
                                  : Reached{.accuracy = 0.9671, .worst = 0.9634, .bytes = 1.0016};
}

double all_reduce_accuracy() { return 0.9663; }

const MeasuredChoice& best_choice(double bytes_fraction, Shares shares) {
  const MeasuredChoice* best = &choices.back();
  for (const MeasuredChoice& choice : choices) {
    const Reached& reached = choice.reached(shares);
    if (reached.bytes <= within_budget * bytes_fraction && reached.accuracy > best->reached(shares).accuracy)
      best = &choice;
  }
  return *best;
}

}  // namespace hearsay
