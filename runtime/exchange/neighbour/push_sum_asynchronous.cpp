// Push-sum without waiting: packets carry mass, not copies.
//   start:    to every j that has taken i's last packet: p_ji (n_i, w_i);  i keeps the rest of (n_i, w_i)
//   finish:   (n_i, w_i) ← (n_i, w_i) + all that has come;  g_i ← min(1, w_i / π_i) g_i;
//             the optimizer steps on n_i: n_i ← n_i − η g_i
//   stepped:  z_i ← n_i / w_i, the replica that the model sees
//   idle:     for every packet that comes: all of (n_i, w_i) to an out-neighbour, and the packet's in its place. So the
//             mass of a rank that is done goes on to those who are not, who average it, and nothing is halved for long
// assran2021asynchronous, Algorithm 1. What a packet carries has left its sender, so Σ n_i and Σ w_i are kept with what
// is under way counted in, whatever the speeds are. A neighbour that is slow to take is sent to less often, by a larger
// share of what is there by then.
// π_i is where w_i settles when all ranks are equally fast: 1 where the graph gives each rank as much as it takes. A
// rank that hears of nobody (its in-neighbour pauses) would give away half of its w with every packet. A step on n
// moves z by η / w_i, so it would soon diverge. Two rules bound that:
//   it sends only while w_i ≥ π_i / 2, so w_i ≥ p_ii π_i / 2 at any time
//   it steps by min(1, w_i / π_i) η, so z moves by η / π_i at most, as far as in lockstep
// Not all ranks can hold back at once: where all have less than half of Σ π_i = P, the rest is under way.
// Deviates from the paper in: as the lockstep rule does (push_sum.cpp); these two rules (the paper assumes bounded
// delays, by which its weights are bounded, too); and a packet is sent only when at most `in_flight` − 1 are under way,
// so that mass does not pile up in front of a slow rank. Optimizers that divide by the gradient's size, like Adam, feel
// the first rule only.
// Cost per packet: a message a segment, 4 (n + 1) bytes of values a segment of n; memory: a block for n and one a
// packet under way; time: 2 memory passes a packet sent, 2 a packet taken, 3 for z.
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/exchange/neighbour/plan.hpp"
#include "runtime/exchange/neighbour/push_sum.hpp"
#include "runtime/exchange/segments.hpp"
#include "topology/steady_weights.hpp"

namespace hearsay {
namespace {

/// Bytes of a packet: the n floats of every segment, then its w.
std::size_t packet_bytes(const Layout& layout) {
  return sizeof(PacketHeader) + layout.count() * sizeof(SegmentHeader) +
         (layout.size() + layout.count()) * sizeof(float);
}

float steady_weight_of(const ExchangeContext& context) {
  return static_cast<float>(steady_weights(context.topology)[static_cast<std::size_t>(context.neighbourhood.rank)]);
}

class AsynchronousPushSum final : public Exchange, public Measures, public IdleWork {
 public:
  AsynchronousPushSum(const ExchangeContext& context, std::size_t in_flight)
      : context_(context),
        layout_(context.replica.layout),
        in_flight_(in_flight),
        steady_weight_(steady_weight_of(context)),
        n_(layout_.size()),
        w_(layout_.count(), 1.0F),
        newest_(context.neighbourhood.neighbours.size()),
        every_segment_(layout_.count(), std::uint8_t{1}) {}

  void start(Iteration k) override {
    if (!begun_) std::ranges::copy(context_.replica.values.span(), n_.span().begin());  // what the replica holds by now
    begun_ = true;
    starts_.begin(context_.ledger.since_start());
    for (SegmentId s = 0; s < every_segment_.size(); ++s) context_.ledger.event(s);
    send(k);
  }
  void finish(Iteration) override {
    receive([] {});
    shorten_step();
    std::ranges::copy(n_.span(), context_.replica.values.span().begin());
  }
  void stepped(Iteration) override {
    std::ranges::copy(context_.replica.values.span(), n_.span().begin());
    divide();
  }
  Capabilities capabilities() override { return {.measures = this, .idle_work = this}; }
  bool idle(Iteration k) override {
    starts_.begin(context_.ledger.since_start());
    receive([&] { pass_on(k); });
    divide();
    context_.engine.wake();
    return false;
  }
  void drain() override {
    receive([] {});
    divide();
  }
  std::span<const std::uint8_t> events() const override { return every_segment_; }
  void state(Archive& archive) override {
    archive.value("begun", begun_);
    archive.values("numerators", n_.span());
    archive.values("weights", std::span(w_));
    for (const float w : w_)
      if (!(w > 0.0F && std::isfinite(w))) archive.refuse("weights", "are not all positive");
  }

 private:
  bool sends_to(std::size_t edge, Iteration k) const {
    const auto& phases = context_.neighbourhood.phases;
    if (phases.empty()) return context_.neighbourhood.sends_to(edge);
    return phases[static_cast<std::size_t>(k) % phases.size()].to == edge;
  }
  bool may_send(std::size_t edge) const { return has_enough() && has_room(edge); }
  bool has_room(std::size_t edge) const {
    return context_.mailbox.under_way(edge) < in_flight_ && context_.mailbox.fits(edge, packet_bytes(layout_));
  }

  bool has_enough() const { return w_.empty() || w_.front() >= steady_weight_ / 2; }  // all segments travel together
  void shorten_step() {
    for (SegmentId s = 0; s < layout_.count(); ++s) {
      if (w_[s] >= steady_weight_) continue;
      for (float& g : context_.replica.gradients.segment(layout_[s])) g *= w_[s] / steady_weight_;
    }
  }

  // All packets are of what was there before the first of them.
  void send(Iteration k) {
    const PhaseTimer timer(context_.ledger, Phase::encode);
    double kept = 1.0;
    std::vector<std::size_t> edges;
    for (std::size_t e = 0; e < newest_.size(); ++e) {
      if (!sends_to(e, k)) continue;
      if (may_send(e))
        edges.push_back(e);
      else
        context_.ledger.defer(e, layout_.count());
    }
    for (const std::size_t e : edges) {
      const double share = context_.neighbourhood.share_to(e);
      context_.mailbox.post(e, packed(static_cast<float>(share), k));
      kept -= share;
    }
    if (!edges.empty()) scale(static_cast<float>(kept));
    context_.engine.wake();  // also where nothing may be sent: what has been taken is heard of so
  }

  void scale(float kept) {
    for (float& n : n_.span()) n *= kept;
    for (float& w : w_) w *= kept;
  }

  SharedPacket packed(float share, Iteration k) {
    auto packet = pool_.lend();
    packet->bytes.resize(packet_bytes(layout_));
    auto rest = std::span(packet->bytes).subspan(sizeof(PacketHeader));
    const auto put = [&](const void* from, std::size_t bytes) {
      std::memcpy(rest.data(), from, bytes);
      rest = rest.subspan(bytes);
    };
    for (SegmentId s = 0; s < layout_.count(); ++s) {
      sent_.assign(n_.segment(layout_[s]).begin(), n_.segment(layout_[s]).end());
      sent_.push_back(w_[s]);
      for (float& value : sent_) value *= share;
      const std::size_t bytes = sent_.size() * sizeof(float);
      const SegmentHeader header{.segment = s, .count = 0, .bytes = bytes, .kind = whole_segment};
      put(&header, sizeof header);
      put(sent_.data(), bytes);
      packet->records.push_back({.segment = s, .payload_bytes = bytes, .index_bytes = 0});
    }
    seal_packet(packet->bytes, context_.neighbourhood.rank, k, static_cast<std::uint32_t>(layout_.count()),
                Stamp::of(context_.ledger.since_start()));
    return packet;
  }

  /// All of its own to one rank: what comes next takes its place. Where there is no room, that is added to it.
  void pass_on(Iteration k) {
    for (std::size_t tried = 0; tried < newest_.size(); ++tried) {
      const std::size_t e = next_to_pass_to_++ % newest_.size();
      if (!sends_to(e, k) || !has_room(e)) continue;
      context_.mailbox.post(e, packed(1.0F, k));
      return scale(0.0F);
    }
  }

  template <class Before>
  void receive(const Before& before_each) {
    const PhaseTimer timer(context_.ledger, Phase::mix);
    for (std::size_t e = 0; e < newest_.size(); ++e) {
      bool any = false;
      for (; const auto packet = context_.mailbox.front(e); any = true) {
        before_each();
        take(e, *packet);
        context_.mailbox.pop(e);
      }
      const TimePoint now = context_.ledger.since_start(), age = newest_[e].age(now);
      if (any) context_.ledger.mixed(e, {.iterations = starts_.since(now - age), .time = age});
    }
  }

  void take(std::size_t edge, std::span<const std::byte> packet) {
    const PacketHeader header = packet_header(packet);
    newest_[edge] = {static_cast<std::uint32_t>(header.sent)};
    if (packet.size() != packet_bytes(layout_) || header.segments != layout_.count())
      throw misfit(header, context_.neighbourhood.rank,
                   std::to_string(packet.size()) + " bytes in " + std::to_string(header.segments) +
                       " segments instead of " + std::to_string(packet_bytes(layout_)) + " in " +
                       std::to_string(layout_.count()));
    auto rest = packet.subspan(sizeof header);
    for (SegmentId s = 0; s < layout_.count(); ++s) {
      SegmentHeader of;
      std::memcpy(&of, rest.data(), sizeof of);
      const auto n = n_.segment(layout_[s]);
      if (of.segment != s || of.kind != whole_segment || of.bytes != n.size_bytes() + sizeof(float))
        throw misfit(header, context_.neighbourhood.rank, "its parameter " + std::to_string(s) + " is another one");
      arrived_.resize(n.size() + 1);
      std::memcpy(arrived_.data(), rest.data() + sizeof of, of.bytes);
      for (std::size_t i = 0; i < n.size(); ++i) n[i] += arrived_[i];
      w_[s] += arrived_.back();
      rest = rest.subspan(sizeof of + of.bytes);
    }
  }

  void divide() {
    const PhaseTimer timer(context_.ledger, Phase::mix);
    for (SegmentId s = 0; s < layout_.count(); ++s) {
      const auto n = n_.segment(layout_[s]), z = context_.replica.values.segment(layout_[s]);
      for (std::size_t i = 0; i < n.size(); ++i) z[i] = n[i] / w_[s];
    }
  }

  ExchangeContext context_;
  const Layout& layout_;
  std::size_t in_flight_;
  const float steady_weight_;  // π
  FloatBlock n_;
  std::vector<float> w_;       // one a segment
  std::vector<Stamp> newest_;  // by edge: when the newest packet taken was sent
  IterationStarts starts_;
  PacketPool pool_;
  std::vector<std::uint8_t> every_segment_;
  std::size_t next_to_pass_to_ = 0;
  std::vector<float> sent_, arrived_;  // scratch
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<ExchangePlan> asynchronous_push_sum(std::size_t in_flight) {
  return neighbour_plan({.link = {.schedule = Schedule::asynchronous, .in_flight = in_flight},
                         .beside = push_sum_weight,
                         .words = 3.0,
                         .keeps_copies = false,
                         .laws = {.follows_phases = true, .along_arcs = true},
                         .warnings = push_sum_warnings,
                         .build = [in_flight](const ExchangeContext& context) {
                           return std::make_unique<AsynchronousPushSum>(context, in_flight);
                         }});
}

}  // namespace hearsay
