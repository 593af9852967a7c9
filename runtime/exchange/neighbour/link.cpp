#include "runtime/exchange/neighbour/link.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "runtime/exchange/in_flight.hpp"
#include "runtime/exchange/misfit.hpp"
#include "runtime/replica/block_state.hpp"

namespace hearsay {
namespace {

/// Room for a segment of at most `bytes` behind its header.
std::span<std::byte> append_body(RawBytes& packet, std::size_t bytes) {
  packet.resize(packet.size() + sizeof(SegmentHeader) + bytes);
  return std::span(packet).last(bytes);
}

/// The header of the body that begins at `body`.
void write_header(std::span<std::byte> body, const SegmentHeader& header) {
  std::memcpy(body.data() - sizeof header, &header, sizeof header);
}

float gain_in(const SegmentHeader& header) {
  const auto gain = std::bit_cast<float>(static_cast<std::uint32_t>(header.gain) << 16);
  if (gain >= 0.0F && std::isfinite(gain)) return gain;
  throw CommunicationError("segment " + std::to_string(header.segment) + " says that a gradient moves it by " +
                           std::to_string(gain));
}

/// into ← into or more, flag by flag.
void join(std::span<std::uint8_t> into, std::span<const std::uint8_t> more) {
  for (std::size_t s = 0; s < into.size(); ++s) into[s] = static_cast<std::uint8_t>(into[s] | more[s]);
}

FloatBlock copy_of(const FloatBlock& block, Device& device) {
  FloatBlock copy = device.block(block.size());
  device.copy(block.span(), copy.span());
  return copy;
}

}  // namespace

bool travels_whole(const Sparsifier& sparsifier, std::size_t n) {
  if (!sparsifier.codec || n < sparsifier.dense_below) return true;
  return sparsifier.dense && sparsifier.codec->exact();
}

Body body_of(const Sparsifier& sparsifier, std::size_t n) {
  if (travels_whole(sparsifier, n)) return whole_segment;
  return sparsifier.codec->exact() ? encoded_values : encoded_changes;
}

std::size_t segment_bound(const Sparsifier& sparsifier, std::size_t n) {
  if (travels_whole(sparsifier, n)) return sizeof(SegmentHeader) + n * sizeof(float);
  const std::size_t k = kept_count(sparsifier.largest_density(), n);
  return sizeof(SegmentHeader) + sparsifier.codec->bound(sparsifier.selector->most(k, n), n);
}

ExchangeCost link_cost(const Layout& layout, const Topology& topology, std::size_t packet_bound,
                       const LocalWork& selection, bool own_copy, const CostAssumptions& assumptions) {
  int degree = 0;
  for (int rank = 0; rank < topology.ranks(); ++rank)
    degree = std::max(degree, static_cast<int>(topology.neighbourhood(rank).sends()));
  const double fired_bytes = static_cast<double>(packet_bound - sizeof(PacketHeader)) * assumptions.event_fraction;
  return neighbour_cost({.degree = degree,
                         .mean_degree = static_cast<double>(topology.edges_in_use()) / topology.ranks(),
                         .values = layout.size(),
                         .packet_bytes = sizeof(PacketHeader) + fired_bytes,
                         .selection = assumptions.event_fraction * selection,
                         .own_copy = own_copy},
                        assumptions);
}

std::size_t link_bytes(const Layout& layout, const NeighbourLink::Options& options, const Sparsifier& sparsifier,
                       std::size_t neighbours, std::size_t packet_bound) {
  const bool lockstep = options.schedule == Schedule::lockstep;
  const bool all_whole =
      std::ranges::all_of(layout.segments(), [&](const Segment& s) { return travels_whole(sparsifier, s.length); });
  const std::size_t own = lockstep ? std::min<std::size_t>(neighbours, 1) : neighbours;
  const std::size_t blocks = neighbours + (options.keep_own_copies || !all_whole ? own : 0) +
                             (options.keep_own_copies && options.delay > 0 ? own : 0);
  return blocks * layout.size() * sizeof(float) + own * packet_bound;
}

NeighbourLink::Options read_link_options(Config& exchange) {
  const Schedule schedule = read_schedule(exchange);
  const Iteration delay = exchange.integer(
      "delay", 0, Range::between(0, 1),
      "lockstep: mix with the neighbours' copies of this iteration, or of the one before, which have had a "
      "whole iteration to arrive");
  exchange.require(delay == 0 || schedule == Schedule::lockstep, "delay",
                   "an asynchronous rank waits for no iteration's copies: leave it at 0, or take schedule: lockstep");
  return {.schedule = schedule, .delay = delay, .in_flight = read_in_flight(exchange, schedule)};
}

NeighbourLink::NeighbourLink(const ExchangeContext& context, Options options, Sparsifier sparsifier)
    : context_(context),
      device_(context.device()),
      layout_(context.replica.layout),
      options_(options),
      sparsifier_(std::move(sparsifier)),
      every_segment_(layout_.count(), std::uint8_t{1}),
      sent_(layout_.count()) {
  const FloatBlock& initial = context.replica.values;
  const std::size_t degree = context.neighbourhood.neighbours.size();
  for (std::size_t e = 0; e < degree; ++e) {
    links_.push_back({.theirs = copy_of(initial, device_),
                      .pending = std::vector<std::uint8_t>(layout_.count()),
                      .news = News(layout_.count()),
                      .next = News(layout_.count()),
                      .our_turn = context.neighbourhood.rank < context.neighbourhood.neighbours[e]});
  }
  const auto segments = layout_.segments();
  if (sparsifier_.codec && sparsifier_.codec->by_rows())
    for (const Segment& s : segments) row_ends_.push_back(row_ends(layout_, {.begin = s.offset, .length = s.length}));
  row_ends_.resize(layout_.count());
  const auto whole = [&](const Segment& s) { return travels_whole(sparsifier_, s.length); };
  const bool all_whole = std::ranges::all_of(segments, whole);
  if (!all_whole) changes_ = device_.select_changes(layout_, sparsifier_);
  if (options_.keep_own_copies || !all_whole) {
    const std::size_t copies = lockstep() ? std::min<std::size_t>(degree, 1) : degree;
    for (std::size_t c = 0; c < copies; ++c) own_copies_.push_back(copy_of(initial, device_));
  }
  if (delays_own_copy()) own_before_ = copy_of(initial, device_);
  for (std::size_t e = 0; e < degree; ++e) {
    const Neighbourhood& row = context.neighbourhood;
    std::span<const float> ours;
    if (!own_copies_.empty()) ours = delays_own_copy() ? own_before_.span() : own_copy(e).span();
    edges_.push_back({.weight = static_cast<float>(row.turns.empty() ? row.weights[e] : row.turn_weight),
                      .theirs = links_[e].theirs.span(),
                      .ours = ours,
                      .crossed = links_[e].news.crossed,
                      .ends = links_[e].news.ends,
                      .positions = links_[e].news.positions});
  }
}

void NeighbourLink::send(Iteration k, std::span<const std::uint8_t> fired) {
  if (links_.empty()) return;
  starts_.begin(context_.ledger.since_start());
  if (lockstep()) {
    send_lockstep(k, fired);
  } else {
    const PhaseTimer timer(context_.ledger, Phase::encode);
    for (std::size_t e = 0; e < links_.size(); ++e) send_asynchronous(k, e, fired);
  }
  context_.engine.wake();
}

void NeighbourLink::lose(std::size_t edge) {
  links_[edge].lost = true;
  edges_[edge].weight = 0.0F;
  for (SegmentId s = 0; s < layout_.count(); ++s) links_[edge].news.clear(s), links_[edge].next.clear(s);
}

void NeighbourLink::begin(std::size_t edge) {
  lose(edge);
  Edge& link = links_[edge];
  link.lost = link.sent_whole = link.heard_whole = false;
  link.begins = true;
  std::ranges::fill(link.pending, std::uint8_t{0});
  Gains& gains = link.gains;
  for (auto* values : {&gains.said, &gains.said_next, &gains.heard, &gains.larger}) std::ranges::fill(*values, 0.0F);
  link.newest_packet = -1;
  link.our_turn = context_.neighbourhood.rank < context_.neighbourhood.neighbours[edge];
}

void NeighbourLink::admit(std::size_t edge) {
  links_[edge].begins = false;
  edges_[edge].weight = static_cast<float>(context_.neighbourhood.weights[edge]);
}

void NeighbourLink::News::add(SegmentId s, std::span<const std::uint32_t> some) {
  if (crossed[s] == all_values) return;
  crossed[s] = some_values;
  std::vector<std::uint32_t> both;
  std::ranges::set_union(positions[s], some, std::back_inserter(both));
  positions[s] = std::move(both);
}

void NeighbourLink::News::add(SegmentId s, const News& other) {
  if (other.crossed[s] == all_values) add_all(s);
  if (other.crossed[s] == some_values) add(s, other.positions[s]);
  ends[s] = static_cast<std::uint8_t>(ends[s] | other.ends[s]);
}

void NeighbourLink::say_gains(std::size_t edge, std::span<const float> gains) {
  if (gains.empty()) return;
  Gains& of = links_[edge].gains;
  of.own.assign(gains.begin(), gains.end());
  for (auto* values : {&of.said, &of.said_next, &of.heard, &of.larger}) values->resize(layout_.count());
  edges_[edge].gains = of.larger;
}

std::uint64_t NeighbourLink::Gains::bits(SegmentId s) const {
  return none() ? 0 : std::bit_cast<std::uint32_t>(own[s]) >> 16;
}

void NeighbourLink::follow(const Move& move) {
  Edge& link = links_[move.edge];
  const Segment& segment = layout_[move.segment];
  const auto theirs = link.theirs.segment(segment), ours = own_copy(move.edge).segment(segment);
  if (move.crossed_only && link.news.crossed[move.segment] == some_values)
    device_.close_difference_at(link.news.positions[move.segment], move.weight, theirs, ours);
  else
    device_.close_difference(move.weight, theirs, ours);
}

void NeighbourLink::note_ages_of_own_events(Iteration k) {
  for (std::size_t e = 0; e < links_.size(); ++e) {
    const auto& crossed = links_[e].news.crossed;
    const bool any = std::ranges::any_of(crossed, [](std::uint8_t what) { return what != nothing; });
    if (any) note_age(e, k);
  }
}

// In lockstep the counters of both ends are the same; elsewhere this rank's own starts tell.
void NeighbourLink::note_age(std::size_t edge, Iteration k) {
  const TimePoint now = context_.ledger.since_start();
  const TimePoint age = links_[edge].newest_sent.age(now);
  const Iteration iterations = lockstep() ? k - links_[edge].newest_packet : starts_.since(now - age);
  context_.ledger.mixed(edge, {.iterations = iterations, .time = age});
}

void NeighbourLink::mixed(std::span<const std::uint8_t> segments) {
  for (Edge& link : links_) {
    for (SegmentId s = 0; s < segments.size(); ++s) {
      if (segments[s] == 0) continue;
      link.news.clear(s);
      link.news.add(s, link.next);
      link.next.clear(s);
      if (options_.delay > 0 && !link.gains.none()) link.gains.say(s, link.gains.said_next[s]);
    }
  }
  if (delays_own_copy()) device_.copy(own_copies_.front().span(), own_before_.span());
}

void NeighbourLink::note_sent(std::size_t edge, std::span<const std::uint8_t> segments) {
  Edge& link = links_[edge];
  for (SegmentId s = 0; s < segments.size(); ++s) {
    if (segments[s] == 0) continue;
    News& news = options_.delay > 0 ? link.next : link.news;
    news.add(s, sent_);
    news.note_end(s, own_end);
    if (link.gains.none()) continue;
    if (options_.delay == 0)
      link.gains.say(s, link.gains.own[s]);
    else
      link.gains.said_next[s] = link.gains.own[s];
  }
}

// One packet, shared by all edges: in lockstep they all hold the same of this rank.
void NeighbourLink::send_lockstep(Iteration k, std::span<const std::uint8_t> fired) {
  SharedPacket packet;
  {
    const PhaseTimer timer(context_.ledger, Phase::encode);
    packet = encode(k, fired, own_copies_.empty() ? nullptr : &own_copies_.front(), links_.front().gains);
  }
  if (first_ < 0) first_ = k;
  if (options_.delay > 0) last_packet_ = packet;
  const auto [first, end] = out_edges(k);
  for (std::size_t e = first; e < end; ++e) {
    if (!context_.neighbourhood.sends_to(e)) continue;
    wait_for([&] { return context_.mailbox.fits(e, packet->bytes.size()); });
    context_.mailbox.post(e, packet);
    note_sent(e, fired);
  }
}

/// What this rank sends first where an edge begins, if there is room already.
void NeighbourLink::send_whole(Iteration k, std::size_t edge, std::span<const std::uint8_t> fired) {
  Edge& link = links_[edge];
  if (link.sent_whole) return join(link.pending, fired);
  if (!context_.mailbox.fits(edge, whole_model_bytes(layout_))) return;
  FloatBlock* const own = own_copies_.empty() ? nullptr : &own_copy(edge);
  auto packet = pool_.lend();
  packet->bytes.resize(sizeof(PacketHeader));
  packet->bytes.reserve(whole_model_bytes(layout_));  // as in `encode`
  for (SegmentId s = 0; s < layout_.count(); ++s) append_whole(*packet, s, own, 0);
  device_.wait();
  seal_packet(packet->bytes, context_.neighbourhood.rank, k, static_cast<std::uint32_t>(layout_.count()),
              Stamp::of(context_.ledger.since_start()));
  context_.mailbox.post(edge, std::move(packet));
  link.sent_whole = true;
}

void NeighbourLink::send_asynchronous(Iteration k, std::size_t edge, std::span<const std::uint8_t> fired) {
  Edge& link = links_[edge];
  if (link.lost) return;
  if (link.begins) return send_whole(k, edge, fired);
  wanted_.assign(link.pending.begin(), link.pending.end());
  join(wanted_, fired);
  const auto messages = static_cast<std::size_t>(std::ranges::count(wanted_, std::uint8_t{1}));
  if (messages == 0 && !options_.by_turns) return;
  if (!may_send(edge) || !context_.mailbox.fits(edge, bound(wanted_))) {
    link.pending = wanted_;
    context_.ledger.defer(edge, messages);
    return;
  }
  context_.mailbox.post(edge, encode(k, wanted_, own_copies_.empty() ? nullptr : &own_copy(edge), link.gains));
  std::ranges::fill(link.pending, std::uint8_t{0});
  link.our_turn = false;
  note_sent(edge, wanted_);
}

bool NeighbourLink::may_send(std::size_t edge) const {
  return options_.by_turns ? links_[edge].our_turn : context_.mailbox.under_way(edge) < options_.in_flight;
}

std::size_t NeighbourLink::bound(std::span<const std::uint8_t> segments) const {
  std::size_t bytes = sizeof(PacketHeader);
  for (SegmentId s = 0; s < segments.size(); ++s) {
    if (segments[s] != 0) bytes += segment_bound(sparsifier_, layout_[s].length);
  }
  return bytes;
}

SharedPacket NeighbourLink::encode(Iteration k, std::span<const std::uint8_t> segments, FloatBlock* own_copy,
                                   const Gains& gains) {
  auto packet = pool_.lend();
  const double epoch = static_cast<double>(k) / static_cast<double>(context_.iterations_per_epoch);
  const double density = changes_ ? sparsifier_.density(epoch) : 1.0;
  packet->bytes.resize(sizeof(PacketHeader));
  packet->bytes.reserve(bound(segments));  // the device fills in bodies until `wait`: they must not move
  std::vector<SegmentId> selected;
  for (SegmentId s = 0; s < segments.size(); ++s) {
    if (segments[s] == 0) continue;
    sent_.clear(s);
    const Segment& segment = layout_[s];
    if (travels_whole(sparsifier_, segment.length)) {
      sent_.add_all(s);
      append_whole(*packet, s, own_copy, gains.bits(s));
    } else {
      changes_->begin(s, context_.replica.values.segment(segment), own_copy->segment(segment),
                      kept_count(density, segment.length));
      selected.push_back(s);
    }
  }
  device_.wait();
  for (const SegmentId s : selected) append_selected(*packet, s, *own_copy, gains.bits(s));
  seal_packet(packet->bytes, context_.neighbourhood.rank, k, static_cast<std::uint32_t>(packet->records.size()),
              Stamp::of(context_.ledger.since_start()));
  return packet;
}

void NeighbourLink::append_whole(OutgoingPacket& packet, SegmentId s, FloatBlock* own_copy, std::uint64_t gain) {
  const std::span<const float> values = context_.replica.values.segment(layout_[s]);
  const auto body = append_body(packet.bytes, values.size_bytes());
  write_header(body, {.segment = s, .count = 0, .bytes = values.size_bytes(), .gain = gain, .kind = whole_segment});
  device_.fetch(values, body);
  packet.records.push_back({.segment = s, .payload_bytes = values.size_bytes(), .index_bytes = 0});
  if (own_copy != nullptr) device_.copy(values, own_copy->segment(layout_[s]));
}

// The positions that changed most since j last heard of them travel; the rest stays owed, as the difference between x
// and the copy, and so does what a quantiser rounds off. Exact codecs carry the values themselves, so that copies are x
// to the last bit; others the changes, which are small where values are not, so that a rounded copy comes ever closer.
void NeighbourLink::append_selected(OutgoingPacket& packet, SegmentId s, FloatBlock& own_copy, std::uint64_t gain) {
  const Codec& codec = *sparsifier_.codec;
  const std::size_t n = layout_[s].length;
  changes_->take(s, indices_, values_);
  const std::size_t room = codec.bound(indices_.size(), n);
  auto body = append_body(packet.bytes, room);
  const EncodedSize size = codec.encode(indices_, values_, n, row_ends_[s], body);
  body = body.first(size.total());
  packet.bytes.resize(packet.bytes.size() - room + body.size());
  write_header(body, {.segment = s,
                      .count = static_cast<std::uint32_t>(indices_.size()),
                      .bytes = body.size(),
                      .gain = gain,
                      .kind = body_of(sparsifier_, n)});
  packet.records.push_back({.segment = s, .payload_bytes = size.payload_bytes, .index_bytes = size.index_bytes});
  if (!codec.exact()) decode_selected(s, indices_.size(), body);  // what the receiver will read
  move_copy(own_copy.segment(layout_[s]));
  note_positions(sent_, s);
}

// A list of all positions is a segment that has crossed whole.
void NeighbourLink::note_positions(News& news, SegmentId s) {
  if (indices_.size() == layout_[s].length)
    news.add_all(s);
  else
    news.add(s, indices_);
}

void NeighbourLink::decode_selected(SegmentId s, std::size_t count, std::span<const std::byte> body) {
  sparsifier_.codec->decode(body, count, layout_[s].length, row_ends_[s], indices_, values_);
}

// The same on both ends of an edge: their copies agree bit for bit.
void NeighbourLink::move_copy(std::span<float> copy) {
  if (sparsifier_.codec->exact())
    device_.set_entries(indices_, values_, copy);
  else
    device_.add_entries(indices_, values_, copy);
}

void NeighbourLink::wait_for(const std::function<bool()>& ready) {
  if (ready()) return;
  const PhaseTimer timer(context_.ledger, Phase::wait);
  context_.engine.wait_until([&] { return ready() || context_.interrupted(); });
  if (!ready()) throw WaitInterrupted();
}

void NeighbourLink::receive(Iteration k) {
  if (lockstep() && k - options_.delay < first_) return;  // nobody has sent that
  const auto [first, end] = in_edges(k);
  for (std::size_t e = first; e < end; ++e) {
    if (links_[e].begins && may_take(e)) hear_whole(e, *context_.mailbox.front(e));
    if (!context_.neighbourhood.hears(e) || links_[e].lost || links_[e].begins) continue;
    if (lockstep()) {
      wait_for([&] { return context_.mailbox.front(e).has_value(); });
      apply_front(e);
      if (links_[e].newest_packet != k - options_.delay)
        throw std::logic_error("lockstep: a packet of another iteration arrived");
    } else {
      std::uint32_t segments = 0;
      while (context_.mailbox.front(e)) segments += apply_front(e);
      if (segments == 0 && !options_.repeats) continue;
    }
    note_age(e, k);
  }
}

void NeighbourLink::take_arrived() {
  if (lockstep()) return;
  for (std::size_t e = 0; e < links_.size(); ++e) {
    if (links_[e].begins && may_take(e)) hear_whole(e, *context_.mailbox.front(e));
    while (!links_[e].begins && context_.mailbox.front(e)) apply_front(e);
  }
}

/// On an edge that begins: the other end's model. What comes behind it is of an edge that has begun.
bool NeighbourLink::may_take(std::size_t edge) const {
  return !links_[edge].heard_whole && context_.mailbox.front(edge).has_value();
}

void NeighbourLink::hear_whole(std::size_t edge, std::span<const std::byte> packet) {
  const PhaseTimer timer(context_.ledger, Phase::mix);
  Edge& link = links_[edge];
  const PacketHeader header = packet_header(packet);
  take_whole_model(packet, layout_, context_.neighbourhood.rank, device_, link.theirs.span());
  link.newest_packet = header.iteration;
  link.newest_sent = {static_cast<std::uint32_t>(header.sent)};
  link.heard_whole = true;
  context_.mailbox.pop(edge);
}

void NeighbourLink::News::state(Archive& archive, const Layout& layout) {
  archive.values("what has crossed", std::span(crossed));
  archive.values("whose events have crossed", std::span(ends));
  for (SegmentId s = 0; s < crossed.size(); ++s) {
    if (crossed[s] > some_values) archive.refuse("what has crossed", "is of no known kind");
    if (ends[s] > both_ends) archive.refuse("whose events have crossed", "is neither end's");
    if (crossed[s] != some_values) {
      positions[s].clear();
      continue;
    }
    archive.list("positions that have crossed", positions[s], layout[s].length);
    require_ascending(archive, "positions that have crossed", positions[s], layout[s].length);
  }
}

void NeighbourLink::Gains::state(Archive& archive, std::size_t segments) {
  for (auto* values : {&own, &said, &said_next, &heard, &larger}) {
    archive.list("gains of an edge", *values, segments);
    if (!values->empty() && values->size() != segments) archive.refuse("gains of an edge", "are not of all segments");
    if (values->empty() != own.empty()) archive.refuse("gains of an edge", "are there in part");
  }
}

void NeighbourLink::state(Archive& archive) {
  archive.value("first iteration", first_);
  if (sparsifier_.selector) sparsifier_.selector->state(archive);
  for (std::size_t e = 0; e < links_.size(); ++e) {
    Edge& link = links_[e];
    block_state(archive, "copy of a neighbour", device_, link.theirs.span());
    archive.values("pending events", std::span(link.pending));
    link.news.state(archive, layout_);
    if (options_.delay > 0) link.next.state(archive, layout_);
    link.gains.state(archive, layout_.count());
    edges_[e].gains = link.gains.larger;
    archive.value("newest packet", link.newest_packet);
    if (link.newest_packet < -1) archive.refuse("newest packet", "is of " + std::to_string(link.newest_packet));
    archive.value("turn", link.our_turn);
  }
  for (FloatBlock& copy : own_copies_) block_state(archive, "what a neighbour holds", device_, copy.span());
  if (delays_own_copy()) block_state(archive, "what neighbours held", device_, own_before_.span());
  if (options_.delay > 0) last_packet_state(archive);
}

// A packet of the last iteration is under way on every edge, and no neighbour has used it: what a rank has saved is of
// the iteration before. Its sender has it, so nobody has to wait for anything before a checkpoint.
void NeighbourLink::last_packet_state(Archive& archive) {
  constexpr const char* name = "packet under way";
  std::vector<std::uint8_t> bytes;
  if (last_packet_ && !archive.loads()) {
    const auto* const first = reinterpret_cast<const std::uint8_t*>(last_packet_->bytes.data());
    bytes.assign(first, first + last_packet_->bytes.size());
  }
  archive.list(name, bytes, bound(every_segment_));
  if (!archive.loads() || bytes.empty()) return;
  const auto packet = std::as_bytes(std::span(bytes));
  if (packet.size() < sizeof(PacketHeader)) archive.refuse(name, "is shorter than a header");
  const PacketHeader header = packet_header(packet);
  if (header.bytes != packet.size() || !checksum_agrees(packet) || header.iteration < 0 ||
      header.sender != static_cast<std::uint32_t>(context_.neighbourhood.rank))
    archive.refuse(name, "is not one of this rank's");
  const auto again = pool_.lend();
  again->bytes.assign(packet.begin(), packet.end());
  last_packet_ = again;
  for (std::size_t e = 0; e < links_.size(); ++e)
    if (context_.neighbourhood.sends_to(e)) context_.mailbox.post(e, last_packet_);
  context_.engine.wake();
}

// Returns how many segments the packet has.
std::uint32_t NeighbourLink::apply_front(std::size_t edge) {
  const PhaseTimer timer(context_.ledger, Phase::mix);
  const std::uint32_t segments = apply(edge, *context_.mailbox.front(edge));
  context_.mailbox.pop(edge);
  return segments;
}

std::uint32_t NeighbourLink::apply(std::size_t edge, std::span<const std::byte> packet) {
  const PacketHeader header = packet_header(packet);
  links_[edge].newest_packet = header.iteration;
  links_[edge].newest_sent = {static_cast<std::uint32_t>(header.sent)};
  try {
    if (options_.by_turns && std::exchange(links_[edge].our_turn, true))
      throw CommunicationError("it has come out of turn");
    for_each_segment(packet, layout_, [&](const SegmentHeader& segment, std::span<const std::byte> body) {
      apply_segment(edge, segment, body);
    });
  } catch (const CommunicationError& error) {
    throw misfit(header, context_.neighbourhood.rank, error.what());
  }
  return header.segments;
}

void NeighbourLink::apply_segment(std::size_t edge, const SegmentHeader& header, std::span<const std::byte> body) {
  Edge& link = links_[edge];
  link.news.note_end(header.segment, other_end);
  if (!link.gains.none()) link.gains.hear(header.segment, gain_in(header));
  const auto copy = link.theirs.segment(layout_[header.segment]);
  const Body agreed = body_of(sparsifier_, copy.size());
  const auto name = [&] { return "segment '" + layout_[header.segment].name + "'"; };
  if (header.kind != agreed) {
    throw CommunicationError(name() + " is of kind " + std::to_string(header.kind) + " instead of " +
                             std::to_string(agreed));
  }
  if (agreed != whole_segment) {
    decode_selected(header.segment, header.count, body);
    move_copy(copy);
    note_positions(link.news, header.segment);
    return;
  }
  if (body.size() != copy.size_bytes()) {
    throw CommunicationError(name() + " has " + std::to_string(body.size()) + " bytes instead of " +
                             std::to_string(copy.size_bytes()));
  }
  device_.put(body, copy);
  link.news.add_all(header.segment);
}

NeighbourLink::EdgeRange NeighbourLink::out_edges(Iteration k) const {
  const auto& turns = context_.neighbourhood.turns;
  if (turns.empty()) return {0, links_.size()};
  const std::size_t to = turns[static_cast<std::size_t>(k) % turns.size()].to;
  return {to, to + 1};
}

NeighbourLink::EdgeRange NeighbourLink::in_edges(Iteration k) const {
  const auto& turns = context_.neighbourhood.turns;
  if (turns.empty()) return {0, links_.size()};
  const std::size_t from = turns[static_cast<std::size_t>(k) % turns.size()].from;
  return {from, from + 1};
}

std::span<const MixEdge> NeighbourLink::edges(Iteration k) const {
  const auto [first, end] = in_edges(k);
  return std::span(edges_).subspan(first, end - first);
}

}  // namespace hearsay
