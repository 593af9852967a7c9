#include "runtime/transport/mailbox.hpp"

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "runtime/transport/ledger.hpp"

namespace hearsay {
namespace {

std::size_t aligned(std::size_t bytes) { return (bytes + MailboxMap::line - 1) / MailboxMap::line * MailboxMap::line; }

CommunicationError corrupt(int sender, int receiver, const std::string& what) {
  return CommunicationError("mailbox: " + what + " from rank " + std::to_string(sender) + " to rank " +
                            std::to_string(receiver) +
                            " is corrupt, and was so for a thousand looks. The network or the window component damages "
                            "data; try another component (docs/guide/network.md)");
}

CommunicationError corrupt_packet(int sender, int receiver, const PacketHeader& header) {
  return corrupt(sender, receiver,
                 "the checksum, sender or length of a packet (iteration " + std::to_string(header.iteration) + ", " +
                     std::to_string(header.bytes) + " bytes)");
}

/// The length of the packet at the front of `here`. It was checked when the packet came, but it lies in memory that
/// somebody else writes.
std::size_t length_at(std::span<const std::byte> here, int sender, int receiver) {
  const PacketHeader header = packet_header(here);
  if (header.bytes < sizeof header || header.bytes > here.size()) throw corrupt_packet(sender, receiver, header);
  return header.bytes;
}

/// Copies what a neighbour may be writing at the same time: every word of `to` is some value of its word.
void copy_words(std::span<std::byte> from, std::span<std::uint64_t> to) {
  auto* const words = reinterpret_cast<std::uint64_t*>(from.data());
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::atomic_ref(words[i]).load(std::memory_order_acquire);
}

}  // namespace

std::size_t MailboxMap::capacity_for(std::size_t packet_bytes, std::size_t packets) {
  constexpr std::size_t most_in_all = std::size_t{3} << 35;
  static_assert(2 * most_in_all < position_range);  // a head may be a ring behind what is taken early
  const std::size_t most = most_in_all / (packets + 1);
  if (packet_bytes > most)
    throw ConfigError(
        "an iteration may send " + std::to_string(packet_bytes) +
        " bytes to one neighbour, and mailboxes take packets of " + std::to_string(most) +
        " bytes at most; send a part of the values (sparsify.selector), take an exchange without mailboxes "
        "(allreduce, gtopk, hitopk) or a smaller model");
  return (packets + 1) * aligned(packet_bytes);
}

Mailbox::Mailbox(RemoteMemory& memory, const Seats& seats, int process, std::size_t capacity_bytes, Ledger& ledger,
                 Tails tails)
    : memory_(memory),
      own_(memory.own()),
      patience_(memory.patience()),
      tails_(tails),
      ledger_(ledger),
      seats_(seats),
      process_(process),
      rank_(process),
      map_{.degree = 0, .capacity_bytes = capacity_bytes} {
  if (capacity_bytes % MailboxMap::line != 0) throw std::logic_error("mailbox: ring capacity is not a multiple of 64");
  if (capacity_bytes == 0) return;
  map_.degree = static_cast<int>(seats_.slots(process));
  if (own_.size() < map_.total_bytes()) throw std::logic_error("mailbox: window smaller than its map");
  if (!seats_.is_spare(process)) make_edges();
}

/// To the processes that began at the neighbouring vertices.
void Mailbox::make_edges() {
  for (const int neighbour : seats_.topology().neighbourhood(rank_).neighbours) {
    const End end = end_at(neighbour, neighbour);
    out_.push_back(std::make_unique<Outgoing>(end));
    in_.push_back(std::make_unique<Incoming>(end));
  }
}

Mailbox::End Mailbox::end_at(int neighbour, int process) const {
  const Seats::Standing us{.process = process_, .vertex = rank_}, them{.process = process, .vertex = neighbour};
  return {.neighbour = neighbour,
          .process = process,
          .remote = {.degree = static_cast<int>(seats_.slots(process)), .capacity_bytes = map_.capacity_bytes},
          .slot = static_cast<int>(seats_.slot(them, us)),
          .here = static_cast<int>(seats_.slot(us, them))};
}

void Mailbox::stand_at(int vertex) {
  if (!out_.empty() || map_.capacity_bytes == 0) throw std::logic_error("mailbox: stands at a vertex already");
  rank_ = vertex;
  make_edges();
  for (std::size_t edge = 0; edge < out_.size(); ++edge) drop(edge);
}

void Mailbox::attach(std::size_t edge, int process) {
  const End end = end_at(out_[edge]->to.neighbour, process);
  drop(edge);
  forget_posted(edge);
  former_out_.push_back(std::exchange(out_[edge], std::make_unique<Outgoing>(end)));
  former_in_.push_back(std::exchange(in_[edge], std::make_unique<Incoming>(end)));
}

bool Mailbox::fits(std::size_t edge, std::size_t bytes) const { return !is_lost(edge) && has_room(edge, bytes); }

bool Mailbox::has_room(std::size_t edge, std::size_t bytes) const {
  const Outgoing& out = *out_[edge];
  const std::uint64_t end = out.reserved.start_of(bytes).count() + aligned(bytes);
  return end - out.tail.load(std::memory_order_acquire) <= map_.capacity_bytes && out.posted.write_available() > 0;
}

std::size_t Mailbox::under_way(std::size_t edge) const {
  Outgoing& out = *out_[edge];
  const std::uint64_t tail = out.tail.load(std::memory_order_acquire);
  while (!out.ends.empty() && out.ends.front() <= tail) out.ends.pop_front();
  return out.ends.size();
}

void Mailbox::post(std::size_t edge, SharedPacket packet) {
  const std::size_t bytes = packet->bytes.size();
  if (!has_room(edge, bytes)) throw std::logic_error("mailbox: posted a packet that does not fit");
  Outgoing& out = *out_[edge];
  const Iteration k = packet_header(packet->bytes).iteration;
  if (k < std::exchange(out.last, k)) throw std::logic_error("mailbox: posted a packet of an earlier iteration");
  out.reserved = out.reserved.start_of(bytes);
  out.reserved.advance(aligned(bytes));
  static_cast<void>(under_way(edge));  // forgets what is popped
  out.ends.push_back(out.reserved.count());
  posted_.store(posted_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  out.posted.push(std::move(packet));
}

std::optional<std::span<const std::byte>> Mailbox::front(std::size_t edge) const {
  const Incoming& in = *in_[edge];
  if (is_lost(edge)) return std::nullopt;
  if (in.arrived.load(std::memory_order_acquire) == in.taken.count()) return std::nullopt;
  const auto here = bytes_at(edge, oldest(edge));
  return here.first(length_at(here, in.from.neighbour, rank_));
}

void Mailbox::pop(std::size_t edge) {
  ledger_.taken(edge);
  Incoming& in = *in_[edge];
  in.taken = oldest(edge);
  in.taken.advance(aligned(length_at(bytes_at(edge, in.taken), in.from.neighbour, rank_)));
  in.consumed.store(in.taken.count(), std::memory_order_release);
}

// Where the oldest packet that may be taken begins. There must be one.
RingPosition Mailbox::oldest(std::size_t edge) const {
  RingPosition position = in_[edge]->taken;
  if (packet_header(bytes_at(edge, position)).bytes == 0) position.advance(position.rest());
  return position;
}

// What travels goes out first: it needs nothing that a sync brings. Where a flush does not wait, an edge goes on at a
// later call: it first finishes what was under way, so that nothing that can be started now is left for a call that may
// never come. A flush that has done something is progress: whoever waits for the memory is not told of it again.
bool Mailbox::progress() {
  bool any = complete_stores();
  any = send_posted() || any;
  any = publish_packets() || any;
  any = return_bytes() || any;
  any = complete_stores() || any;
  memory_.sync();
  any = read_tails() || any;    // after it: a simulated window, once looked at, wakes nobody for what it has brought
  return receive_new() || any;  // last: who waits for a packet has it at once
}

std::uint64_t Mailbox::load_own(std::size_t offset) const {
  auto* word = reinterpret_cast<std::uint64_t*>(own_.data() + offset);
  return std::atomic_ref(*word).load(std::memory_order_acquire);
}

// True if one must be looked at again.
bool Mailbox::read_tails() {
  bool again = false;
  for (std::size_t edge = 0; edge < out_.size(); ++edge) {
    if (is_lost(edge)) continue;
    Outgoing& out = *out_[edge];
    const std::uint64_t word = load_own(map_.tail(out.to.here));
    const auto tail = position_of_word(word, out.tail.load(std::memory_order_relaxed), out.put.count());
    if (tail) out.tail.store(*tail, std::memory_order_release);
    out.looks = tail ? 0 : out.looks + 1;
    if (out.looks > most_looks) throw corrupt(out.to.neighbour, rank_, "the tail of a ring");
    again = again || !tail;
  }
  return again;
}

// All packets of all edges are started before the first flush, so that they travel side by side; likewise the heads.
bool Mailbox::send_posted() {
  if (!sending()) return false;
  bool any = false;
  for (std::size_t edge = 0; edge < out_.size(); ++edge) any = start_packets(edge) || any;
  for (std::size_t edge = 0; edge < out_.size(); ++edge) any = complete_packets(edge) || any;
  return any;
}

// What is in flight stays: MPI may still read it.
void Mailbox::forget_posted(std::size_t edge) {
  Outgoing& out = *out_[edge];
  std::size_t packets = std::exchange(out.unpublished, 0);
  if (!out.forgotten) packets += out.in_flight.size();
  out.forgotten = true;
  while (out.posted.consume_one([&](const SharedPacket&) { ++packets; })) {
  }
  if (packets > 0) sent_.store(sent_.load(std::memory_order_relaxed) + packets, std::memory_order_release);
}

bool Mailbox::start_packets(std::size_t edge) {
  Outgoing& out = *out_[edge];
  if (is_lost(edge)) {
    forget_posted(edge);
    return false;
  }
  if (!out.in_flight.empty() || out.head_in_flight) return false;
  while (out.posted.consume_one([&](SharedPacket& packet) { out.in_flight.push_back(std::move(packet)); })) {
  }
  if (ledger_.watched()) out.put_from = ledger_.now();
  for (const SharedPacket& packet : out.in_flight) put_packet(edge, out, *packet);
  return !out.in_flight.empty();
}

void Mailbox::put_packet(std::size_t edge, Outgoing& out, const OutgoingPacket& packet) {
  const std::size_t ring = out.to.remote.ring(out.to.slot), bytes = packet.bytes.size();
  const RingPosition start = out.put.start_of(bytes);
  const Iteration k = packet_header(packet.bytes).iteration;
  const bool anew = start.count() != out.put.count();
  out.urgent = out.urgent || anew || bytes > early_bytes || k <= out.last_put;
  out.last_put = k;
  if (anew) {
    out.marker = start_anew(rank_, k);
    const auto marker = std::as_bytes(std::span(&out.marker, 1));
    memory_.put(marker, out.to.process, ring + out.put.index());
    ledger_.header_put(edge, marker.size());
  }
  memory_.put(packet.bytes, out.to.process, ring + start.index());
  ledger_.packet_put(edge, packet);
  out.put = start;
  out.put.advance(aligned(bytes));
}

bool Mailbox::complete_packets(std::size_t edge) {
  Outgoing& out = *out_[edge];
  if (is_lost(edge) || out.in_flight.empty() || !memory_.flush(out.to.process)) return false;
  const std::size_t packets = out.in_flight.size();
  out.in_flight.clear();
  out.unpublished += packets;
  if (out.urgent || patience_ == 0) {
    out.waiting_for_head = packets;
    store_head(edge);
  } else {
    ledger_.published(edge, packets, out.put_from);
  }
  return true;
}

// What can be taken without its head, and whose head was put off for long enough.
bool Mailbox::publish_packets() {
  if (!sending()) return false;
  bool any = false;
  for (std::size_t edge = 0; edge < out_.size(); ++edge) {
    Outgoing& out = *out_[edge];
    const bool due = !is_lost(edge) && out.unpublished > 0 && out.in_flight.empty() && !out.head_in_flight;
    if (!due || ++out.head_put_off < patience_) continue;
    store_head(edge);
    any = true;
  }
  return any;
}

void Mailbox::store_head(std::size_t edge) {
  Outgoing& out = *out_[edge];
  out.head_word = word_of_position(out.put.count());
  memory_.store(out.head_word, out.to.process, out.to.remote.head(out.to.slot));
  ledger_.control_put(edge, sizeof out.head_word);
  out.head_in_flight = true;
  out.urgent = false;
  out.head_put_off = 0;
}

// Heads and tails to one neighbour share a flush.
bool Mailbox::complete_stores() {
  bool any = false;
  for (std::size_t edge = 0; edge < out_.size(); ++edge) {
    Outgoing& out = *out_[edge];
    Incoming& in = *in_[edge];
    if (is_lost(edge) || !(out.head_in_flight || in.tail_in_flight) || !memory_.flush(out.to.process)) continue;
    if (out.head_in_flight) {
      if (out.waiting_for_head > 0) ledger_.published(edge, std::exchange(out.waiting_for_head, 0), out.put_from);
      sent_.store(sent_.load(std::memory_order_relaxed) + std::exchange(out.unpublished, 0), std::memory_order_release);
    }
    out.head_in_flight = in.tail_in_flight = false;
    any = true;
  }
  return any;
}

bool Mailbox::receive_new() {
  bool any = false;
  for (std::size_t edge = 0; edge < in_.size(); ++edge) any = check_arrived(edge) || any;
  return any;
}

// The ring from a position to its end.
std::span<std::byte> Mailbox::bytes_at(std::size_t edge, const RingPosition& position) const {
  return own_.subspan(map_.ring(in_[edge]->from.here) + position.index(), position.rest());
}

// True if something has come, or must be looked at again.
bool Mailbox::check_arrived(std::size_t edge) {
  if (is_lost(edge)) return false;
  Incoming& in = *in_[edge];
  const std::uint64_t word = load_own(map_.head(in.from.here));
  const auto head = position_of_word(word, in.head, in.returned + map_.capacity_bytes);
  if (head) in.head = *head;
  bool any = false, whole = true;
  while (whole && in.checked.count() < in.head) {
    whole = take_published(edge);
    any = any || whole;
  }
  if (const auto early = whole ? early_packet(edge) : std::nullopt) {
    accept(edge, *early);
    any = true;
  }
  in.looks = any || (head && whole) ? 0 : in.looks + 1;
  if (in.looks <= most_looks) return any || in.looks > 0;
  if (!head) throw corrupt(in.from.neighbour, rank_, "the head of a ring");
  throw corrupt_packet(in.from.neighbour, rank_, packet_header(bytes_at(edge, in.checked)));
}

void Mailbox::accept(std::size_t edge, const PacketHeader& header) {
  Incoming& in = *in_[edge];
  in.last_checked = header.iteration;
  in.checked.advance(aligned(header.bytes));
  in.arrived.store(in.checked.count(), std::memory_order_release);
}

// The next packet before the head, or the rest of the ring that is left unused, if all of it is there: bytes that agree
// with their checksum and are not of an earlier round of the ring.
bool Mailbox::take_published(std::size_t edge) {
  Incoming& in = *in_[edge];
  const auto here = bytes_at(edge, in.checked);
  const PacketHeader header = packet_header(here);
  const bool anew = header.bytes == 0;
  const std::uint64_t bytes = anew ? sizeof header : header.bytes;
  const bool plausible = bytes >= sizeof header && bytes <= here.size() && header.iteration >= in.last_checked &&
                         static_cast<int>(header.sender) == in.from.neighbour;
  if (!plausible || !checksum_agrees(here.first(bytes))) return false;
  const std::uint64_t taken = anew ? here.size() : aligned(bytes);
  if (taken > in.head - in.checked.count()) return false;
  if (anew)
    in.checked.advance(taken);
  else
    accept(edge, header);
  return true;
}

// The header of the packet that comes next, if it is a small one, new and whole. Its bytes may change while they are
// looked at; once they agree with the checksum, a word of them may still be put, with the value that it has already.
std::optional<PacketHeader> Mailbox::early_packet(std::size_t edge) const {
  const Incoming& in = *in_[edge];
  const auto here = bytes_at(edge, in.checked);
  constexpr std::size_t header_words = sizeof(PacketHeader) / sizeof(std::uint64_t);
  std::array<std::uint64_t, early_bytes / sizeof(std::uint64_t)> copy;
  const auto bytes = std::as_bytes(std::span(copy));
  copy_words(here, std::span(copy).first(header_words));
  const PacketHeader header = packet_header(bytes);
  const bool plausible = header.iteration > in.last_checked && header.bytes >= sizeof header &&
                         header.bytes <= bytes.size() && header.bytes <= here.size() &&
                         static_cast<int>(header.sender) == in.from.neighbour;
  if (!plausible) return std::nullopt;
  const std::size_t words = (header.bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  copy_words(here.subspan(sizeof header), std::span(copy).subspan(header_words, words - header_words));
  return checksum_agrees(bytes.first(header.bytes)) ? std::optional(header) : std::nullopt;
}

// All stores come before the first flush, so that they travel side by side. A tail is put off only while the bytes
// that it gives back are few: two of the largest packets always fit behind them.
bool Mailbox::return_bytes() {
  bool any = false;
  for (std::size_t edge = 0; edge < in_.size(); ++edge) {
    Incoming& in = *in_[edge];
    const std::uint64_t consumed = in.consumed.load(std::memory_order_acquire);
    if (is_lost(edge) || in.tail_in_flight || consumed == in.returned) continue;
    const bool few = tails_ == Tails::may_wait && consumed - in.returned < map_.capacity_bytes / 4;
    if (few && ++in.tail_put_off < patience_) continue;
    in.returned = consumed;
    in.tail_word = word_of_position(consumed);
    in.tail_put_off = 0;
    memory_.store(in.tail_word, in.from.process, in.from.remote.tail(in.from.slot));
    ledger_.control_put(edge, sizeof in.tail_word);
    in.tail_in_flight = any = true;
  }
  return any;
}

}  // namespace hearsay
