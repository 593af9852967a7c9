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

class Mirrored final : public Exchange {
 public:
  Mirrored(const ExchangePlan& plan, const ExchangeContext& context)
      : there_(context.replica),
        mirror_(context.replica.layout),
        moves_at_start_(plan.moves_at_start()),
        exchange_(build(plan, context)) {}

  void start(Iteration k) override {
    exchange_->start(k);
    if (moves_at_start_) put(mirror_.values.span(), there_.values.span());
  }
  void finish(Iteration k) override {
    fetch(there_.gradients.span(), mirror_.gradients.span());
    exchange_->finish(k);
    put(mirror_.gradients.span(), there_.gradients.span());
    put(mirror_.values.span(), there_.values.span());
  }
  void stepped(Iteration k) override {
    fetch(there_.values.span(), mirror_.values.span());
    exchange_->stepped(k);
    put(mirror_.values.span(), there_.values.span());
  }
  bool idle(Iteration k) override {
    const bool steps = exchange_->idle(k);
    put(mirror_.gradients.span(), there_.gradients.span());
    put(mirror_.values.span(), there_.values.span());
    return steps;
  }
  void end() override {
    exchange_->end();
    put(mirror_.values.span(), there_.values.span());
  }
  void drain() override {
    exchange_->drain();
    put(mirror_.values.span(), there_.values.span());
  }
  std::span<const double> thresholds() const override { return exchange_->thresholds(); }
  std::span<const double> norms() const override { return exchange_->norms(); }
  std::span<const std::uint8_t> events() const override { return exchange_->events(); }
  void add_residual(std::span<float> block) const override { exchange_->add_residual(block); }
  void take_residual(std::span<const float> sum) override { exchange_->take_residual(sum); }
  void lose(std::optional<std::size_t> edge) override { exchange_->lose(edge); }
  void begin_edge(std::size_t edge) override { exchange_->begin_edge(edge); }
  bool edge_has_begun(std::size_t edge) const override { return exchange_->edge_has_begun(edge); }
  void admit_edge(std::size_t edge) override { exchange_->admit_edge(edge); }
  void state(Archive& archive) override {
    archive.values("mirror", mirror_.values.span());
    exchange_->state(archive);
  }
  void x_is_of_servers() override {
    fetch(there_.values.span(), mirror_.values.span());
    exchange_->x_is_of_servers();
  }
  std::vector<Share> shares() const override { return exchange_->shares(); }

 private:
  void fetch(std::span<const float> values, std::span<float> here) {
    there_.device->fetch(values, std::as_writable_bytes(here));
    there_.device->wait();
  }
  void put(std::span<const float> here, std::span<float> values) { there_.device->put(std::as_bytes(here), values); }
  std::unique_ptr<Exchange> build(const ExchangePlan& plan, const ExchangeContext& context) {
    fetch(there_.values.span(), mirror_.values.span());
    return plan.build({.topology = context.topology,
                       .neighbourhood = context.neighbourhood,
                       .replica = mirror_,
                       .mailbox = context.mailbox,
                       .engine = context.engine,
                       .ledger = context.ledger,
                       .peers = context.peers,
                       .iterations_per_epoch = context.iterations_per_epoch,
                       .steps = context.steps,
                       .interrupted = context.interrupted});
  }

  Parameters& there_;
  Parameters mirror_;
  const bool moves_at_start_;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace

std::unique_ptr<Exchange> build_exchange(const ExchangePlan& plan, const ExchangeContext& context) {
  if (plan.runs_on(context.device())) return plan.build(context);
  return std::make_unique<Mirrored>(plan, context);
}

}  // namespace hearsay
