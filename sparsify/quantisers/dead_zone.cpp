// One step for all values of a model, a dead zone, integers: the values that are news, in two bits or so each.
//   q(d) = sign(d) Δ floor(|d| / Δ + 1 − θ) for |d| ≥ θΔ, else 0;  |d − q(d)| ≤ θΔ, and Δ/2 at best (θ = 1/2)
//   Δ = h · the root mean square of a step of the optimizer, h being `horizon`; or `step`; or, in sums over all ranks,
//       what `bits_per_value` pays for (sparsify/quantisers/sum_step.hpp); as it is sent, rounded to 8 significant bits
// An event is a value that has moved by θΔ since it was last sent: send-on-delta (miskowicz2006send), for every value
// of a model; one Δ for all of them is the best division of bits that rate-distortion theory knows
// (sullivan1996efficient, dead zones included).
// Deviates from the papers in: Δ follows the optimizer's steps; a change is sent, not a value, and what is not sent
// stays in the change. Integers end at 127: what is more goes next time.
//   a group: Δ, the upper half of a float;  then a byte: form + 2 · (the bytes behind it mod 128)
//   form 1: zero or not, sign and magnitude in unary, all through an adaptive coder (sparsify/coding/range_coder.hpp)
//   form 0: 8-bit integers; whichever is shorter
// Without a Δ of the caller's (for what is no change since it was last sent) a group has that of its own root mean
// square.
// Cost: about 1.3 bits an event, at most 3 bytes and 1 byte an event; one pass over the events; no state.
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "sparsify/coding/range_coder.hpp"
#include "sparsify/quantisers/groups.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

using namespace coding;

constexpr int largest = 127;
constexpr float largest_step = 0x1p120F;  // times 127 it is a float
constexpr std::size_t step_bytes = 2;     // of a group
constexpr std::size_t lengths = 128;      // modulo which the length is sent

/// What is known of integers.
class IntegerModel {
 public:
  void put(Encoder& to, int k) {
    to.put(zero_, k == 0);
    if (k == 0) return;
    to.put(signs_[before_], k < 0);
    before_ = k < 0 ? 1 : 2;
    const auto more = static_cast<std::size_t>(std::abs(k) - 1);
    for (std::size_t i = 0; i < more; ++i) to.put(more_[std::min(i, last)], true);
    if (more + 1 < largest) to.put(more_[std::min(more, last)], false);
  }
  int take(Decoder& from) {
    if (from.take(zero_)) return 0;
    const bool minus = from.take(signs_[before_]);
    before_ = minus ? 1 : 2;
    std::size_t more = 0;
    while (more + 1 < largest && from.take(more_[std::min(more, last)])) ++more;
    const int magnitude = static_cast<int>(more) + 1;
    return minus ? -magnitude : magnitude;
  }

 private:
  static constexpr std::size_t last = 15;
  Chance zero_{};
  std::size_t before_ = 0;  // the last sign: none, minus, plus
  std::array<Chance, 3> signs_{};
  std::array<Chance, last + 1> more_{};
};

class DeadZone final : public Quantiser {
 public:
  explicit DeadZone(Config& config)
      : rule_{.horizon = config.real("horizon", 12.0, Range::above(0.0),
                                     "h: a value is news after about so many typical steps in one direction; in sums "
                                     "over all ranks a step is what a round adds"),
              .fixed = config.real_or_auto("step", Range::above(0.0),
                                           "Δ, what all values are counted in; auto: h times the root mean square of "
                                           "a step of the optimizer"),
              .bits = config.real_or_auto("bits_per_value", Range::fraction_above_zero(),
                                          "sums over all ranks: bits of a message, a value of the model, positions "
                                          "included; Δ follows them. Where more than 1 is wanted, take fp4"),
              .dead_zone = config.real("dead_zone", 1.0, Range::between(0.5, 1.0),
                                       "θ: changes of less than θΔ are no news; 1 where nothing feeds back, else "
                                       "0.7")} {
    config.require(!rule_.bits || !rule_.fixed, "bits_per_value", "not beside a step: leave one of the two out");
  }

  bool exact() const override { return false; }
  double error_bound(std::span<const float> group, float) const override {
    return root_mean_square(group) * (1 + 0x1p-8);
  }
  std::optional<StepRule> step_rule() const override { return rule_; }
  std::size_t bound(std::size_t count, std::size_t groups) const override {
    return step_bytes * groups + (count > 0 ? 1 + count : 0);
  }

  std::size_t encode(std::span<const float> values, std::span<const std::size_t> group_ends, float step,
                     std::span<std::byte> out) const override {
    if (values.empty()) return 0;
    const std::size_t header = step_bytes * group_ends.size() + 1;
    require_room("quantiser dead_zone", header, out.size());
    std::vector<std::int8_t> integers(values.size());
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const auto members = values.subspan(first, end - first);
      const float delta = sent_step(step > 0.0F ? step : rule_.fixed.value_or(root_mean_square(members)));
      store(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(delta) >> 16), out, step_bytes * group);
      for (std::size_t i = first; i < end; ++i) integers[i] = integer(values[i], delta);
    });
    const auto body = out.subspan(header).first(std::min(values.size(), out.size() - header));
    std::size_t length = put_adaptive(integers, body);
    const bool adaptive = length > 0;
    if (!adaptive) {
      require_room("quantiser dead_zone", header + values.size(), out.size());
      store_all(std::span<const std::int8_t>(integers), body);
      length = values.size();
    }
    store(static_cast<std::uint8_t>((adaptive ? 1 : 0) + 2 * (length % lengths)), out, header - 1);
    return header + length;
  }

  void decode(std::span<const std::byte> in, std::span<const std::size_t> group_ends,
              std::span<float> values) const override {
    const auto refuse = [&](const std::string& why) { refuse_values("dead_zone", values.size(), why); };
    const std::size_t header = step_bytes * group_ends.size() + (values.empty() ? 0 : 1);
    if (in.size() < header || in.size() > bound(values.size(), group_ends.size()))
      refuse(std::to_string(in.size()) + " bytes");
    if (values.empty()) return;
    const auto form = static_cast<std::size_t>(in[header - 1]);
    const auto body = in.subspan(header);
    if (body.size() % lengths != form / 2) refuse(std::to_string(in.size()) + " bytes");
    if (form % 2 == 0) {
      require_bytes("dead_zone", values.size(), values.size(), body.size());
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = load<std::int8_t>(body, i);
    } else {
      take_adaptive(body, values);
    }
    for_each_group(group_ends, [&](std::size_t group, std::size_t first, std::size_t end) {
      const auto delta = std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(in, step_bytes * group)} << 16);
      if (!(delta >= 0.0F && delta <= largest_step)) refuse("a step of " + std::to_string(delta));
      for (std::size_t i = first; i < end; ++i) {
        if (std::abs(values[i]) > largest) refuse("an integer of " + std::to_string(values[i]));
        values[i] *= delta;
      }
    });
  }

 private:
  static float root_mean_square(std::span<const float> values) {
    double sum = 0.0;
    for (const float value : values) sum += static_cast<double>(value) * value;
    return static_cast<float>(std::sqrt(sum / static_cast<double>(values.size())));
  }

  std::int8_t integer(float value, float delta) const {
    const float magnitude = std::abs(value);
    if (delta == 0.0F || magnitude < dead_zone(rule_, delta)) return 0;
    const double whole = std::floor(static_cast<double>(magnitude) / delta + 1.0 - rule_.dead_zone);
    const int k = static_cast<int>(std::clamp(whole, 1.0, static_cast<double>(largest)));
    return static_cast<std::int8_t>(value < 0.0F ? -k : k);
  }

  /// Returns how many bytes they take, fewer than one each and no more than there are; else 0.
  static std::size_t put_adaptive(std::span<const std::int8_t> integers, std::span<std::byte> out) {
    Encoder to(out);
    IntegerModel model;
    for (const std::int8_t k : integers) {
      model.put(to, k);
      if (to.full()) return 0;
    }
    const std::size_t length = to.finish();
    return length < integers.size() && length <= out.size() ? length : 0;
  }

  static void take_adaptive(std::span<const std::byte> in, std::span<float> values) {
    Decoder from(in);
    IntegerModel model;
    for (float& value : values) value = static_cast<float>(model.take(from));
    if (!from.read_all()) refuse_values("dead_zone", values.size(), "more bytes than they need");
  }

  StepRule rule_;
};

std::unique_ptr<Quantiser> make_dead_zone(Config& config) { return std::make_unique<DeadZone>(config); }

}  // namespace

float sent_step(double step) {
  const auto nearest = static_cast<float>(std::clamp(step, 0.0, double{largest_step}));
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) + 0x8000U) & 0xffff0000U);
}

float dead_zone(const StepRule& rule, float step) { return static_cast<float>(rule.dead_zone * step); }

QuantiserEntry dead_zone_quantiser() {
  return {.name = "dead_zone",
          .summary = "one step for all values of a model, a dead zone, integers: only values that are news travel",
          .equation = "q(d) = sign(d) Δ floor(|d| / Δ + 1 − θ) for |d| ≥ θΔ, else 0; Δ = h · RMS of a step",
          .cost = "about 1.3 bits an event, at most 3 bytes and 1 byte an event; error ≤ θΔ; one pass; no state",
          .citation = "miskowicz2006send; sullivan1996efficient",
          .make = make_dead_zone};
}

}  // namespace hearsay
