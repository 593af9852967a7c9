// A policy that the program brings: it decides, the options that all policies share stay in force, and it takes nobody
// else's place.
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "base/error.hpp"
#include "trigger/trigger.hpp"

namespace own_trigger_test {

using namespace hearsay;

namespace {

/// Fires for one segment only.
class OnlySegment final : public Trigger {
 public:
  explicit OnlySegment(SegmentId segment) : segment_(segment) {}
  std::unique_ptr<Trigger> for_segments(std::size_t) const override { return std::make_unique<OnlySegment>(*this); }
  double threshold(const Observation& observation) const override {
    return observation.segment == segment_ ? 0.0 : std::numeric_limits<double>::infinity();
  }

 private:
  SegmentId segment_;
};

Config with_own(const std::string& yaml) {
  Config config = Config::from_text(yaml);
  config.document().provide(provided_trigger, ProvidedTrigger(std::make_shared<const OnlySegment>(1)));
  return config;
}

}  // namespace

TEST_CASE("the program's own policy decides, within the options that all policies share") {
  Config config = with_own("warmup_iterations: 1\nmaximum_silence: 3\n");
  const TriggerPlan plan(config);
  config.document().throw_if_invalid();
  CHECK(config.document().dump().find("name: own") != std::string::npos);
  const std::vector<std::size_t> lengths{4, 4};
  const std::vector<double> norms{1.0, 1.0};
  TriggerEngine engine(plan, lengths, norms);
  std::vector<std::uint8_t> fired(2);
  for (Iteration k = 0; k < 7; ++k) {
    engine.decide(k, norms, {}, fired);
    CHECK(fired[1] == 1);
    CHECK(fired[0] == (k % 3 == 0 ? 1 : 0));
  }
}

TEST_CASE("beside the program's own policy no other can be named, and without one 'own' is none") {
  Config both = with_own("name: adaptive\n");
  static_cast<void>(TriggerPlan(both));
  CHECK_THROWS_AS(both.document().throw_if_invalid(), ConfigError);
  Config none = Config::from_text("name: own\n");
  static_cast<void>(TriggerPlan(none));
  CHECK_THROWS_AS(none.document().throw_if_invalid(), ConfigError);
}

TEST_CASE("where the program's own policy takes the place of a chosen one, that one's keys are dropped with a note") {
  Config config = with_own("name: constant\nthreshold: 3\nmaximum_silence: 5\n");
  config.document().override_with("name=own");
  config.document().rehearse([](Config rehearsed) {
    static_cast<void>(TriggerPlan(rehearsed));
    rehearsed.document().throw_if_invalid();
  });
  const TriggerPlan plan(config);
  CHECK_NOTHROW(config.document().throw_if_invalid());
  CHECK(plan.maximum_silence == 5);
  CHECK(config.document().notes().size() == 1);
}

}  // namespace own_trigger_test
