#pragma once
// Every rank floods every neighbour with packets of random size and checks what it gets: the law of the mailbox
// (exactly once, whole, in order, bounded) under load, over any RemoteMemory.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.hpp"
#include "runtime/transport/engine.hpp"
#include "runtime/transport/mailbox.hpp"

namespace hearsay::test {

struct StressPlan {
  std::int64_t packets_per_edge = 1000;
  std::size_t largest_body_words = 256;  ///< body sizes are uniform in 0 … this
  double consumer_naps = 0.0;            ///< probability that a rank sleeps `nap` before it looks at a packet
  std::chrono::microseconds nap{100};
  std::uint64_t seed = 1;

  std::size_t largest_packet() const { return sizeof(PacketHeader) + 8 * largest_body_words; }
};

struct StressResult {
  std::int64_t received = 0;
  std::int64_t torn = 0;          ///< a body that is not the sender's
  std::int64_t out_of_order = 0;  ///< a sequence number that is not the next one: lost, duplicated or reordered
  std::int64_t refused = 0;       ///< how often a ring was full
};

/// The body of packet `sequence` on the edge from → to: the same on both sides.
inline std::vector<std::uint64_t> stress_body(const StressPlan& plan, int from, int to, std::int64_t sequence) {
  const auto edge = static_cast<std::uint64_t>(from) * 1024 + static_cast<std::uint64_t>(to);
  const std::uint64_t base = scramble(plan.seed + scramble(edge) + scramble(static_cast<std::uint64_t>(sequence)));
  std::vector<std::uint64_t> body(base % (plan.largest_body_words + 1));
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = scramble(base + i);
  return body;
}

class StressRank {
 public:
  StressRank(const StressPlan& plan, const Neighbourhood& neighbourhood, Mailbox& mailbox, CommunicationEngine& engine)
      : plan_(plan),
        neighbourhood_(neighbourhood),
        mailbox_(mailbox),
        engine_(engine),
        random_(stream_seed(plan.seed, "stress", static_cast<std::uint64_t>(neighbourhood.rank))),
        sent_(neighbourhood.neighbours.size()),
        received_(neighbourhood.neighbours.size()) {}

  StressResult run() {
    while (!finished()) {
      bool posted = false;
      for (std::size_t e = 0; e < sent_.size(); ++e) posted = send_one(e) || posted;
      if (posted) engine_.wake();
      bool taken = false;
      for (std::size_t e = 0; e < received_.size(); ++e) taken = take_one(e) || taken;
      if (!posted && !taken) engine_.wait_until([this] { return finished() || something_to_do(); });
    }
    return result_;
  }

 private:
  bool something_to_do() const {
    for (std::size_t e = 0; e < sent_.size(); ++e) {
      if (mailbox_.front(e)) return true;
      if (sent_[e] < plan_.packets_per_edge && mailbox_.fits(e, bytes_of(next_body(e)))) return true;
    }
    return false;
  }
  std::vector<std::uint64_t> next_body(std::size_t edge) const {
    return stress_body(plan_, neighbourhood_.rank, neighbourhood_.neighbours[edge], sent_[edge]);
  }
  static std::size_t bytes_of(const std::vector<std::uint64_t>& body) { return sizeof(PacketHeader) + 8 * body.size(); }

  bool finished() const {
    for (std::size_t e = 0; e < sent_.size(); ++e) {
      if (sent_[e] < plan_.packets_per_edge || received_[e] < plan_.packets_per_edge) return false;
    }
    return true;
  }

  bool send_one(std::size_t edge) {
    if (sent_[edge] == plan_.packets_per_edge) return false;
    const auto body = next_body(edge);
    const std::size_t bytes = bytes_of(body);
    if (!mailbox_.fits(edge, bytes)) {
      ++result_.refused;
      return false;
    }
    auto packet = pool_.lend();
    packet->bytes.resize(bytes);
    std::ranges::copy(std::as_bytes(std::span(body)), packet->bytes.begin() + sizeof(PacketHeader));
    seal_packet(packet->bytes, neighbourhood_.rank, sent_[edge], 0);
    mailbox_.post(edge, std::move(packet));
    ++sent_[edge];
    return true;
  }

  bool take_one(std::size_t edge) {
    const auto packet = mailbox_.front(edge);
    if (!packet) return false;
    if (random_.uniform() < plan_.consumer_naps) std::this_thread::sleep_for(plan_.nap);
    const PacketHeader header = packet_header(*packet);
    if (header.iteration != received_[edge]) ++result_.out_of_order;
    const auto expected = stress_body(plan_, neighbourhood_.neighbours[edge], neighbourhood_.rank, header.iteration);
    const auto body = packet->subspan(sizeof header);
    if (!std::ranges::equal(body, std::as_bytes(std::span(expected)))) ++result_.torn;
    mailbox_.pop(edge);
    ++received_[edge];
    ++result_.received;
    return true;
  }

  StressPlan plan_;
  Neighbourhood neighbourhood_;
  Mailbox& mailbox_;
  CommunicationEngine& engine_;
  PacketPool pool_;
  Random random_;
  std::vector<std::int64_t> sent_, received_;
  StressResult result_;
};

inline void check_stress(const StressResult& result, const StressPlan& plan, std::size_t neighbours) {
  CHECK(result.received == plan.packets_per_edge * static_cast<std::int64_t>(neighbours));
  CHECK(result.torn == 0);
  CHECK(result.out_of_order == 0);
}

}  // namespace hearsay::test
