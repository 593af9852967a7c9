// The measured front: configs/sweeps/skew.yaml, configs/sweeps/skew-others.yaml, 8 ranks in a ring, three seeds. The
// numbers are those of docs/results/tables/skew.md, which a test holds them to.
#include <array>

#include "apps/hearsay/advice/advice.hpp"

namespace hearsay {
namespace {

constexpr std::string_view corrected_events = "{name: eventgrad, mixing: {name: arrival}, correction: {name: drift}}";
constexpr std::string_view int8 = "{quantiser: {name: int8}}", two_bit = "{quantiser: {name: two_bit}}";

// Those that are worth choosing, the most bytes first. D-PSGD with 32 bits a value is not: four times the bytes, and
// the same accuracy.
constexpr std::array choices{MeasuredChoice{.name = "int8, always",
                                            .exchange = corrected_events,
                                            .trigger = "{name: always}",
                                            .sparsify = int8,
                                            .unlike = {.accuracy = 0.9675, .worst = 0.9626, .bytes = 0.2519},
                                            .alike = {.accuracy = 0.9676, .worst = 0.9632, .bytes = 0.2519}},
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
                             MeasuredChoice{.name = "2 bits, every 3rd",
                                            .exchange = corrected_events,
                                            .trigger = "{name: periodic, period: 3, warmup_iterations: 0}",
                                            .sparsify = two_bit,
                                            .unlike = {.accuracy = 0.9339, .worst = 0.7554, .bytes = 0.0218},
                                            .alike = {.accuracy = 0.9663, .worst = 0.9631, .bytes = 0.0219}},
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
