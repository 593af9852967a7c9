// An exchange whose passes are the processor's, for a replica that lives elsewhere: it works on a mirror.
//   start:    the exchange, with x as `stepped` left it in the mirror;  x ← mirror, where `start` may move it
//   finish:   g → mirror;  the exchange;  x, g ← mirror
//   stepped:  x → mirror;  the exchange;  x ← mirror
// Gradients are not announced segment by segment: it learns of all of them in `finish`.
// Cost per iteration: x crosses the bus three times and g twice, 20 n bytes, whatever travels between ranks; where
// `start` may move x once more.
#include "runtime/exchange/exchange.hpp"

namespace hearsay {
namespace {

class Mirrored final : public Exchange, public IdleWork, public ServedModel {
 public:
  Mirrored(const ExchangePlan& plan, const ExchangeContext& context)
      : there_(context.replica),
        mirror_(context.replica.layout),
        moves_at_start_(plan.moves_at_start()),
        exchange_(build(plan, context)),
        of_exchange_(exchange_->capabilities()) {}

  void start(Iteration k) override {
    exchange_->start(k);
    if (moves_at_start_) put_x();
  }
  void finish(Iteration k) override {
    fetch(there_.gradients.span(), mirror_.gradients.span());
    exchange_->finish(k);
    put_g();
    put_x();
  }
  void stepped(Iteration k) override {
    fetch_x();
    exchange_->stepped(k);
    put_x();
  }
  bool idle(Iteration k) override {
    const bool steps = of_exchange_.idle_work->idle(k);
    put_g();
    put_x();
    return steps;
  }
  void end() override {
    of_exchange_.idle_work->end();
    put_x();
  }
  void drain() override {
    of_exchange_.idle_work->drain();
    put_x();
  }
  void state(Archive& archive) override {
    archive.values("mirror", mirror_.values.span());
    exchange_->state(archive);
  }
  void x_is_of_servers() override {
    fetch_x();
    of_exchange_.served_model->x_is_of_servers();
  }
  Capabilities capabilities() override {
    return {.measures = of_exchange_.measures,
            .residual = of_exchange_.residual,
            .idle_work = of_exchange_.idle_work != nullptr ? this : nullptr,
            .served_model = of_exchange_.served_model != nullptr ? this : nullptr};
  }

 private:
  void fetch(std::span<const float> values, std::span<float> here) {
    there_.device->fetch(values, std::as_writable_bytes(here));
    there_.device->wait();
  }
  void fetch_x() { fetch(there_.values.span(), mirror_.values.span()); }
  void put_x() { there_.device->put(std::as_bytes(mirror_.values.span()), there_.values.span()); }
  void put_g() { there_.device->put(std::as_bytes(mirror_.gradients.span()), there_.gradients.span()); }
  std::unique_ptr<Exchange> build(const ExchangePlan& plan, const ExchangeContext& context) {
    fetch_x();
    return plan.build(context.with(mirror_));
  }

  Parameters& there_;
  Parameters mirror_;
  const bool moves_at_start_;
  std::unique_ptr<Exchange> exchange_;
  const Capabilities of_exchange_;
};

}  // namespace

std::vector<std::string> ExchangePlan::warnings_on_gpus() const {
  if (runs_on_gpus()) return {};
  return {
      "train.device: a GPU has no passes for this exchange with these options: it works on a mirror in the "
      "processor's memory, and 20 bytes a value cross the bus in every iteration, whatever is sent. "
      "docs/guide/gpu.md says what lives on a GPU"};
}

std::unique_ptr<Exchange> build_exchange(const ExchangePlan& plan, const ExchangeContext& context) {
  if (plan.runs_on(context.device())) return plan.build(context);
  return std::make_unique<Mirrored>(plan, context);
}

}  // namespace hearsay
