#include "runtime/exchange/neighbour/link/link.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/replica/block_state.hpp"

namespace hearsay {
namespace {

FloatBlock copy_of(const FloatBlock& block, Device& device) {
  FloatBlock copy = device.block(block.size());
  device.copy(block.span(), copy.span());
  return copy;
}

}  // namespace

NeighbourLink::NeighbourLink(const ExchangeContext& context, LinkOptions options, Sparsifier sparsifier)
    : EdgeListener(context.edges),
      context_(context),
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
                      .news = EdgeNews(layout_.count()),
                      .next = EdgeNews(layout_.count()),
                      .sends_next = context.neighbourhood.rank < context.neighbourhood.neighbours[e]});
  }
  if (const auto rule = step_rule_of(sparsifier_); rule && rule->fixed) step_ = sent_step(*rule->fixed);
  const auto segments = layout_.segments();
  if (sparsifier_.codec && sparsifier_.codec->by_rows())
    for (const Segment& s : segments) row_ends_.push_back(row_ends(layout_, {.begin = s.offset, .length = s.length}));
  row_ends_.resize(layout_.count());
  const auto whole = [&](const Segment& s) { return travels_whole(sparsifier_, s.length); };
  const bool all_whole = std::ranges::all_of(segments, whole);
  if (!all_whole) quantiser_ = device_.quantise_changes(layout_, sparsifier_);
  if (!all_whole && !quantiser_) changes_ = device_.select_changes(layout_, sparsifier_);
  if (options_.keep_own_copies || !all_whole) {
    const std::size_t copies = options_.own_copy_by_edge() ? degree : std::min<std::size_t>(degree, 1);
    for (std::size_t c = 0; c < copies; ++c) own_copies_.push_back(copy_of(initial, device_));
  }
  if (delays_own_copy()) own_before_ = copy_of(initial, device_);
  for (std::size_t e = 0; e < degree; ++e) {
    const Neighbourhood& row = context.neighbourhood;
    std::span<const float> ours = context.replica.values.span();
    if (!own_copies_.empty()) ours = delays_own_copy() ? own_before_.span() : own_copy(e).span();
    edges_.push_back({.weight = static_cast<float>(row.phases.empty() ? row.weights[e] : row.phase_weight),
                      .theirs = links_[e].theirs.span(),
                      .ours = ours,
                      .crossed = links_[e].news.crossed,
                      .ends = links_[e].news.ends,
                      .positions = links_[e].news.positions});
  }
}

// Its copy moves nothing any more.
void NeighbourLink::edge_lost(std::size_t edge) {
  edges_[edge].weight = 0.0F;
  for (SegmentId s = 0; s < layout_.count(); ++s) links_[edge].news.clear(s), links_[edge].next.clear(s);
}

void NeighbourLink::edge_begins(std::size_t edge) {
  edge_lost(edge);
  Edge& link = links_[edge];
  link.sent_whole = link.heard_whole = false;
  std::ranges::fill(link.pending, std::uint8_t{0});
  link.gains.forget();
  link.newest_packet = -1;
  link.sends_next = context_.neighbourhood.rank < context_.neighbourhood.neighbours[edge];
}

void NeighbourLink::agree_if_whole(std::size_t edge) {
  if (links_[edge].sent_whole && links_[edge].heard_whole) context_.edges.agree(edge);
}

void NeighbourLink::edge_mixes(std::size_t edge) {
  edges_[edge].weight = static_cast<float>(context_.neighbourhood.weights[edge]);
}

void NeighbourLink::say_gains(std::size_t edge, std::span<const float> gains) {
  if (gains.empty()) return;
  links_[edge].gains.set(gains);
  edges_[edge].gains = links_[edge].gains.larger;
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

// All of its values are a segment that has crossed whole; else `indices_` says which.
void NeighbourLink::note_positions(EdgeNews& news, SegmentId s, std::size_t count) {
  if (count == layout_[s].length)
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
    archive.value("sends next", link.sends_next);
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
  again->pin.reset();
  again->bytes.assign(packet.begin(), packet.end());
  last_packet_ = again;
  for (std::size_t e = 0; e < links_.size(); ++e)
    if (context_.neighbourhood.sends_to(e)) context_.mailbox.post(e, last_packet_);
  context_.engine.wake();
}

NeighbourLink::EdgeRange NeighbourLink::out_edges(Iteration k) const {
  const auto& phases = context_.neighbourhood.phases;
  if (phases.empty()) return {0, links_.size()};
  const std::size_t to = phases[static_cast<std::size_t>(k) % phases.size()].to;
  return {to, to + 1};
}

NeighbourLink::EdgeRange NeighbourLink::in_edges(Iteration k) const {
  const auto& phases = context_.neighbourhood.phases;
  if (phases.empty()) return {0, links_.size()};
  const std::size_t from = phases[static_cast<std::size_t>(k) % phases.size()].from;
  return {from, from + 1};
}

std::span<const MixEdge> NeighbourLink::edges(Iteration k) const {
  const auto [first, end] = in_edges(k);
  return std::span(edges_).subspan(first, end - first);
}

}  // namespace hearsay
