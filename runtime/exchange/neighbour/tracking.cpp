#include "runtime/exchange/neighbour/tracking.hpp"

#include "runtime/exchange/neighbour/augmented.hpp"

namespace hearsay {
namespace {

std::size_t tracker(std::size_t n) { return n; }

class Tracking final : public Exchange, public Measures {
 public:
  Tracking(const ExchangeContext& context, float momentum)
      : context_(context),
        link_(context, tracker, 0.0F),
        momentum_(momentum),
        velocity_(context.replica.layout.size()) {}

  void start(Iteration k) override {
    link_.take_x();
    link_.send(k);
  }
  void finish(Iteration k) override {
    link_.mix(k);
    const PhaseTimer timer(context_.ledger, Phase::mix);
    const Layout& layout = context_.replica.layout;
    for (SegmentId s = 0; s < layout.count(); ++s)
      track(link_.beside(s), context_.replica.gradients.segment(layout[s]), velocity_.segment(layout[s]));
  }
  void state(Archive& archive) override {
    link_.state(archive);
    archive.values("gradient or momentum before", velocity_.span());
  }
  Capabilities capabilities() override { return {.measures = this}; }
  std::span<const std::uint8_t> events() const override { return link_.events(); }

 private:
  void track(std::span<float> y, std::span<float> g, std::span<float> u) const {
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float before = u[i];
      u[i] = momentum_ * before + g[i];
      y[i] += u[i] - before;
      g[i] = y[i];
    }
  }

  ExchangeContext context_;
  AugmentedLink link_;
  float momentum_;       // β
  FloatBlock velocity_;  // u
};

}  // namespace

std::unique_ptr<ExchangePlan> tracking_plan(Config& exchange, double momentum) {
  read_lockstep(
      exchange,
      "; trackers that are mixed at different times no longer sum to the gradients or momenta; leave it at lockstep");
  return augmented_plan({.beside = tracker,
                         .blocks = 1,
                         .words = 10.0,
                         .keeps_mass = true,
                         .build = [momentum](const ExchangeContext& context) -> std::unique_ptr<Exchange> {
                           return std::make_unique<Tracking>(context, static_cast<float>(momentum));
                         }});
}

}  // namespace hearsay
