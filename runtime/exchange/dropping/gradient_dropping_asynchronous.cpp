// Gradient dropping without waiting: pushes and pulls are packets in mailboxes, used when they have come.
//   finish:  g_own ← (1/P) (all that has been pushed here since the last time), 0 elsewhere;  x ← x + all that was
//   pulled
//   the optimizer moves x, of which only the own shard, the master itself, is meant: the rest is put back
//   stepped:  one packet for every other rank: v for its shard, and T(x_own − copy_i), where its ring has room
//   idle:     the same without a gradient of its own: a rank that is done goes on serving
// Where a packet cannot go at every iteration, the next one holds k values for each iteration since the last that went,
// eight at most: else a slow link drops more than `density` says, and 4 ranks over TCP that pushed every eleventh time
// ended at 83 % of MNIST in place of 97.5.
// A push counts 1/P whenever it comes. All that came during an iteration are one step of the server's optimizer: of
// plain SGD the same as one each. A packet holds
//   PacketHeader | PartHeader, sparse message | PartHeader, sparse message      (a push, a pull, or both)
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "runtime/exchange/dropping/gradient_dropping.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "runtime/exchange/segments.hpp"
#include "runtime/transport/packet.hpp"

namespace hearsay {
namespace {

enum class Kind : std::uint8_t { push, pull };
struct PartHeader {
  std::uint64_t bytes : 56;  ///< of the message behind this header
  std::uint64_t kind : 8;
};
static_assert(sizeof(PartHeader) == 8);

/// For so many iterations a packet may stand.
constexpr int most_iterations = 8;

std::size_t part_bound(const SparseWire& wire, std::size_t entries) { return sizeof(PartHeader) + wire.bound(entries); }

void append(OutgoingPacket& packet, Kind kind, const OwnedMessage& message) {
  const PartHeader header{.bytes = message.bytes.size(), .kind = static_cast<std::uint8_t>(kind)};
  const auto head = std::as_bytes(std::span(&header, 1));
  packet.bytes.insert(packet.bytes.end(), head.begin(), head.end());
  packet.bytes.insert(packet.bytes.end(), message.bytes.begin(), message.bytes.end());
  packet.records.push_back(
      {.segment = SegmentRecord::none, .payload_bytes = message.payload_bytes, .index_bytes = message.index_bytes});
}

class AsynchronousDropping final : public Exchange, public Residual, public IdleWork, public ServedModel {
 public:
  AsynchronousDropping(const ExchangeContext& context, const DroppingSettings& settings)
      : context_(context),
        me_(context.peers.rank()),
        in_flight_(settings.in_flight),
        shards_(settings.push.sparsifier->codec, context.replica.layout, context.peers.size()),
        own_(shards_.part(me_)),
        push_(context_, settings, shards_),
        pull_(context_, settings, shards_),
        arrived_(own_.length),
        kept_(context.replica.layout.size()) {
    const std::size_t others = context.neighbourhood.neighbours.size();
    if (others + 1 != static_cast<std::size_t>(shards_.count()))
      throw std::logic_error("gradient_dropping: every rank must be a neighbour of every other");
    for (std::size_t e = 0; e < others; ++e) {
      clients_.push_back({.copy = FloatBlock(own_.length)});
      std::ranges::copy(master(), clients_.back().copy.span().begin());
    }
  }

  void start(Iteration) override { starts_.begin(context_.ledger.since_start()); }

  void finish(Iteration k) override {
    receive();
    count_iteration();
    push_.collect(context_.replica.gradients.span(), epoch_of(context_, k), longest_without_push());
    const PhaseTimer timer(context_.ledger, Phase::mix);
    const SparseVector own = push_.take(me_);
    push_.sent(me_, own, {});
    add_to(arrived_.span(), own);
    hand_over();
  }

  void stepped(Iteration k) override {
    const auto x = context_.replica.values.span();
    std::ranges::copy(kept_.span().first(own_.begin), x.begin());
    const std::size_t end = own_.begin + own_.length;
    std::ranges::copy(kept_.span().subspan(end), x.begin() + static_cast<std::ptrdiff_t>(end));
    send_all(k);
  }
  bool idle(Iteration k) override {
    starts_.begin(context_.ledger.since_start());
    receive();
    count_iteration();
    const bool pushed = std::exchange(pushed_, false);
    if (pushed)
      hand_over();
    else
      send_all(k);
    return pushed;
  }
  Capabilities capabilities() override { return {.residual = this, .idle_work = this, .served_model = this}; }
  void add_residual(std::span<float> block) const override { push_.add_residual(block); }
  void take_residual(std::span<const float> sum) override { push_.take_residual(sum); }
  /// What is left of pushes waits for one more `idle`.
  void drain() override { take_arrived(); }
  void x_is_of_servers() override {
    for (Client& client : clients_) std::ranges::copy(master(), client.copy.span().begin());
  }
  void state(Archive& archive) override {
    push_.state(archive);
    pull_.state(archive);
    archive.values("pushes that have arrived", arrived_.span());
    archive.value("other ranks have pushed", pushed_);
    for (Client& client : clients_) {
      archive.values("what a client holds", client.copy.span());
      archive.value("iterations without a push", client.without_push);
      archive.value("iterations without a pull", client.without_pull);
      for (const int without : {client.without_push, client.without_pull})
        if (without < 0 || without > most_iterations) archive.refuse("iterations without a packet", "are out of range");
    }
  }

 private:
  struct Client {
    FloatBlock copy;  // what it has of this rank's shard once it has read what is under way
    Stamp newest_sent{};
    int without_push = 0, without_pull = 0;  // iterations since the last one that went, this one included
  };

  void count_iteration() {
    for (Client& client : clients_) {
      client.without_push = std::min(client.without_push + 1, most_iterations);
      client.without_pull = std::min(client.without_pull + 1, most_iterations);
    }
  }
  double longest_without_push() const {
    int longest = 1;
    for (const Client& client : clients_) longest = std::max(longest, client.without_push);
    return longest;
  }

  std::span<float> master() { return own_.of(context_.replica.values.span()); }
  int rank_of(std::size_t edge) const { return context_.neighbourhood.neighbours[edge]; }

  /// The optimizer gets what was pushed to this rank's shard since its last step.
  void hand_over() {
    const auto g = context_.replica.gradients.span(), own_g = own_.of(g);
    std::ranges::fill(g, 0.0F);
    std::ranges::copy(arrived_.span(), own_g.begin());
    divide_by_ranks(context_, own_.begin, own_g);
    std::ranges::fill(arrived_.span(), 0.0F);
    pushed_ = false;
    std::ranges::copy(context_.replica.values.span(), kept_.span().begin());
  }

  void send_all(Iteration k) {
    for (std::size_t e = 0; e < clients_.size(); ++e) send(e, k);
    if (!clients_.empty()) context_.engine.wake();
  }

  void send(std::size_t edge, Iteration k) {
    const int client = rank_of(edge);
    const double epoch = epoch_of(context_, k);
    const std::size_t pushed = push_.owed(client);
    const bool pulls = !std::ranges::equal(master(), clients_[edge].copy.span());
    if (pushed == 0) clients_[edge].without_push = 0;
    if (!pulls) clients_[edge].without_pull = 0;
    if (pushed == 0 && !pulls) return;
    std::size_t bound = sizeof(PacketHeader);
    if (pushed > 0) bound += part_bound(shards_.wire(client), pushed);
    if (pulls) bound += part_bound(shards_.wire(me_), pull_.most(epoch, clients_[edge].without_pull));
    if (context_.mailbox.under_way(edge) >= in_flight_ || !context_.mailbox.fits(edge, bound)) {
      context_.ledger.defer(edge, (pushed > 0 ? 1U : 0U) + (pulls ? 1U : 0U));
      return;
    }
    const std::shared_ptr<OutgoingPacket> packet = pool_.lend();
    packet->bytes.resize(sizeof(PacketHeader));
    if (pushed > 0) append_push(*packet, edge);
    if (pulls) append_pull(*packet, clients_[edge], epoch);
    if (packet->records.empty()) return;
    seal_packet(packet->bytes, me_, k, static_cast<std::uint32_t>(packet->records.size()),
                Stamp::of(context_.ledger.since_start()));
    context_.mailbox.post(edge, packet);
  }
  void append_push(OutgoingPacket& packet, std::size_t edge) {
    const int client = rank_of(edge);
    clients_[edge].without_push = 0;
    const PhaseTimer timer(context_.ledger, Phase::encode);
    const SparseWire::Sent sent = shards_.wire(client).prepare(push_.take(client));
    append(packet, Kind::push, sent.message);
    push_.sent(client, sent.received, sent.rest);
  }
  void append_pull(OutgoingPacket& packet, Client& client, double epoch) {
    const SparseVector change = pull_.select(master(), client.copy.span(), epoch, client.without_pull);
    client.without_pull = 0;
    if (change.empty()) return;
    const PhaseTimer timer(context_.ledger, Phase::encode);
    const SparseWire::Sent sent = shards_.wire(me_).prepare(change);
    append(packet, Kind::pull, sent.message);
    add_to(client.copy.span(), sent.received);
  }

  void receive() {
    const PhaseTimer timer(context_.ledger, Phase::mix);
    take_arrived();
    const TimePoint now = context_.ledger.since_start();
    for (std::size_t e = 0; e < clients_.size(); ++e) {
      const TimePoint age = clients_[e].newest_sent.age(now);
      context_.ledger.mixed(e, {.iterations = starts_.since(now - age), .time = age});
    }
  }
  void take_arrived() {
    for (std::size_t e = 0; e < clients_.size(); ++e) {
      while (const auto packet = context_.mailbox.front(e)) {
        apply(e, *packet);
        context_.mailbox.pop(e);
      }
    }
  }
  void apply(std::size_t edge, std::span<const std::byte> packet) {
    const PacketHeader header = packet_header(packet);
    clients_[edge].newest_sent = {static_cast<std::uint32_t>(header.sent)};
    try {
      apply_parts(edge, packet.subspan(sizeof header), header.segments);
    } catch (const CommunicationError& error) {
      throw misfit(header, me_, error.what());
    }
  }
  void apply_parts(std::size_t edge, std::span<const std::byte> rest, std::uint32_t parts) {
    for (std::uint32_t i = 0; i < parts; ++i) {
      PartHeader header{};
      if (rest.size() < sizeof header) throw CommunicationError("it ends before its last part");
      std::memcpy(&header, rest.data(), sizeof header);
      rest = rest.subspan(sizeof header);
      if (header.bytes > rest.size()) throw CommunicationError("a part is longer than its packet");
      apply_part(edge, static_cast<Kind>(header.kind), rest.first(header.bytes));
      rest = rest.subspan(header.bytes);
    }
    if (!rest.empty()) throw CommunicationError(std::to_string(rest.size()) + " bytes behind its last part");
  }
  void apply_part(std::size_t edge, Kind kind, std::span<const std::byte> message) {
    const int server = rank_of(edge);
    if (kind == Kind::push) {
      add_to(arrived_.span(), shards_.wire(me_).decode(message));
      pushed_ = true;
    } else if (kind == Kind::pull) {
      add_to(shards_.part(server).of(context_.replica.values.span()), shards_.wire(server).decode(message));
    } else {
      throw CommunicationError("a part is neither a push nor a pull");
    }
  }

  ExchangeContext context_;
  int me_;
  std::size_t in_flight_;
  Shards shards_;
  Part own_;
  PushSide push_;
  PullSide pull_;
  FloatBlock arrived_;           // pushes for this rank's shard that the optimizer has not seen
  bool pushed_ = false;          // whether there are any of other ranks
  FloatBlock kept_;              // x while the optimizer moves it
  std::vector<Client> clients_;  // by edge: the other ranks
  PacketPool pool_;
  IterationStarts starts_;
};

}  // namespace

std::unique_ptr<Exchange> make_asynchronous_dropping(const ExchangeContext& context, const DroppingSettings& settings) {
  return std::make_unique<AsynchronousDropping>(context, settings);
}

// What the longest shard may be pushed and what may be pulled of it, together.
std::size_t dropping_packet_bound(const DroppingSettings& settings, const Layout& layout, int ranks) {
  const Sparsifier& sparsifier = *settings.push.sparsifier;
  const double density = sparsifier.largest_density();
  const std::size_t n = layout.size(), shard = part_of(n, ranks, 0).length;
  const SparseWire wire(*sparsifier.codec, shard, {});
  const std::size_t pushed =
      sparsifier.selector->most(BlockSelection(sparsifier, layout).count(of_iterations(density, most_iterations)), n);
  const double pull_density = of_iterations(settings.pull(density), most_iterations);
  const std::size_t pulled =
      pull_density == 1.0 ? shard : sparsifier.selector->most(kept_count(pull_density, shard), shard);
  return sizeof(PacketHeader) + part_bound(wire, std::min(pushed, shard)) + part_bound(wire, pulled);
}

}  // namespace hearsay
