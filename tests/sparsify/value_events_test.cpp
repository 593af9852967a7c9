// One step for all values, a dead zone, integers, and what they take.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <array>
#include <cmath>

#include "base/error.hpp"
#include "sparsify/coding/range_coder.hpp"
#include "tests/sparsify/quantised.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::value_events_test {
namespace {

using namespace test;

std::string dead_zone_of(double theta) { return "{name: dead_zone, dead_zone: " + std::to_string(theta) + "}"; }

/// Bits that the positions of k of n values say where each is as likely as any other.
double entropy(double k, double n) { return -k * std::log2(k / n) - (n - k) * std::log2(1 - k / n); }

std::size_t golomb_bytes(const Indices& indices, std::size_t n) {
  Config config = Config::from_text("name: golomb");
  return chosen_entry(position_coders(), config, "plain", "").make(config)->bytes(indices, n);
}

TEST_CASE("after a send no value is further than θΔ from its copy, and none within θΔ moves") {
  CHECK(rc::check("error", [](std::uint64_t seed) {
    Random random(seed);
    const double theta = 0.5 + 0.5 * random.uniform();
    const auto quantiser = make_quantiser(dead_zone_of(theta));
    const StepRule rule = *quantiser->step_rule();
    const float step = sent_step(std::exp(4.0 * random.normal()));
    std::vector<float> changes(1 + random.below(300));
    for (float& d : changes) d = static_cast<float>(step * random.normal() * (random.below(9) == 0 ? 20.0 : 1.0));
    const auto q = quantised(*quantiser, changes, step);
    const float zone = dead_zone(rule, step);
    for (std::size_t i = 0; i < q.size(); ++i) {
      RC_ASSERT(std::abs(changes[i] - q[i]) <= zone * (1 + 0x1p-20F));
      RC_ASSERT((q[i] == 0.0F) == (std::abs(changes[i]) < zone));
      RC_ASSERT(std::remainder(q[i], step) == 0.0F);
    }
  }));
}

TEST_CASE("integers end at 127; what is more stays in the change and goes next") {
  const auto quantiser = make_quantiser("{name: dead_zone}");
  std::vector<float> owed{1000.5F, -130.0F, 3.0F};
  std::vector<float> copy(3);
  for (int sends = 0; sends < 8; ++sends) {
    const auto q = quantised(*quantiser, owed, 1.0F);
    for (std::size_t i = 0; i < q.size(); ++i) copy[i] += q[i], owed[i] -= q[i];
  }
  CHECK(copy == std::vector<float>{1000.0F, -130.0F, 3.0F});
}

TEST_CASE("steps are rounded to 8 significant bits, and a rounded one stays") {
  for (const double step : {1.0, 0.0123456, 3e-7, 1e30}) {
    const float sent = sent_step(step);
    CHECK(std::abs(sent - step) <= step * 0x1p-8);
    CHECK(sent_step(sent) == sent);
  }
  CHECK(sent_step(0.0) == 0.0F);
  CHECK(std::isfinite(127.0F * sent_step(1e38)));
}

TEST_CASE("positions take what they say, within a twentieth, at any density") {
  constexpr std::size_t n = 100'000;
  for (const double density : {0.001, 0.01, 0.05, 0.15, 0.4}) {
    CAPTURE(density);
    const std::size_t k = kept_count(density, n);
    CHECK(8.0 * static_cast<double>(golomb_bytes(random_positions(1, k, n), n)) <=
          1.03 * entropy(static_cast<double>(k), n) + 100);
  }
}

TEST_CASE("a sign takes a bit, a magnitude that is always one takes nothing") {
  const auto quantiser = make_quantiser("{name: dead_zone}");
  std::vector<float> changes(10'000);
  Random random(1);
  for (float& d : changes) d = random.below(2) == 0 ? 1.5F : -1.5F;
  const std::size_t ends[]{changes.size()};
  CHECK(quantised_bytes(*quantiser, changes, ends, 1.0F).size() <= 10'000 / 8 * 1.03);
}

TEST_CASE("order is found: events in runs take less than events anywhere") {
  constexpr std::size_t n = 100'000, k = 5'000;
  CHECK(golomb_bytes(random_positions(1, k, n, true), n) < golomb_bytes(random_positions(1, k, n), n) * 3 / 4);
}

TEST_CASE("any questions come back from the coder, in bytes that are enough or said to be too few") {
  CHECK(rc::check("questions", [](std::uint64_t seed) {
    struct Question {
      std::size_t chance;
      std::uint32_t answer;
      unsigned bits;  // 0: one question
    };
    Random random(seed);
    std::vector<Question> questions(random.below(400));
    const std::uint64_t one_in = 1 + random.below(50);
    for (Question& q : questions) {
      const auto bits = random.below(8) == 0 ? static_cast<unsigned>(1 + random.below(32)) : 0U;
      const auto number = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32));
      q = {random.below(3), bits > 0 ? number >> (32 - bits) : (random.below(one_in) == 0 ? 1U : 0U), bits};
    }
    std::vector<std::byte> out(random.below(800));
    coding::Encoder to(out);
    std::array<coding::Chance, 3> chances{};
    for (const Question& q : questions)
      q.bits > 0 ? to.put_bits(q.answer, q.bits) : to.put(chances[q.chance], q.answer != 0);
    const std::size_t used = to.finish();
    if (used > out.size()) return;
    coding::Decoder from({out.data(), used});
    chances = {};
    for (const Question& q : questions)
      RC_ASSERT((q.bits > 0 ? from.take_bits(q.bits) : (from.take(chances[q.chance]) ? 1U : 0U)) == q.answer);
    RC_ASSERT(from.read_all());
  }));
}

TEST_CASE("a dead zone's positions are golomb's unless the configuration says otherwise") {
  const auto coder = [](const std::string& yaml) {
    Config config = Config::from_text(yaml);
    read_sparsifier(config, {});
    config.document().throw_if_invalid();
    return config.document().dump();
  };
  CHECK(coder("{quantiser: {name: dead_zone}}").find("name: golomb") != std::string::npos);
  CHECK(coder("{quantiser: {name: fp4}}").find("name: plain") != std::string::npos);
  CHECK(coder("{quantiser: {name: dead_zone}, codec: {name: delta}}").find("name: delta") != std::string::npos);
}

}  // namespace
}  // namespace hearsay::value_events_test
