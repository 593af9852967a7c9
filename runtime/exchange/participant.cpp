#include "runtime/exchange/participant.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/exchange/segments.hpp"

namespace hearsay {
namespace {

/// Where edges may begin anew, a whole model fits.
std::size_t ring_bytes(const ExchangePlan& plan, const Layout& layout, int ranks, int spares) {
  constexpr std::size_t for_lockstep = 2;  // a rank may be an iteration ahead of its neighbour
  const std::size_t packet =
      std::max(plan.packet_bound(layout, ranks), spares > 0 ? whole_model_bytes(layout) : std::size_t{0});
  return MailboxMap::capacity_for(packet, plan.in_flight().value_or(for_lockstep));
}

DeathOptions deaths(const ParticipantOptions& options) {
  return {.failure_timeout = options.failure_timeout, .stall_timeout = options.stall_timeout, .vacant = options.vacant};
}

void require_fitting(const Transport& transport, const Topology& topology, const ExchangePlan& plan,
                     const ParticipantOptions& options) {
  if (transport.ranks() != topology.ranks() + options.spares)
    throw std::logic_error("participant: more or fewer ranks than vertices");
  const bool may_die = options.failure_timeout.count() > 0;
  if (!may_die && options.spares > 0) throw std::logic_error("participant: spares are of use only where ranks may die");
  if (may_die && !plan.survives_deaths()) throw std::logic_error("participant: this exchange does not survive deaths");
}

MemoryMap memory_map(const ExchangePlan& plan, const Layout& layout, int ranks, int spares) {
  return {.ring_bytes = ring_bytes(plan, layout, ranks, spares),
          .counts_batches = plan.schedule() == Schedule::asynchronous,
          .processes = ranks + spares,
          .spares = spares};
}

std::unique_ptr<Communication> communicate(std::unique_ptr<Transport> transport, const Edges& edges,
                                           const ExchangePlan& plan, const Parameters& replica,
                                           const ParticipantOptions& options) {
  require_fitting(*transport, edges.topology(), plan, options);
  const bool waits = plan.schedule() == Schedule::lockstep;
  return std::make_unique<Communication>(
      std::move(transport), edges,
      Communication::Options{.map = memory_map(plan, replica.layout, edges.topology().ranks(), options.spares),
                             .segments = replica.layout.count(),
                             .tails = plan.in_flight() ? Mailbox::Tails::at_once : Mailbox::Tails::may_wait,
                             .haste = waits ? Haste::somebody_waits : Haste::nobody_waits,
                             .reads_mailbox = plan.runs_on(*replica.device) ? replica.device.get() : nullptr,
                             .deaths = deaths(options),
                             .others_began = options.others_began,
                             .interrupted = options.interrupted});
}

}  // namespace

ParticipantPlan::ParticipantPlan(Config root)
    : exchange_(plan_exchange(root)), topology_(plan_topology(root, *exchange_)) {
  root.document().throw_if_invalid();
}

std::shared_ptr<const Topology> ParticipantPlan::topology(int ranks) const {
  exchange_->require_ranks(ranks);
  return std::make_shared<const Topology>(topology_->build(ranks));
}

std::size_t window_bytes(const ExchangePlan& plan, const Layout& layout, std::size_t neighbours, int ranks,
                         int spares) {
  return memory_map(plan, layout, ranks, spares).behind_counts(neighbours);
}

std::size_t failure_bytes(const ParticipantOptions& options, int ranks) {
  return deaths(options).bytes(ranks + options.spares, options.spares);
}

Participant::Participant(std::unique_ptr<Transport> transport, std::shared_ptr<const Topology> topology,
                         const ExchangePlan& plan, Parameters& replica, ParticipantOptions options)
    : edges_(std::move(topology), transport->rank()),
      replica_(replica),
      options_(std::move(options)),
      steps_(replica.layout, options_.step, plan.laws().measures_steps),
      communication_(communicate(std::move(transport), edges_, plan, replica, options_)),
      finite_(replica, edges_, *communication_, exchange_),
      service_({.replica = replica,
                .edges = edges_,
                .communication = *communication_,
                .finite = finite_,
                .steps = steps_,
                .exchange = exchange_,
                .interrupted = options_.interrupted,
                .follow = [this] { follow_changes(); },
                .sharded = plan.laws().sharded}) {
  const auto build = [this](const ExchangePlan& of) { exchange_ = build_exchange(of, context()); };
  if (options_.start_from_rank_0) broadcast_replica();
  if (members().process() < edges_.topology().ranks())
    build(plan);
  else
    spare_ = std::make_unique<Spare>(replica_, edges_, *communication_, options_, build);
}

void Participant::broadcast_replica() {
  std::vector<float> x = fetched(*replica_.device, replica_.values.span());
  communication_->broadcast(std::as_writable_bytes(std::span(x)), 0);
  replica_.device->put(std::as_bytes(std::span(x)), replica_.values.span());
}

ExchangeContext Participant::context() {
  return {.topology = edges_.topology(),
          .neighbourhood = edges_.neighbourhood(),
          .edges = edges_,
          .replica = replica_,
          .mailbox = communication_->mailbox(),
          .engine = communication_->engine(),
          .ledger = communication_->ledger(),
          .peers = communication_->peers(),
          .iterations_per_epoch = options_.iterations_per_epoch,
          .steps = steps_.all(),
          .interrupted = options_.interrupted};
}

/// What has happened to the neighbours, and whether edges that have begun mix.
void Participant::follow_changes() {
  members().follow(edges_, communication_->engine());
  admit_edges();
}

bool Participant::admit_edges() {
  const bool any = edges_.admit();
  if (any && spare_) spare_->note_mixing();
  return any;
}

void Participant::start(Iteration k) {
  follow_changes();
  members().begin_iteration();
  const Iteration of_exchange = service_.begin(k);
  finite_.during(k, [&] { exchange_->start(of_exchange); });
}

void Participant::gradient_ready(SegmentId segment) {
  finite_.during(service_.now(), [&] { exchange_->gradient_ready(segment); });
}

void Participant::finish(Iteration k) {
  steps_.require_rates();
  finite_.during(k, [&] { exchange_->finish(service_.iteration(k)); });
}

// Looked at as the optimizer has left it, before it has come to others.
void Participant::stepped(Iteration k) {
  finite_.stepped(k);
  finite_.during(k, [&] { exchange_->stepped(service_.iteration(k)); });
}

void Participant::settle(const std::function<void()>& barrier) {
  if (!barrier) service_.await_all();
  take_in(barrier);
  if (!barrier) service_.finish_serving([this] { take_in({}); });
  service_.note_settled();
  if (barrier) return finite_.require_here();
  finite_.require();
}

void Participant::take_in(const std::function<void()>& barrier) {
  const auto meet = [&] { barrier ? barrier() : communication_->barrier(); };
  const auto drain = [this] {
    if (IdleWork* const work = exchange_->capabilities().idle_work) work->drain();
  };
  follow_changes();
  communication_->flush();
  communication_->engine().run([&] {
    meet();
    communication_->progress();
    meet();
  });
  drain();
  if (admit_edges()) drain();          // what the other ends have sent that knew before that they mix
  communication_->engine().run(meet);  // else a rank would take in what the next ones send that go on from here
}

// What an exchange sends again was counted before.
void Participant::state(Archive& archive) {
  if (!archive.loads()) finite_.require_here();
  service_.state(archive);
  communication_->flush();
  steps_.state(archive);
  exchange_->state(archive);
  communication_->flush();
  communication_->engine().run([&] {
    if (JobCount* const count = members().count()) count->state(archive);
    ledger().state(archive);
  });
}

void Participant::begin_at(Iteration k, const ExchangePlan& plan, std::span<const float> owed) {
  exchange_.reset();
  exchange_ = build_exchange(plan, context());
  if (JobCount* const count = members().count())
    communication_->engine().run([&] { count->begin_at(static_cast<std::uint64_t>(k)); });
  service_.begin_at(k);
  Residual* const residual = exchange_->capabilities().residual;
  if (residual != nullptr && !owed.empty()) residual->take_residual(owed);
}

void Participant::leave() {
  exchange_.reset();
  communication_->leave();
}

}  // namespace hearsay
