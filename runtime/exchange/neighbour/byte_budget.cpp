#include "runtime/exchange/neighbour/byte_budget.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "base/error.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/transport/packet.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

/// In three significant digits.
std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

}  // namespace

ByteBudget::ByteBudget(double fraction, const Layout& layout, std::size_t neighbours) {
  const double packet = fraction * static_cast<double>(sizeof(float) * layout.size());
  constexpr double least = 2.0 * sizeof(PacketHeader);
  if (packet < least)
    throw ConfigError("exchange.bytes: " + number(fraction) + " of this model are " + number(packet) +
                      " bytes a packet, and one that says nothing has " + std::to_string(sizeof(PacketHeader)) +
                      ": take " + number(1.01 * fraction * least / packet) + " or more, or leave it out");
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
  root.document().suggest("exchange.correction.strength", number(its.strength));
  root.document().suggest("sparsify.quantiser.horizon", number(its.horizon));
  root.document().suggest("sparsify.quantiser.dead_zone", number(its.dead_zone));
  const bool within = bytes >= measured.front().bytes && bytes <= measured.back().bytes;
  root.note("exchange.bytes: " + number(bytes) +
            ": unless the configuration says otherwise, single values are events, " + "with a horizon of " +
            number(its.horizon) + ", a dead zone of " + number(its.dead_zone) + " and a drift correction of " +
            number(its.strength) +
            (within ? ". They need about so much for label-sorted MNIST along a ring of eight, and may need less here"
                    : ". That is beyond what was measured: " + number(measured.front().bytes) + " to " +
                          number(measured.back().bytes)));
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
