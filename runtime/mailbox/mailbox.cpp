#include "runtime/mailbox/mailbox.hpp"

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/ledger/ledger.hpp"

namespace hearsay {
namespace {

std::size_t aligned(std::size_t bytes) { return (bytes + MailboxMap::line - 1) / MailboxMap::line * MailboxMap::line; }

/// Said where a sender leaves the rest of the ring unused: a length of 0 where the next packet's header would be.
constexpr PacketHeader start_anew{};

CommunicationError corrupt_packet(int sender, int receiver, const PacketHeader& header) {
  return CommunicationError("mailbox: a packet from rank " + std::to_string(sender) + " to rank " +
                            std::to_string(receiver) + " is corrupt (iteration " + std::to_string(header.iteration) +
                            ", " + std::to_string(header.bytes) +
                            " bytes): checksum, sender or length is wrong. The network or the window component damages "
                            "data; try another component (docs/running.md)");
}

/// Copies what a neighbour may be writing at the same time: every word of `to` is some value of its place.
void copy_words(std::span<std::byte> from, std::span<std::uint64_t> to) {
  auto* const words = reinterpret_cast<std::uint64_t*>(from.data());
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::atomic_ref(words[i]).load(std::memory_order_acquire);
}

}  // namespace

std::size_t MailboxMap::capacity_for(std::size_t packet_bytes) { return 3 * aligned(packet_bytes); }

Mailbox::Mailbox(RemoteMemory& memory, const Topology& topology, int rank, std::size_t capacity_bytes, Ledger& ledger)
    : memory_(memory),
      own_(memory.own()),
      ledger_(ledger),
      rank_(rank),
      map_{.degree = 0, .capacity_bytes = capacity_bytes} {
  if (capacity_bytes % MailboxMap::line != 0) throw std::logic_error("mailbox: ring capacity is not a multiple of 64");
  if (capacity_bytes == 0) return;
  const Neighbourhood own = topology.neighbourhood(rank);
  map_.degree = static_cast<int>(own.neighbours.size());
  if (own_.size() < map_.total_bytes()) throw std::logic_error("mailbox: window smaller than its map");
  for (const int neighbour : own.neighbours) {
    const Neighbourhood theirs = topology.neighbourhood(neighbour);
    const MailboxMap remote{.degree = static_cast<int>(theirs.neighbours.size()), .capacity_bytes = capacity_bytes};
    const int slot = static_cast<int>(theirs.slot(rank));
    out_.push_back(std::make_unique<Outgoing>());
    out_.back()->neighbour = neighbour, out_.back()->remote = remote, out_.back()->remote_slot = slot;
    in_.push_back(std::make_unique<Incoming>());
    in_.back()->neighbour = neighbour, in_.back()->remote = remote, in_.back()->remote_slot = slot;
  }
}

std::uint64_t Mailbox::start_of(std::uint64_t position, std::size_t bytes) const {
  const std::size_t rest = map_.capacity_bytes - position % map_.capacity_bytes;
  return bytes <= rest ? position : position + rest;
}

bool Mailbox::fits(std::size_t edge, std::size_t bytes) const {
  const Outgoing& out = *out_[edge];
  const std::uint64_t end = start_of(out.reserved, bytes) + aligned(bytes);
  return end - out.tail.load(std::memory_order_acquire) <= map_.capacity_bytes;
}

void Mailbox::post(std::size_t edge, SharedPacket packet) {
  if (!fits(edge, packet->bytes.size())) throw std::logic_error("mailbox: posted a packet that does not fit");
  Outgoing& out = *out_[edge];
  const Iteration k = packet_header(packet->bytes).iteration;
  if (k < std::exchange(out.last, k)) throw std::logic_error("mailbox: posted a packet of an earlier iteration");
  out.reserved = start_of(out.reserved, packet->bytes.size()) + aligned(packet->bytes.size());
  const std::lock_guard lock(mutex_);
  out.posted.push_back(std::move(packet));
  ++unsent_;
}

std::optional<std::span<const std::byte>> Mailbox::front(std::size_t edge) const {
  const Incoming& in = *in_[edge];
  if (in.waiting.load(std::memory_order_acquire) == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return in.arrived.front().bytes;
}

void Mailbox::pop(std::size_t edge) {
  ledger_.taken(edge);
  const std::lock_guard lock(mutex_);
  Incoming& in = *in_[edge];
  in.consumed.store(in.arrived.front().position, std::memory_order_release);
  in.arrived.pop_front();
  in.waiting.store(in.arrived.size(), std::memory_order_relaxed);
}

// What travels goes out first: it needs nothing that a sync brings. Where a flush does not wait, an edge goes on at a later
// call: it first finishes what was under way, so that nothing that can be started now is left for a call that may never
// come. A flush that has done something is progress: whoever waits for the memory is not told of it again.
bool Mailbox::progress() {
  bool any = complete_stores();
  any = send_posted() || any;
  memory_.sync();
  read_tails();  // after it: a simulated window, once looked at, wakes nobody for what it has brought
  any = receive_new() || any;
  any = return_places() || any;
  return complete_stores() || any;
}

std::uint64_t Mailbox::load_own(std::size_t offset) const {
  auto* word = reinterpret_cast<std::uint64_t*>(own_.data() + offset);
  return std::atomic_ref(*word).load(std::memory_order_acquire);
}

void Mailbox::read_tails() {
  for (std::size_t edge = 0; edge < out_.size(); ++edge)
    out_[edge]->tail.store(load_own(map_.tail(static_cast<int>(edge))), std::memory_order_release);
}

// All packets of all edges are started before the first flush, so that they travel side by side; likewise the heads.
bool Mailbox::send_posted() {
  if (!sending()) return false;
  bool any = false;
  for (std::size_t edge = 0; edge < out_.size(); ++edge) any = start_packets(edge) || any;
  for (std::size_t edge = 0; edge < out_.size(); ++edge) any = publish_packets(edge) || any;
  return any;
}

bool Mailbox::start_packets(std::size_t edge) {
  Outgoing& out = *out_[edge];
  if (!out.in_flight.empty()) return false;
  {
    const std::lock_guard lock(mutex_);
    out.in_flight.swap(out.posted);
  }
  if (ledger_.watched()) out.put_from = ledger_.now();
  for (const SharedPacket& packet : out.in_flight) put_packet(edge, out, *packet);
  return !out.in_flight.empty();
}

bool Mailbox::publish_packets(std::size_t edge) {
  Outgoing& out = *out_[edge];
  if (out.in_flight.empty() || out.head_stored || !memory_.flush(out.neighbour)) return false;
  out.head_word = out.published;
  memory_.store(out.head_word, out.neighbour, out.remote.head(out.remote_slot));
  ledger_.control_put(edge, sizeof out.head_word);
  out.head_stored = true;
  return true;
}

// Heads and tails to one neighbour share a flush.
bool Mailbox::complete_stores() {
  bool any = false;
  for (std::size_t edge = 0; edge < out_.size(); ++edge) {
    Outgoing& out = *out_[edge];
    Incoming& in = *in_[edge];
    if (!(out.head_stored || in.tail_in_flight) || !memory_.flush(out.neighbour)) continue;
    if (out.head_stored) finish_packets(edge);
    in.tail_in_flight = false;
    any = true;
  }
  return any;
}

void Mailbox::finish_packets(std::size_t edge) {
  Outgoing& out = *out_[edge];
  ledger_.published(edge, out.in_flight.size(), out.put_from);
  unsent_ -= out.in_flight.size();
  out.in_flight.clear();
  out.head_stored = false;
}

void Mailbox::put_packet(std::size_t edge, Outgoing& out, const OutgoingPacket& packet) {
  const std::size_t ring = out.remote.ring(out.remote_slot);
  const std::uint64_t start = start_of(out.published, packet.bytes.size());
  if (start != out.published) {
    const auto marker = std::as_bytes(std::span(&start_anew, 1));
    memory_.put(marker, out.neighbour, ring + out.published % map_.capacity_bytes);
    ledger_.header_put(edge, marker.size());
  }
  memory_.put(packet.bytes, out.neighbour, ring + start % map_.capacity_bytes);
  ledger_.packet_put(edge, packet);
  out.published = start + aligned(packet.bytes.size());
}

bool Mailbox::receive_new() {
  bool any = false;
  for (std::size_t edge = 0; edge < in_.size(); ++edge) {
    const std::vector<Arrived> fresh = check_arrived(edge, load_own(map_.head(static_cast<int>(edge))));
    if (fresh.empty()) continue;
    Incoming& in = *in_[edge];
    const std::lock_guard lock(mutex_);
    in.arrived.insert(in.arrived.end(), fresh.begin(), fresh.end());
    in.waiting.store(in.arrived.size(), std::memory_order_release);
    any = true;
  }
  return any;
}

// Where the packet behind the last one that was handed out would be, with the rest of the ring.
std::span<std::byte> Mailbox::next_place(std::size_t edge) const {
  const std::size_t index = in_[edge]->seen % map_.capacity_bytes;
  return own_.subspan(map_.ring(static_cast<int>(edge)) + index, map_.capacity_bytes - index);
}

std::vector<Mailbox::Arrived> Mailbox::check_arrived(std::size_t edge, std::uint64_t head) const {
  Incoming& in = *in_[edge];
  std::vector<Arrived> fresh;
  while (in.seen < head) {
    const auto place = next_place(edge);
    const PacketHeader header = packet_header(place);
    if (header.bytes == 0) {
      in.seen += place.size();
      if (in.seen > head) throw corrupt_packet(in.neighbour, rank_, header);
      continue;
    }
    const bool sane = header.bytes >= sizeof header && header.bytes <= place.size() &&
                      in.seen + aligned(header.bytes) <= head && static_cast<int>(header.sender) == in.neighbour;
    if (!sane || !checksum_agrees(place.first(header.bytes))) throw corrupt_packet(in.neighbour, rank_, header);
    fresh.push_back(hand_out(edge));
  }
  while (early_packet(edge)) fresh.push_back(hand_out(edge));
  return fresh;
}

Mailbox::Arrived Mailbox::hand_out(std::size_t edge) const {
  Incoming& in = *in_[edge];
  const auto place = next_place(edge);
  const PacketHeader header = packet_header(place);
  in.seen += aligned(header.bytes);
  in.last = header.iteration;
  return {.position = in.seen, .bytes = place.first(header.bytes)};
}

// Whether behind the last packet there is a small one, new and whole. Its bytes may change while they are looked at; once
// they agree with the checksum, a word of them may still be put, with the value that it has already.
bool Mailbox::early_packet(std::size_t edge) const {
  const Incoming& in = *in_[edge];
  const auto place = next_place(edge);
  std::array<std::uint64_t, early_bytes / sizeof(std::uint64_t)> copy;
  const auto bytes = std::as_bytes(std::span(copy));
  copy_words(place, std::span(copy).first(sizeof(PacketHeader) / sizeof(std::uint64_t)));
  const PacketHeader header = packet_header(bytes);
  const bool plausible = header.iteration > in.last && header.bytes >= sizeof header && header.bytes <= bytes.size() &&
                         header.bytes <= place.size() && static_cast<int>(header.sender) == in.neighbour;
  if (!plausible) return false;
  copy_words(place, std::span(copy).first((header.bytes + 7) / sizeof(std::uint64_t)));
  return packet_header(bytes).bytes == header.bytes && checksum_agrees(bytes.first(header.bytes));
}

// All stores come before the first flush, so that they travel side by side.
bool Mailbox::return_places() {
  bool any = false;
  for (std::size_t edge = 0; edge < in_.size(); ++edge) {
    Incoming& in = *in_[edge];
    const std::uint64_t consumed = in.consumed.load(std::memory_order_acquire);
    if (in.tail_in_flight || consumed == in.returned) continue;
    in.returned = in.tail_word = consumed;
    memory_.store(in.tail_word, in.neighbour, in.remote.tail(in.remote_slot));
    ledger_.control_put(edge, sizeof in.tail_word);
    in.tail_in_flight = any = true;
  }
  return any;
}

}  // namespace hearsay
