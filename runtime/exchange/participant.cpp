#include "runtime/exchange/participant.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "runtime/collectives/gather.hpp"
#include "runtime/exchange/segments.hpp"
#include "runtime/mpi/transport.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

/// Of a spare, which has no place: of nobody.
Neighbourhood neighbourhood_of(const Topology& topology, int process) {
  if (process < topology.ranks()) return topology.neighbourhood(process);
  Neighbourhood nobody;
  nobody.rank = process;
  return nobody;
}

/// Where edges may begin anew, a whole model fits.
std::size_t ring_bytes(const ExchangePlan& plan, const Layout& layout, int ranks, int spares) {
  constexpr std::size_t for_lockstep = 2;  // a rank may be an iteration ahead of its neighbour
  const std::size_t packet =
      std::max(plan.packet_bound(layout, ranks), spares > 0 ? whole_model_bytes(layout) : std::size_t{0});
  return MailboxMap::capacity_for(packet, plan.in_flight().value_or(for_lockstep));
}

void require_step(const StepResponse& step, const std::string& of) {
  const double eta = step.learning_rate.value_or(0.0);
  if (!(eta >= 0.0) || !std::isfinite(eta))
    throw ConfigError("the learning rate of " + of + " is " + std::to_string(eta) + "; it is a number from 0 up");
  if (!(step.momentum >= 0.0 && step.momentum < 1.0))
    throw ConfigError("the momentum of " + of + " is " + std::to_string(step.momentum) +
                      "; it is a number from 0 up and below 1");
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

std::size_t Participant::window_bytes(const ExchangePlan& plan, const Layout& layout, std::size_t neighbours, int ranks,
                                      int spares) {
  const std::size_t slots = neighbours + static_cast<std::size_t>(spares);
  const MailboxMap mailbox{.degree = static_cast<int>(slots),
                           .capacity_bytes = ring_bytes(plan, layout, ranks, spares)};
  return mailbox.total_bytes() + (counts_batches(plan) ? JobCount::bytes(slots, ranks + spares) : 0);
}

Participant::Participant(mpi::CommunicatorHandle ranks, std::shared_ptr<const Topology> topology,
                         const ExchangePlan& plan, Parameters& replica, ParticipantOptions options)
    : Participant(std::make_unique<mpi::Transport>(ranks), std::move(topology), plan, replica, std::move(options)) {}

Participant::Participant(std::unique_ptr<Transport> transport, std::shared_ptr<const Topology> topology,
                         const ExchangePlan& plan, Parameters& replica, ParticipantOptions options)
    : transport_(std::move(transport)),
      topology_(std::move(topology)),
      process_(transport_->rank()),
      whole_neighbourhood_(neighbourhood_of(*topology_, process_)),
      neighbourhood_(whole_neighbourhood_),
      replica_(replica),
      options_(std::move(options)),
      places_(*topology_, options_.spares),
      sharded_(plan.laws().sharded),
      measures_steps_(plan.laws().measures_steps),
      steps_(replica.layout.count(), options_.step),
      ledger_(places_.neighbour_slots(process_), replica.layout.count(), transport_->clock()),
      peers_(transport_->open_peers({.idle = [this] { serve(); },
                                     .sent =
                                         [this](int to, const Message& message) {
                                           if (!counts_messages_) return;
                                           ledger_.message_sent(neighbourhood_.slot(to),
                                                                {.payload_bytes = message.payload_bytes,
                                                                 .index_bytes = message.index_bytes},
                                                                message.bytes.size());
                                         }})),
      memory_(&transport_->open_memory(
          window_bytes(plan, replica.layout, places_.neighbour_slots(process_), places_.count(), options_.spares) +
              failure_bytes(options_, places_.count()),
          MemoryUse{.deaths = options_.failure_timeout.count() > 0 ? Deaths::others_go_on : Deaths::end_the_job,
                    .haste = plan.schedule() == Schedule::lockstep ? Haste::somebody_waits : Haste::nobody_waits})),
      memory_pin_(plan.runs_on(*replica.device) ? replica.device->pin(memory_->own()) : nullptr),
      mailbox_(*memory_, places_, process_, ring_bytes(plan, replica.layout, places_.count(), options_.spares), ledger_,
               plan.in_flight() ? Mailbox::Tails::at_once : Mailbox::Tails::may_wait),
      count_(counts_batches(plan) ? std::make_unique<JobCount>(
                                        *memory_, places_, process_,
                                        ring_bytes(plan, replica.layout, places_.count(), options_.spares), ledger_)
                                  : nullptr),
      failures_(make_failure_detector(plan)),
      pulse_(make_pulse(plan)),
      attached_(failures_ ? neighbourhood_.neighbours : std::vector<int>{}),
      watch_(replica),
      engine_(transport_->make_engine([this] { return progress(); })) {
  for (const int neighbour : attached_) ends_.push_back({.process = neighbour});
  ledger_.start_together();  // the memories were opened together, a moment ago
  if (options_.start_from_rank_0) broadcast_replica();
  if (!places_.is_spare(process_)) exchange_ = build_exchange(plan, context());
}

std::unique_ptr<FailureDetector> Participant::make_failure_detector(const ExchangePlan& plan) {
  if (transport_->ranks() != places_.processes())
    throw std::logic_error("participant: more or fewer ranks than places");
  if (options_.failure_timeout.count() == 0) {
    if (options_.spares > 0) throw std::logic_error("participant: spares are of use only where ranks may die");
    return nullptr;
  }
  if (!plan.survives_deaths()) throw std::logic_error("participant: this exchange does not survive deaths");
  std::vector<std::size_t> rows;
  std::vector<int> slots(static_cast<std::size_t>(places_.processes()), -1);
  for (int r = 0; r < places_.processes(); ++r)
    rows.push_back(window_bytes(plan, replica_.layout, places_.neighbour_slots(r), places_.count(), options_.spares));
  for (std::size_t e = 0; e < neighbourhood_.neighbours.size(); ++e)
    slots[static_cast<std::size_t>(neighbourhood_.neighbours[e])] = static_cast<int>(e);
  return std::make_unique<FailureDetector>(*memory_, process_, std::move(rows), std::move(slots),
                                           options_.failure_timeout, ledger_, options_.spares);
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
    const int process = deaths[static_cast<std::size_t>(dropped_)].rank;
    const auto at = std::ranges::find(attached_, process);
    if (at == attached_.end()) continue;
    mailbox_.drop(static_cast<std::size_t>(at - attached_.begin()));
    if (count_) count_->drop(process);
  }
}

/// On the computing thread: what has happened to the neighbours, and whether edges that have begun mix.
void Participant::follow_changes() {
  if (!failures_) return;
  if (const int changes = failures_->changes(); changes != followed_) {
    followed_ = changes;
    lose_dead();
    for (std::size_t e = 0; e < ends_.size(); ++e) {
      const int holder = failures_->holder(neighbourhood_.neighbours[e]);
      if (holder == ends_[e].process || !failures_->alive(holder)) continue;
      if (!ends_[e].lost) lose_edge(e);  // its end is dead, which this rank has not heard yet
      attach(e, holder);
    }
  }
  if (exchange_) admit_edges();
}

/// A dead neighbour's weight goes back to this rank, so that W is doubly stochastic on the living.
void Participant::lose_dead() {
  const auto deaths = failures_->deaths();
  for (; lost_ < static_cast<int>(deaths.size()); ++lost_) {
    const int process = deaths[static_cast<std::size_t>(lost_)].rank;
    const auto at = std::ranges::find(ends_, process, &EdgeEnd::process);
    if (at != ends_.end() && !at->lost)
      lose_edge(static_cast<std::size_t>(at - ends_.begin()));
    else if (exchange_)
      exchange_->lose(std::nullopt);
  }
}

void Participant::lose_edge(std::size_t edge) {
  ends_[edge].lost = true;
  ends_[edge].begins = false;
  weigh();
  if (exchange_) exchange_->lose(edge);
}

/// The edge leads to another process from now on, and begins anew.
void Participant::attach(std::size_t edge, int process) {
  ends_[edge] = {.process = process, .begins = true};
  engine_->run([&] {
    mailbox_.attach(edge, process);
    if (count_) count_->attach(edge, process);
    attached_[edge] = process;
    if (failures_->alive(process)) return;
    mailbox_.drop(edge);
    if (count_) count_->drop(process);
  });
  if (exchange_) exchange_->begin_edge(edge);
}

/// Edges whose ends know the same pair of copies mix from now on, with their weight. True if there are any.
bool Participant::admit_edges() {
  bool any = false;
  for (std::size_t e = 0; e < ends_.size(); ++e) {
    if (!ends_[e].begins || !exchange_->edge_has_begun(e)) continue;
    ends_[e].begins = false;
    weigh();
    exchange_->admit_edge(e);
    any = true;
  }
  if (any && places_.is_spare(process_) && !mixes_since_s_)
    mixes_since_s_ = std::chrono::duration<double>(ledger_.since_start()).count();
  return any;
}

/// The row of W: an edge that does not mix, or not yet, leaves its weight to this rank.
void Participant::weigh() {
  neighbourhood_.self_weight = whole_neighbourhood_.self_weight;
  for (std::size_t e = 0; e < ends_.size(); ++e) {
    const bool mixes = !ends_[e].lost && !ends_[e].begins;
    neighbourhood_.weights[e] = mixes ? whole_neighbourhood_.weights[e] : 0.0;
    if (!mixes) neighbourhood_.self_weight += whole_neighbourhood_.weights[e];
  }
}

/// Whether a spare is not needed any more. Ranks that take part leave when all is done and not before.
bool Participant::over() const {
  if (options_.interrupted()) return true;
  const auto all = failures_->participants();
  return all.empty() || std::ranges::any_of(all, [this](int rank) { return failures_->has_left(rank); });
}

/// On the computing thread: this process works at `place` from now on.
void Participant::stand_at(int place) {
  whole_neighbourhood_ = neighbourhood_ = topology_->neighbourhood(place);
  for (const int neighbour : neighbourhood_.neighbours) ends_.push_back({.process = neighbour, .lost = true});
  lost_ = static_cast<int>(failures_->deaths().size());
  weigh();
  engine_->run([&] {
    mailbox_.stand_at(place);
    if (count_) count_->stand_at(place);
    attached_ = neighbourhood_.neighbours;
  });
  for (std::size_t e = 0; e < ends_.size(); ++e)
    if (const int holder = failures_->holder(neighbourhood_.neighbours[e]); failures_->alive(holder)) attach(e, holder);
}

/// What has come first, with all of a neighbour's model; nothing before the job's count has come, too.
std::optional<std::span<const std::byte>> Participant::first_model() const {
  if (count_ && !count_->has_heard()) return std::nullopt;
  for (std::size_t e = 0; e < ends_.size(); ++e)
    if (auto packet = ends_[e].begins ? mailbox_.front(e) : std::nullopt) return packet;
  return std::nullopt;
}

void Participant::compute_for(double seconds) {
  const double rest = engine_->still_to_pass(seconds);
  ledger_.computed_while_waiting(seconds - rest);
  pass_time(rest);
}

// The place is told to all before anything is sent: whoever hears of it writes where this process reads.
bool Participant::take_over(const ExchangePlan& plan) {
  constexpr double shortest_s = 0.005, of_timeout = 0.005;  // a place has been empty for the whole of the time-out
  const double between_looks_s =
      std::max(shortest_s, of_timeout * std::chrono::duration<double>(options_.failure_timeout).count());
  std::optional<int> place;
  const auto neighbours = [this](int of) {
    return options_.may_take(of) ? topology_->neighbourhood(of).neighbours : std::vector<int>{};
  };
  while (!over() && !(place = failures_->place_to_take(neighbours))) {
    transport_->pass_time(between_looks_s, *engine_);
    engine_->wake();  // throws what has ended communication
  }
  if (!place) return false;
  stand_at(*place);
  failures_->take(*place);
  engine_->wake();
  std::optional<std::span<const std::byte>> model;
  while (!over() && !(model = first_model())) {
    transport_->pass_time(shortest_s, *engine_);
    engine_->wake();
    follow_changes();
  }
  if (!model) return false;
  take_whole_model(*model, replica_.layout, *place, *replica_.device, replica_.values.span());
  replica_.device->wait();
  exchange_ = build_exchange(plan, context());
  for (std::size_t e = 0; e < ends_.size(); ++e) {
    if (ends_[e].lost)
      exchange_->lose(e);
    else
      exchange_->begin_edge(e);
  }
  failures_->take_part();
  engine_->wake();
  joined_at_s_ = std::chrono::duration<double>(ledger_.since_start()).count();
  return true;
}

template <class Work>
void Participant::in_iteration(Iteration k, const Work& work) {
  try {
    work();
  } catch (const DivergenceError& error) {
    if (found_ && found_->last < k) throw DivergenceError(sentence(*found_));  // it began there
    const std::string said = error.what();
    if (said.starts_with("rank ")) throw;
    throw DivergenceError("rank " + std::to_string(rank()) + " diverged at iteration " + std::to_string(k) + ": " +
                          said);
  }
}

void Participant::start(Iteration k) {
  follow_changes();
  if (pulse_) pulse_->moved();
  if (count_) count_->begin_batch();
  if (!began_) began_ = ledger_.now();
  ++begun_;
  now_ = k;
  next_ = k + served_ + 1;
  in_iteration(k, [&] { exchange_->start(k + served_); });
}

void Participant::gradient_ready(SegmentId segment) {
  in_iteration(now_, [&] { exchange_->gradient_ready(segment); });
}

// Looked at as the optimizer has left it, before it has come to others.
void Participant::stepped(Iteration k) {
  if (!found_) found_ = watch_.look(k);
  last_stepped_ = k;
  in_iteration(k, [&] { exchange_->stepped(k + served_); });
}

/// What servers are asked for while they have nothing to compute.
void Participant::serve_once() {
  const Iteration k = next_++;
  ++served_;
  in_iteration(now_, [&] {
    if (!idle(k)) return;
    apply_gradient();
    exchange_->stepped(k);
  });
}

void Participant::apply_gradient() {
  if (optimizer_) return optimizer_();
  const auto plain = [](const StepResponse& step) {
    return step.learning_rate && step.momentum == 0.0 && !step.normalised;
  };
  if (!std::ranges::all_of(steps_, plain))
    throw ConfigError(
        "rank " + std::to_string(rank()) +
        " is the server of a part of the model, others have sent it gradients after its last step, and it "
        "does not know what its optimizer does with them; say it (C++: Participant::optimizer, Python: "
        "member.end(optimizer)), or for plain SGD say the learning rate of the steps");
  std::vector<float> x = fetched(*replica_.device, replica_.values.span());
  const std::vector<float> g = fetched(*replica_.device, replica_.gradients.span());
  for (SegmentId s = 0; s < steps_.size(); ++s) {
    const Segment& segment = replica_.layout[s];
    const auto rate = static_cast<float>(steps_[s].sign() * *steps_[s].learning_rate);
    for (std::size_t i = segment.offset; i < segment.offset + segment.length; ++i) x[i] -= rate * g[i];
  }
  replica_.device->put(std::as_bytes(std::span(x)), replica_.values.span());
}

// In steps as long as this rank's iterations were: its neighbours hear of it as often as before.
void Participant::accompany(const std::function<bool()>& others_work) {
  constexpr double least_s = 1e-4, most_s = 1.0;
  const double worked = began_ ? std::chrono::duration<double>(ledger_.now() - *began_).count() : 0.0;
  const double step = std::clamp(worked / static_cast<double>(std::max<Iteration>(1, begun_)), least_s, most_s);
  constexpr int looks = 8;
  for (int look = 1; others_work(); ++look) {
    if (options_.interrupted()) throw WaitInterrupted();
    pass_time(step / looks);
    engine_->wake();  // throws what has ended communication
    if (look % looks == 0) serve_once();
  }
}

bool Participant::all_have_stopped(std::uint64_t stops) const {
  bool all = true;
  for (int r = 0; r < topology_->ranks(); ++r) {
    if (count_->stops_of(r) >= stops) continue;
    if (count_->has_left(r))
      throw CommunicationError("rank " + std::to_string(r) +
                               " has left the job, and this rank waits for it at the end of training; settle on all "
                               "ranks before one of them leaves");
    all = false;
  }
  return all;
}

// Whoever has heard of all passes that on before it goes into anything in which nothing is passed on.
void Participant::await_all() {
  if (!count_ || failures_) return;
  const std::uint64_t stops = count_->stop();
  engine_->wake();
  accompany([&] { return !all_have_stopped(stops); });
  engine_->wait_until([this] { return count_->has_told(); });
}

void Participant::learning_rate(double eta) {
  require_step({.learning_rate = eta}, "all segments");
  for (StepResponse& step : steps_) step.learning_rate = eta;
}

void Participant::steps(std::span<const StepResponse> steps) {
  if (steps.size() != steps_.size())
    throw std::logic_error("participant: " + std::to_string(steps.size()) + " steps for " +
                           std::to_string(steps_.size()) + " segments");
  for (SegmentId s = 0; s < steps.size(); ++s) require_step(steps[s], "'" + replica_.layout[s].name + "'");
  std::ranges::copy(steps, steps_.begin());
}

void Participant::require_rates() const {
  for (SegmentId s = 0; measures_steps_ && s < steps_.size(); ++s)
    if (!steps_[s].learning_rate)
      throw ConfigError(
          "this exchange measures by how far a step moves the model, and nobody has told it the learning "
          "rate of '" +
          replica_.layout[s].name +
          "': call Participant::learning_rate, or `steps`, before `finish`; or say it once by "
          "ParticipantOptions::step");
}

void Participant::finish(Iteration k) {
  require_rates();
  in_iteration(k, [&] { exchange_->finish(k + served_); });
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
  return {.topology = *topology_,
          .neighbourhood = neighbourhood_,
          .replica = replica_,
          .mailbox = mailbox_,
          .engine = *engine_,
          .ledger = ledger_,
          .peers = peers_,
          .iterations_per_epoch = options_.iterations_per_epoch,
          .steps = steps_,
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

void Participant::end() {
  follow_changes();
  exchange_->end();
}

void Participant::flush() {
  engine_->wait_until([this] { return !mailbox_.sending(); });
}

void Participant::settle(const std::function<void()>& barrier) {
  if (!barrier) await_all();
  take_in(barrier);
  if (barrier) {
    if (const auto found = own_finding()) throw DivergenceError(found->text);
    return;
  }
  if (sharded_ && count_) {
    // The pushes that have arrived are applied, then those that could not go before.
    for (int round = 0; round < 2; ++round) {
      await_read();
      serve_once();
      take_in({});
    }
    take_from_servers();
  }
  require_finite();
}

/// Until the other ends know that they have read all that this rank has sent: then it may send again.
void Participant::await_read() {
  engine_->wait_until([this] {
    for (std::size_t edge = 0; edge < neighbourhood_.neighbours.size(); ++edge)
      if (mailbox_.under_way(edge) > 0) return options_.interrupted();
    return true;
  });
}

void Participant::take_in(const std::function<void()>& barrier) {
  const auto meet = [&] { barrier ? barrier() : transport_->barrier(); };
  follow_changes();
  flush();
  engine_->run([&] {
    meet();
    progress();
    meet();
  });
  exchange_->drain();
  if (failures_ && admit_edges()) exchange_->drain();  // what the other ends have sent that knew it before
  engine_->run(meet);  // whoever goes on from here sends what a rank that has not taken in all would take in, too
}

/// Runs a collective that is no training, and is not booked as such, like evaluations.
void Participant::uncounted(const std::function<void()>& job) {
  engine_->run([&] {
    counts_messages_ = false;
    job();
    counts_messages_ = true;
  });
}

std::vector<float> Participant::servers_model() {
  std::vector<float> x = fetched(*replica_.device, replica_.values.span());
  const Part own = part_of(x.size(), topology_->ranks(), rank());
  // −0 + a is a, with its sign.
  std::fill_n(x.begin(), own.begin, -0.0F);
  std::fill(x.begin() + static_cast<std::ptrdiff_t>(own.begin + own.length), x.end(), -0.0F);
  uncounted([&] { peers_.library_sum(x); });
  return x;
}

void Participant::take_from_servers() {
  const std::vector<float> x = servers_model();
  replica_.device->put(std::as_bytes(std::span(x)), replica_.values.span());
  exchange_->x_is_of_servers();
}

std::string Participant::sentence(const NotFinite& found) const {
  const std::string when = found.first >= found.last ? "at iteration " + std::to_string(found.last)
                                                     : "between iterations " + std::to_string(found.first) + " and " +
                                                           std::to_string(found.last);
  return "rank " + std::to_string(rank()) + " diverged " + when + ": " + found.what + "; lower the learning rate";
}

std::optional<Participant::Finding> Participant::own_finding() {
  if (!exchange_) return std::nullopt;
  if (!found_) found_ = watch_.look_at_all(last_stepped_);
  if (found_) return Finding{2 * found_->last, sentence(*found_)};
  std::optional<Finding> kept;
  Archive archive = Archive::looking([&](std::string_view name, std::span<const float> values) {
    if (kept || all_finite(values)) return;
    const std::string of = "'" + std::string(name) + "' of the exchange";
    const auto what = values.size() == replica_.layout.size() ? not_finite(replica_.layout, 0, values) : std::nullopt;
    kept = {2 * last_stepped_ + 1,
            sentence({.first = last_stepped_,
                      .last = last_stepped_,
                      .what = what ? *what + ", in " + of : "a value in " + of + " is not finite"})};
  });
  exchange_->state(archive);
  return kept;
}

/// The first of all ranks' findings.
std::optional<Participant::Finding> Participant::finding_of_all(const std::optional<Finding>& own) {
  std::optional<Finding> first = own;
  uncounted([&] {
    float found = own ? 1.0F : 0.0F;
    peers_.library_sum({&found, 1});
    if (found == 0.0F) return;
    OwnedMessage message;
    if (own) {
      const auto order = std::as_bytes(std::span(&own->order, 1)), text = std::as_bytes(std::span(own->text));
      message.bytes.assign(order.begin(), order.end());
      message.bytes.insert(message.bytes.end(), text.begin(), text.end());
    }
    first.reset();
    for (const OwnedMessage& of : all_gather(Group(peers_), std::move(message))) {
      Iteration order = 0;
      if (of.bytes.size() < sizeof order) continue;
      std::memcpy(&order, of.bytes.data(), sizeof order);
      const auto* const text = reinterpret_cast<const char*>(of.bytes.data()) + sizeof order;
      if (!first || order < first->order) first = Finding{order, {text, of.bytes.size() - sizeof order}};
    }
    transport_->barrier();  // all know it before anybody leaves
  });
  return first;
}

void Participant::require_finite_so_far() const {
  if (found_) throw DivergenceError(sentence(*found_));
}

void Participant::require_finite() {
  std::optional<Finding> first = own_finding();
  if (!failures_ && topology_->ranks() > 1) first = finding_of_all(first);
  if (first) throw DivergenceError(first->text);
}

// What an exchange sends again was counted before.
void Participant::state(Archive& archive) {
  if (!archive.loads())
    if (const auto found = own_finding()) throw DivergenceError(found->text);
  if (count_) {
    archive.value("iterations in which it only served", served_);
    archive.value("next iteration of the exchange", next_);  // a rank that loads may serve before its first `start`
  }
  flush();
  for (StepResponse& step : steps_) archive.optional("learning rate", step.learning_rate);
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
  next_ = k + served_;
  if (!owed.empty()) exchange_->take_residual(owed);
}

void Participant::leave() {
  if (count_ && engine_ && !failures_) {
    count_->leave();
    engine_->wait_until([this] { return count_->has_told(); });
  }
  exchange_.reset();
  engine_.reset();
}

}  // namespace hearsay
