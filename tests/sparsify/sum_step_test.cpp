// Δ of sums over all ranks: it follows a budget of bits, and what is owed stays small.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "base/error.hpp"
#include "sparsify/quantisers/sum_step.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::sum_step_test {
namespace {

using namespace test;

struct Coded {
  std::shared_ptr<const Codec> codec;
  StepRule rule;
};
Coded coded(const std::string& keys) {
  Config config = Config::from_text("{quantiser: {name: dead_zone, " + keys + "}}");
  const Sparsifier read = read_sparsifier(config, {.selector = "topk", .news = true});
  config.document().throw_if_invalid();
  return {read.codec, read.news.value()};
}

/// What one rank owes, and its messages.
class Sender {
 public:
  Sender(const std::string& keys, std::size_t n) : coded_(coded(keys)), step_(coded_.rule), owed_(n) {}

  /// Returns the bytes of a round's message.
  std::size_t round(std::span<const float> added) {
    step_.adds(added);
    for (std::size_t i = 0; i < owed_.size(); ++i) owed_[i] += added[i];
    step_.select(owed_, news_);
    std::vector<float> values;
    for (const std::uint32_t i : news_) values.push_back(owed_[i]);
    std::vector<std::byte> out(coded_.codec->bound(news_.size(), owed_.size()));
    const std::size_t bytes = coded_.codec->encode(news_, values, owed_.size(), {}, out, step_.length()).total();
    std::vector<std::uint32_t> positions;
    coded_.codec->decode(std::span(out).first(bytes), news_.size(), owed_.size(), {}, positions, values);
    for (std::size_t i = 0; i < positions.size(); ++i) owed_[positions[i]] -= values[i];
    step_.sent(bytes, owed_.size());
    return bytes;
  }
  float length() const { return step_.length(); }
  float zone() const { return dead_zone(coded_.rule, step_.length()); }
  const StepRule& rule() const { return coded_.rule; }
  std::span<const std::uint32_t> news() const { return news_; }
  std::span<const float> owed() const { return owed_; }
  SumStep& step() { return step_; }

 private:
  Coded coded_;
  SumStep step_;
  std::vector<float> owed_;
  std::vector<std::uint32_t> news_;
};

using Draw = std::function<double(Random&)>;
double gaussian(Random& random) { return random.normal(); }
double laplace(Random& random) {
  const double size = -std::log(1.0 - random.uniform());
  return random.below(2) == 0 ? size : -size;
}
/// No variance: one value in a hundred is beyond 60.
double cauchy(Random& random) { return std::tan(std::numbers::pi * (random.uniform() - 0.5)); }

std::vector<float> drawn(const Draw& draw, Random& random, std::size_t n, double scale) {
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(scale * draw(random));
  return values;
}

TEST_CASE("messages are within a tenth of the budget from the fifth round on, and again after a change of scale") {
  constexpr std::size_t n = 60'000;
  constexpr int rounds = 10, settled = 4;
  for (const Draw& draw : {Draw(gaussian), Draw(laplace), Draw(cauchy)}) {
    for (const double bits : {0.05, 0.1, 0.25, 1.0}) {
      Sender sender("bits_per_value: " + std::to_string(bits), n);
      Random random(7);
      for (const double scale : {1.0, 10.0, 0.1, 1e-6}) {
        for (int round = 0; round < rounds; ++round) {
          CAPTURE(bits);
          CAPTURE(scale);
          CAPTURE(round);
          const std::size_t bytes = sender.round(drawn(draw, random, n, scale));
          if (round >= settled) CHECK(8.0 * static_cast<double>(bytes) / n == doctest::Approx(bits).epsilon(0.1));
        }
      }
    }
  }
}

TEST_CASE("the first step is the magnitude that as many values reach as the budget pays for") {
  constexpr std::size_t n = 60'000;
  const std::vector<float> values = normal_values(3, n);
  for (const double bits : {0.05, 0.25, 1.0}) {
    for (const std::string theta : {"1", "0.7"}) {
      CAPTURE(bits);
      CAPTURE(theta);
      Sender sender("bits_per_value: " + std::to_string(bits) + ", dead_zone: " + theta, n);
      const std::size_t bytes = sender.round(values);
      const std::size_t k = SumStep::usual_news(sender.rule(), n);
      const Indices most = largest(values, k);
      for (const std::uint32_t i : most) CHECK(std::abs(values[i]) >= sender.zone());
      CHECK(sender.news().size() >= k);
      CHECK(static_cast<double>(sender.news().size()) <= 1.1 * static_cast<double>(k));
      CHECK(8.0 * static_cast<double>(bytes) / n == doctest::Approx(bits).epsilon(0.25));
    }
  }
}

// 127 steps fit into an integer.
TEST_CASE("after a message nothing that fitted is owed beyond θΔ") {
  constexpr std::size_t n = 5'000;
  for (const std::string rule : {"step: 1.5", "horizon: 3", "bits_per_value: 0.3"}) {
    for (const double theta : {0.5, 0.7, 1.0}) {
      Sender sender(rule + ", dead_zone: " + std::to_string(theta), n);
      Random random(5);
      for (int round = 0; round < 8; ++round) {
        CAPTURE(rule);
        CAPTURE(theta);
        sender.round(drawn(gaussian, random, n, 1.0));
        REQUIRE(sender.length() > 0.0F);
        REQUIRE(sender.news().size() < SumStep::most_news(sender.rule(), n));
        for (const float owed : sender.owed()) REQUIRE(std::abs(owed) <= sender.zone() * (1 + 0x1p-20F));
      }
    }
  }
}

TEST_CASE("no message has more values than the bound; the largest go, and the others in rounds that follow") {
  constexpr std::size_t n = 1'000;
  Sender sender("bits_per_value: 0.1", n);
  const std::size_t most = SumStep::most_news(sender.rule(), n);
  std::vector<float> equal(n, 1.0F);
  equal[n - 1] = 2.0F;
  sender.round(equal);
  CHECK(sender.news().size() == most);
  CHECK(sender.news().back() == n - 1);
  const std::vector<float> nothing(n);
  std::size_t rounds = 1;
  for (; std::ranges::count(sender.owed(), 0.0F) < static_cast<std::ptrdiff_t>(n); ++rounds) {
    REQUIRE(rounds <= n / most + 3);
    sender.round(nothing);
    REQUIRE(sender.news().size() <= most);
  }
  sender.round(nothing);
  CHECK(sender.news().empty());
  CHECK(sender.length() == 0.0F);
}

TEST_CASE("few values that are not zero are all sent") {
  std::vector<float> few(1'000);
  few[3] = 1.0F, few[500] = -7.0F;
  Sender sender("bits_per_value: 0.25", few.size());
  sender.round(few);
  CHECK(std::ranges::count(sender.owed(), 0.0F) == 1'000);
}

TEST_CASE("a residual of few values goes out whatever the smallest of them is") {
  Random random(11);
  constexpr std::size_t n = 20000, few = 1000;
  Sender sender("bits_per_value: 0.5", n);
  std::vector<float> added(n);
  for (std::size_t i = 0; i < few; ++i) added[i * (n / few)] = static_cast<float>(random.normal());
  added[0] = 1e-38F;
  double before = 0.0, after = 0.0;
  for (const float value : added) before += std::abs(value);
  sender.round(added);
  for (const float value : sender.owed()) after += std::abs(value);
  CHECK(after < 0.05 * before);
}

/// Σ of what a message of these values in a step of theirs leaves, beyond what integers round.
double left_of_sum(const SumStep& step, const std::vector<float>& values) {
  const double length = step.length_for(values);
  double left = 0.0;
  for (const float value : values) {
    const double magnitude = std::abs(value);
    left += magnitude < length ? magnitude : std::max(0.0, magnitude - 127.0 * length);
  }
  return left;
}

TEST_CASE("a sum goes out though one value has nearly cancelled, and so do small ones though one is huge") {
  const SumStep step({.bits = 0.5});
  Random random(13);
  for (const std::size_t count : {2U, 10U, 1000U}) {
    std::vector<float> values;
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(1.0 + random.uniform()));
    for (const float value : values) sum += value;
    CHECK(left_of_sum(step, values) == 0.0);
    for (const float odd : {1e-38F, 1e-6F, 1e-3F}) {
      CAPTURE(count);
      CAPTURE(odd);
      std::vector<float> cancelled = values, huge = values;
      cancelled.push_back(odd);
      CHECK(left_of_sum(step, cancelled) <= 0.01 * sum);
      if (count < 1000) continue;
      huge.push_back(0.5F / odd);
      CHECK(left_of_sum(step, huge) - 0.5 / odd <= 0.01 * sum);
    }
  }
}

TEST_CASE("the step of the horizon is so many root mean squares of what rounds add") {
  Sender sender("horizon: 4", 2);
  sender.round(std::vector{3.0F, 4.0F});
  CHECK(sender.length() == sent_step(4.0 * std::sqrt(12.5)));
  sender.round(std::vector{0.0F, 0.0F});
  CHECK(sender.length() == sent_step(4.0 * std::sqrt(6.25)));
}

TEST_CASE("values that are not finite are an error, whatever the rule") {
  for (const std::string rule : {"step: 1", "horizon: 3", "bits_per_value: 0.3"}) {
    std::vector<float> values(100, 1.0F);
    values[77] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_WITH_AS(Sender(rule, 100).round(values), doctest::Contains("value 77 of 100"), DivergenceError);
  }
}

TEST_CASE("what was saved goes on as it would have gone on, and what cannot have been saved is refused") {
  constexpr std::size_t n = 3'000;
  Random random(9);
  const StepRule rule = coded("bits_per_value: 0.2").rule;
  SumStep one(rule), other(rule);
  one.sent(200, n);
  RawBytes bytes;
  Archive saving = Archive::saving(bytes);
  one.state(saving);
  Archive loading = Archive::loading(bytes, "the checkpoint");
  other.state(loading);
  std::vector<std::uint32_t> of_one, of_other;
  const std::vector<float> owed = drawn(gaussian, random, n, 1.0);
  one.select(owed, of_one);
  other.select(owed, of_other);
  CHECK(of_one == of_other);
  CHECK(one.length() == other.length());

  RawBytes wrong;
  Archive nan = Archive::saving(wrong);
  double fraction = std::numeric_limits<double>::quiet_NaN();
  nan.value("fraction of values that is news", fraction);
  Archive refused = Archive::loading(wrong, "the checkpoint");
  CHECK_THROWS_WITH_AS(other.state(refused), doctest::Contains("fraction of values that is news"), DataError);
}

/// What is said of a section `sparsify:`; empty where nothing is.
std::string said_of(const std::string& yaml, bool news) {
  Config config = Config::from_text(yaml);
  read_sparsifier(config, {.selector = "topk", .news = news});
  try {
    config.document().throw_if_invalid();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("combinations that make no sense are refused with place and remedy") {
  const std::string budget = "quantiser: {name: dead_zone, bits_per_value: 0.2";
  CHECK(said_of("{" + budget + "}}", true).empty());
  for (const auto& [yaml, news, place, remedy] :
       {std::tuple{"{" + budget + "}}", false, "bits_per_value", "Leave it out"},
        {"{selector: {name: topk}, " + budget + "}}", true, "selector.name", "leave the selector out"},
        {"{selector: {dense_below: 50}, " + budget + "}}", true, "dense_below", "leave it out"},
        {"{" + budget + ", step: 0.1}}", true, "bits_per_value", "leave one of the two out"},
        {"{quantiser: {name: dead_zone, bits_per_value: 1.5}}", true, "bits_per_value", "(0, 1]"}}) {
    const std::string said = said_of(yaml, news);
    CAPTURE(said);
    CHECK(said.find(place) != std::string::npos);
    CHECK(said.find(remedy) != std::string::npos);
  }
}

TEST_CASE("where another selector chooses, or an exchange knows no news, a dead zone only rounds") {
  for (const auto& [yaml, news] : {std::pair{"{selector: {name: topk}, quantiser: {name: dead_zone}}", true},
                                   {"{selector: {name: dense}, quantiser: {name: dead_zone}}", false}}) {
    Config config = Config::from_text(yaml);
    CHECK_FALSE(read_sparsifier(config, {.selector = "topk", .news = news}).news.has_value());
  }
}

}  // namespace
}  // namespace hearsay::sum_step_test
