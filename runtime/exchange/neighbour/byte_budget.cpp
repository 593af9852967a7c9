#include "runtime/exchange/neighbour/byte_budget.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/error.hpp"
#include "base/text/number.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/transport/packet.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {
ByteBudget::ByteBudget(double fraction, const Layout& layout, std::size_t neighbours) {
  const double packet = fraction * static_cast<double>(sizeof(float) * layout.size());
  constexpr double least = 2.0 * sizeof(PacketHeader);
  if (packet < least)
    throw ConfigError("exchange.bytes: " + number_text(fraction, 3) + " of this model are " + number_text(packet, 3) +
                      " bytes a packet, and one that says nothing has " + std::to_string(sizeof(PacketHeader)) +
                      ": take " + number_text(1.01 * fraction * least / packet, 3) + " or more, or leave it out");
  each_iteration_ = packet * static_cast<double>(neighbours);
}

void ByteBudget::state(Archive& archive) {
  std::uint64_t all = posted_;
  archive.value("bytes posted", all);
  before_ += all - posted_;  // nothing where it is saved
  posted_ = all;
}

namespace {

// MNIST's label-sorted digits on a ring of eight, mnist_cnn, rate 0.2, three seeds: 97.2, 97.6 and 97.9 % where the
// all-reduce has 98.2. Copies of an edge, differences with γ = 1.
constexpr std::array measured{EventSettings{.bytes = 0.0069, .horizon = 25.0, .dead_zone = 0.6, .strength = 0.7},
                              EventSettings{.bytes = 0.0132, .horizon = 9.0, .dead_zone = 0.6, .strength = 0.7},
                              EventSettings{.bytes = 0.02, .horizon = 9.0, .dead_zone = 0.55, .strength = 0.7}};

void suggest_settings(double bytes, Schedule schedule, Config& root) {
  const EventSettings its = settings_for(bytes);
  if (schedule == Schedule::lockstep) root.document().suggest("exchange.copies", "edge");
  root.document().suggest("exchange.mixing.name", "difference");
  root.document().suggest("exchange.mixing.gamma", "1");
  root.document().suggest("exchange.correction.name", "drift");
  root.document().suggest("exchange.correction.strength", number_text(its.strength, 3));
  root.document().suggest("sparsify.quantiser.horizon", number_text(its.horizon, 3));
  root.document().suggest("sparsify.quantiser.dead_zone", number_text(its.dead_zone, 3));
  const bool within = bytes >= measured.front().bytes && bytes <= measured.back().bytes;
  root.note("exchange.bytes: " + number_text(bytes, 3) +
            ": unless the configuration says otherwise, single values are events, " + "with a horizon of " +
            number_text(its.horizon, 3) + ", a dead zone of " + number_text(its.dead_zone, 3) +
            " and a drift correction of " + number_text(its.strength, 3) +
            (within ? ". They need about so much for label-sorted MNIST along a ring of eight, and may need less here"
                    : ". That is beyond what was measured: " + number_text(measured.front().bytes, 3) + " to " +
                          number_text(measured.back().bytes, 3)));
}

}  // namespace

EventSettings settings_for(double bytes) {
  const EventSettings& least = measured.front();
  if (bytes < least.bytes) {
    EventSettings rarer = least;
    rarer.horizon *= least.bytes / bytes;  // half of the events, where a step is twice as long
    return rarer;
  }
  if (bytes >= measured.back().bytes) return measured.back();
  const auto* const above = std::ranges::upper_bound(measured, bytes, {}, &EventSettings::bytes);
  const EventSettings &from = *(above - 1), &to = *above;
  const double part = std::log(bytes / from.bytes) / std::log(to.bytes / from.bytes);
  const auto between = [part](double a, double b) { return a * std::pow(b / a, part); };
  return {.bytes = bytes,
          .horizon = between(from.horizon, to.horizon),
          .dead_zone = between(from.dead_zone, to.dead_zone),
          .strength = between(from.strength, to.strength)};
}

std::optional<double> read_byte_budget(Config& exchange, Config& root) {
  const std::optional<double> bytes = exchange.real_or_auto(
      "bytes", Range::fraction_above_zero(),
      "of D-PSGD's: single values are events, by settings that were measured to need about so "
      "much; with another trigger, where segments are events, a rank rests that has sent more. auto: "
      "no budget");
  if (!bytes) return bytes;
  root.document().suggest("trigger.name", "value_events");
  Config trigger = root.section("trigger");
  if (TriggerPlan(trigger).policy->by_values()) suggest_settings(*bytes, read_schedule(exchange), root);
  return bytes;
}

}  // namespace hearsay
