#pragma once
// Point-to-point messages between threads of one process, with the traffic of every rank counted.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "runtime/collectives/ring.hpp"
#include "runtime/transport/peers.hpp"

namespace hearsay::test {

/// What one rank has sent.
struct Traffic {
  std::uint64_t messages = 0, bytes = 0, payload_bytes = 0, index_bytes = 0;
};

/// The messages under way between all ranks of a job.
class PostOffice {
 public:
  /// `delays`: a seed; whoever posts is held up by 0 to 300 µs, at random.
  explicit PostOffice(int ranks, std::vector<int> nodes = {}, std::optional<std::uint64_t> delays = {})
      : ranks_(ranks),
        nodes_(nodes.empty() ? std::vector<int>(static_cast<std::size_t>(ranks), 0) : std::move(nodes)),
        traffic_(static_cast<std::size_t>(ranks)) {
    if (delays) delays_.emplace(*delays);
  }

  int ranks() const { return ranks_; }
  const std::vector<int>& nodes() const { return nodes_; }
  Traffic traffic(int rank) const {
    const std::lock_guard lock(mutex_);
    return traffic_[static_cast<std::size_t>(rank)];
  }

  void post(int from, int to, const Message& message) {
    hold_up();
    const std::lock_guard lock(mutex_);
    Traffic& traffic = traffic_[static_cast<std::size_t>(from)];
    traffic.messages += 1;
    traffic.bytes += message.bytes.size();
    traffic.payload_bytes += message.payload_bytes;
    traffic.index_bytes += message.index_bytes;
    boxes_[{from, to}].emplace_back(message.bytes.begin(), message.bytes.end());
    arrived_.notify_all();
  }
  std::vector<std::byte> take(int from, int to) {
    std::unique_lock lock(mutex_);
    auto& box = boxes_[{from, to}];
    const bool came = arrived_.wait_for(lock, std::chrono::seconds(60), [&] { return failed_ || !box.empty(); });
    if (box.empty()) throw std::runtime_error(came ? "another rank has failed" : "no message within a minute");
    std::vector<std::byte> bytes = std::move(box.front());
    box.pop_front();
    return bytes;
  }
  /// Ends all waiting.
  void fail() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    arrived_.notify_all();
  }
  bool empty() {
    const std::lock_guard lock(mutex_);
    for (const auto& [edge, box] : boxes_)
      if (!box.empty()) return false;
    return true;
  }

 private:
  void hold_up() {
    if (!delays_) return;
    std::unique_lock lock(mutex_);
    const std::chrono::microseconds delay(delays_->below(300));
    lock.unlock();
    std::this_thread::sleep_for(delay);
  }

  int ranks_;
  std::vector<int> nodes_;
  std::optional<Random> delays_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> boxes_;
  std::vector<Traffic> traffic_;
  bool failed_ = false;
};

class LocalPeers final : public Peers {
 public:
  /// `sent` is told of every message.
  LocalPeers(
      PostOffice& office, int rank, std::function<void(int, const Message&)> sent = [](int, const Message&) {})
      : office_(office), rank_(rank), sent_(std::move(sent)) {}
  int rank() const override { return rank_; }
  int size() const override { return office_.ranks(); }
  void exchange(int to, const Message& out, int from, std::vector<std::byte>& in) override {
    if (to != nobody) {
      sent_(to, out);
      office_.post(rank_, to, out);
    }
    if (from != nobody) in = office_.take(from, rank_);
  }
  void exchange(int to, const Message& out, int from, std::span<std::byte> in) override {
    std::vector<std::byte> bytes;
    exchange(to, out, from, bytes);
    if (from == nobody) return;
    if (bytes.size() != in.size()) throw std::logic_error("a message of another length");
    if (!bytes.empty()) std::memcpy(in.data(), bytes.data(), bytes.size());
  }
  void library_sum(std::span<float> values) override { ring_all_reduce(Group(*this), values); }
  std::vector<int> nodes() const override { return office_.nodes(); }

 private:
  PostOffice& office_;
  int rank_;
  std::function<void(int, const Message&)> sent_;
};

/// Runs `body` on every rank, each on a thread of its own, and rethrows what was thrown first.
inline void run_peers(PostOffice& office, const std::function<void(LocalPeers&)>& body) {
  std::mutex mutex;
  std::exception_ptr first_failure;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < office.ranks(); ++rank) {
      threads.emplace_back([&, rank] {
        LocalPeers peers(office, rank);
        try {
          body(peers);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first_failure) first_failure = std::current_exception();
          office.fail();
        }
      });
    }
  }
  if (first_failure) std::rethrow_exception(first_failure);
}

}  // namespace hearsay::test
