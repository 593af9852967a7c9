#include "runtime/exchange/participant.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/mpi/transport.hpp"

namespace hearsay {
namespace {

std::size_t ring_bytes(const ExchangePlan& plan, const Layout& layout, int ranks) {
  constexpr std::size_t for_lockstep = 2;  // a rank may be an iteration ahead of its neighbour
  return MailboxMap::capacity_for(plan.packet_bound(layout, ranks), plan.in_flight().value_or(for_lockstep));
}

/// Lockstep ranks know how many batches the others have begun.
bool counts_batches(const ExchangePlan& plan) { return plan.schedule() == Schedule::asynchronous; }

}  // namespace

ParticipantPlan::ParticipantPlan(Config root)
    : exchange_(plan_exchange(root)), topology_(plan_topology(root, *exchange_)) {
  root.throw_if_invalid();
}

std::shared_ptr<const Topology> ParticipantPlan::topology(int ranks) const {
  exchange_->require_ranks(ranks);
  return std::make_shared<const Topology>(topology_->build(ranks));
}

std::size_t Participant::window_bytes(const ExchangePlan& plan, const Layout& layout, std::size_t neighbours,
                                      int ranks) {
  const MailboxMap mailbox{.degree = static_cast<int>(neighbours), .capacity_bytes = ring_bytes(plan, layout, ranks)};
  return mailbox.total_bytes() + (counts_batches(plan) ? JobCount::bytes(neighbours, ranks) : 0);
}

Participant::Participant(mpi::CommunicatorHandle ranks, std::shared_ptr<const Topology> topology,
                         const ExchangePlan& plan, Parameters& replica, ParticipantOptions options)
    : Participant(std::make_unique<mpi::Transport>(ranks), std::move(topology), plan, replica, std::move(options)) {}

Participant::Participant(std::unique_ptr<Transport> transport, std::shared_ptr<const Topology> topology,
                         const ExchangePlan& plan, Parameters& replica, ParticipantOptions options)
    : transport_(std::move(transport)),
      topology_(std::move(topology)),
      neighbourhood_(topology_->neighbourhood(transport_->rank())),
      replica_(replica),
      options_(std::move(options)),
      sharded_(plan.laws().sharded),
      ledger_(neighbourhood_.neighbours.size(), replica.layout.count(), transport_->clock()),
      peers_(transport_->open_peers({.idle = [this] { serve(); },
                                     .sent =
                                         [this](int to, const Message& message) {
                                           ledger_.message_sent(neighbourhood_.slot(to),
                                                                {.payload_bytes = message.payload_bytes,
                                                                 .index_bytes = message.index_bytes},
                                                                message.bytes.size());
                                         }})),
      memory_(&transport_->open_memory(
          window_bytes(plan, replica.layout, neighbourhood_.neighbours.size(), topology_->ranks()) +
              failure_bytes(options_, topology_->ranks()),
          options_.failure_timeout.count() > 0 ? Deaths::others_go_on : Deaths::end_the_job)),
      mailbox_(*memory_, *topology_, neighbourhood_.rank, ring_bytes(plan, replica.layout, topology_->ranks()), ledger_,
               plan.in_flight() ? Mailbox::Tails::at_once : Mailbox::Tails::may_wait),
      count_(counts_batches(plan)
                 ? std::make_unique<JobCount>(*memory_, *topology_, neighbourhood_.rank,
                                              ring_bytes(plan, replica.layout, topology_->ranks()), ledger_)
                 : nullptr),
      failures_(make_failure_detector(plan)),
      pulse_(make_pulse(plan)),
      engine_(transport_->make_engine([this] { return progress(); })) {
  ledger_.start_together();  // the memories were opened together, a moment ago
  if (options_.start_from_rank_0) broadcast_replica();
  exchange_ = build_exchange(plan, context());
}

std::unique_ptr<FailureDetector> Participant::make_failure_detector(const ExchangePlan& plan) {
  if (options_.failure_timeout.count() == 0) return nullptr;
  if (!plan.survives_deaths()) throw std::logic_error("participant: this exchange does not survive deaths");
  const int ranks = topology_->ranks();
  std::vector<std::size_t> places = places_behind_mailboxes(plan);
  std::vector<int> slots(static_cast<std::size_t>(ranks), -1);
  for (std::size_t e = 0; e < neighbourhood_.neighbours.size(); ++e)
    slots[static_cast<std::size_t>(neighbourhood_.neighbours[e])] = static_cast<int>(e);
  return std::make_unique<FailureDetector>(*memory_, neighbourhood_.rank, std::move(places), std::move(slots),
                                           options_.failure_timeout, ledger_);
}

std::unique_ptr<Pulse> Participant::make_pulse(const ExchangePlan& plan) {
  if (options_.stall_timeout.count() == 0 || failures_) return nullptr;
  return std::make_unique<Pulse>(*memory_, neighbourhood_.rank, places_behind_mailboxes(plan), options_.stall_timeout,
                                 transport_->clock());
}

/// Where in each rank's memory its mailbox and counts end.
std::vector<std::size_t> Participant::places_behind_mailboxes(const ExchangePlan& plan) const {
  const int ranks = topology_->ranks();
  std::vector<std::size_t> places;
  for (int r = 0; r < ranks; ++r)
    places.push_back(window_bytes(plan, replica_.layout, static_cast<std::size_t>(topology_->degree(r)), ranks));
  return places;
}

/// On the communication thread: nothing is sent to the dead any more, and nobody waits for them.
void Participant::drop_dead() {
  const auto deaths = failures_->deaths();
  for (; dropped_ < static_cast<int>(deaths.size()); ++dropped_) {
    const int rank = deaths[static_cast<std::size_t>(dropped_)].rank;
    const auto at = std::ranges::find(neighbourhood_.neighbours, rank);
    if (at == neighbourhood_.neighbours.end()) continue;
    mailbox_.drop(static_cast<std::size_t>(at - neighbourhood_.neighbours.begin()));
    if (count_) count_->drop(rank);
  }
}

/// On the computing thread: a dead neighbour's weight goes back to this rank, so that W is doubly stochastic on the
/// living.
void Participant::lose_dead() {
  if (!failures_ || failures_->dead() == lost_) return;
  const auto deaths = failures_->deaths();
  for (; lost_ < static_cast<int>(deaths.size()); ++lost_) {
    const auto at = std::ranges::find(neighbourhood_.neighbours, deaths[static_cast<std::size_t>(lost_)].rank);
    if (at == neighbourhood_.neighbours.end()) {
      exchange_->lose(std::nullopt);
      continue;
    }
    const auto edge = static_cast<std::size_t>(at - neighbourhood_.neighbours.begin());
    neighbourhood_.self_weight += neighbourhood_.weights[edge];
    neighbourhood_.weights[edge] = 0.0;
    exchange_->lose(edge);
  }
}

void Participant::start(Iteration k) {
  lose_dead();
  if (pulse_) pulse_->moved();
  if (count_) count_->begin_batch();
  exchange_->start(k);
}

double Participant::job_iterations(Iteration k) const {
  return count_ ? static_cast<double>(count_->total()) / topology_->ranks() : static_cast<double>(k);
}

bool Participant::progress() {
  if (pulse_) pulse_->progress();
  bool any = failures_ && failures_->progress();
  if (failures_ && failures_->dead() != dropped_) drop_dead();
  any = (count_ && count_->progress()) || any;
  return mailbox_.progress() || any;
}

ExchangeContext Participant::context() {
  return {.neighbourhood = neighbourhood_,
          .replica = replica_,
          .mailbox = mailbox_,
          .engine = *engine_,
          .ledger = ledger_,
          .peers = peers_,
          .iterations_per_epoch = options_.iterations_per_epoch,
          .step = options_.step,
          .interrupted = options_.interrupted};
}

void Participant::broadcast_replica() {
  std::vector<float> x = fetched(*replica_.device, replica_.values.span());
  engine_->run([&] { transport_->broadcast(std::as_writable_bytes(std::span(x)), 0); });
  replica_.device->put(std::as_bytes(std::span(x)), replica_.values.span());
}

void Participant::all_gradients_ready() {
  if (!layer_wise()) return;
  for (std::size_t s = replica_.layout.count(); s-- > 0;) gradient_ready(static_cast<SegmentId>(s));
}

void Participant::serve() {
  progress();
  if (options_.interrupted()) throw WaitInterrupted();
}

void Participant::flush() {
  engine_->wait_until([this] { return !mailbox_.sending(); });
}

void Participant::settle(const std::function<void()>& barrier) {
  const auto meet = [&] { barrier ? barrier() : transport_->barrier(); };
  lose_dead();
  flush();
  engine_->run([&] {
    meet();
    progress();
    meet();
  });
  exchange_->drain();
}

// What an exchange sends again was counted before.
void Participant::state(Archive& archive) {
  flush();
  exchange_->state(archive);
  flush();
  engine_->run([&] {
    if (count_) count_->state(archive);
    ledger_.state(archive);
  });
}

void Participant::begin_at(Iteration k, const ExchangePlan& plan, std::span<const float> owed) {
  exchange_.reset();
  exchange_ = build_exchange(plan, context());
  if (count_) engine_->run([&] { count_->begin_at(static_cast<std::uint64_t>(k)); });
  if (!owed.empty()) exchange_->take_residual(owed);
}

void Participant::leave() {
  exchange_.reset();
  engine_.reset();
}

}  // namespace hearsay
