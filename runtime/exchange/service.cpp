#include "runtime/exchange/service.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace hearsay {

Iteration Service::begin(Iteration k) {
  if (!began_) began_ = parts_.communication.ledger().now();
  ++begun_;
  settled_ = false;
  now_ = k;
  next_ = k + served_ + 1;
  return k + served_;
}

bool Service::idle(Iteration k) {
  parts_.follow();
  IdleWork* const work = parts_.exchange->capabilities().idle_work;
  return work != nullptr && work->idle(k);
}

void Service::end() {
  parts_.follow();
  if (IdleWork* const work = parts_.exchange->capabilities().idle_work) work->end();
}

/// What servers are asked for while they have nothing to compute.
void Service::serve_once() {
  const Iteration k = next_++;
  ++served_;
  parts_.finite.during(now_, [&] {
    if (!idle(k)) return;
    apply_gradient();
    parts_.exchange->stepped(k);
  });
}

void Service::apply_gradient() {
  if (optimizer_) return optimizer_();
  if (!parts_.steps.plain())
    throw ConfigError(
        "rank " + std::to_string(parts_.edges.rank()) +
        " is the server of a part of the model, others have sent it gradients after its last step, and it "
        "does not know what its optimizer does with them; say it (C++: Service::optimizer, Python: "
        "member.end(optimizer)), or for plain SGD say the learning rate of the steps");
  Parameters& replica = parts_.replica;
  std::vector<float> x = fetched(*replica.device, replica.values.span());
  const std::vector<float> g = fetched(*replica.device, replica.gradients.span());
  const auto steps = parts_.steps.all();
  for (SegmentId s = 0; s < steps.size(); ++s) {
    const Segment& segment = replica.layout[s];
    const auto rate = static_cast<float>(steps[s].sign() * *steps[s].learning_rate);
    for (std::size_t i = segment.offset; i < segment.offset + segment.length; ++i) x[i] -= rate * g[i];
  }
  replica.device->put(std::as_bytes(std::span(x)), replica.values.span());
}

// In steps as long as this rank's iterations were: its neighbours hear of it as often as before.
void Service::accompany(const std::function<bool()>& others_work) {
  constexpr double least_s = 1e-4, most_s = 1.0;
  const auto now = [this] { return parts_.communication.ledger().now(); };
  const double worked = began_ ? std::chrono::duration<double>(now() - *began_).count() : 0.0;
  const double step = std::clamp(worked / static_cast<double>(std::max<Iteration>(1, begun_)), least_s, most_s);
  constexpr int looks = 8;
  bool serves = !settled_ || parts_.sharded;
  for (int look = 1; others_work(); ++look) {
    if (parts_.interrupted()) throw WaitInterrupted();
    parts_.communication.pass_time(step / looks);
    parts_.communication.engine().wake();  // throws what has ended communication
    if (look % looks != 0 || !serves) continue;
    try {
      serve_once();
    } catch (const DivergenceError&) {  // told by all ranks alike when they settle: one that left would be waited for
      serves = false;
    }
  }
}

bool Service::all_have_stopped(std::uint64_t stops) const {
  const JobCount& count = *parts_.communication.members().count();
  bool all = true;
  for (int r = 0; r < parts_.edges.topology().ranks(); ++r) {
    if (count.stops_of(r) >= stops) continue;
    if (count.has_left(r))
      throw CommunicationError("rank " + std::to_string(r) +
                               " has left the job, and this rank waits for it at the end of training; settle on all "
                               "ranks before one of them leaves");
    all = false;
  }
  return all;
}

// Whoever has heard of all passes that on before it goes into anything in which nothing is passed on.
void Service::await_all() {
  Members& members = parts_.communication.members();
  if (members.count() == nullptr || members.failures() != nullptr) return;
  const std::uint64_t stops = members.count()->stop();
  parts_.communication.engine().wake();
  accompany([&] { return !all_have_stopped(stops); });
  parts_.communication.engine().wait_until([&] { return members.count()->has_told(); });
}

/// Until the other ends know that they have read all that this rank has sent: then it may send again.
void Service::await_read() {
  parts_.communication.engine().wait_until([this] {
    for (std::size_t edge = 0; edge < parts_.edges.neighbourhood().neighbours.size(); ++edge)
      if (parts_.communication.mailbox().under_way(edge) > 0) return parts_.interrupted();
    return true;
  });
}

void Service::finish_serving(const std::function<void()>& take_in) {
  if (!parts_.sharded || parts_.communication.members().count() == nullptr) return;
  // The pushes that have arrived are applied, then those that could not go before.
  for (int round = 0; round < 2; ++round) {
    await_read();
    serve_once();
    take_in();
  }
  const std::vector<float> x = servers_model();
  parts_.replica.device->put(std::as_bytes(std::span(x)), parts_.replica.values.span());
  if (ServedModel* const model = parts_.exchange->capabilities().served_model) model->x_is_of_servers();
}

std::vector<float> Service::servers_model() {
  std::vector<float> x = fetched(*parts_.replica.device, parts_.replica.values.span());
  const Part own = part_of(x.size(), parts_.edges.topology().ranks(), parts_.edges.rank());
  // −0 + a is a, with its sign.
  std::fill_n(x.begin(), own.begin, -0.0F);
  std::fill(x.begin() + static_cast<std::ptrdiff_t>(own.begin + own.length), x.end(), -0.0F);
  parts_.communication.uncounted([&] { parts_.communication.peers().library_sum(x); });
  return x;
}

void Service::state(Archive& archive) {
  if (parts_.communication.members().count() == nullptr) return;
  archive.value("iterations in which it only served", served_);
  archive.value("next iteration of the exchange", next_);  // a rank that loads may serve before its first `start`
}

}  // namespace hearsay
