#pragma once
// The memories of all members. Where members share a host, a put is a copy into the other's memory, which is there when
// the call returns, and a store is a released one. Between hosts it is a frame, which the receiver writes to its offset
// while it polls; the answer to a flush comes after all that was sent before.
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/sockets/network.hpp"
#include "runtime/sockets/shared_block.hpp"
#include "runtime/transport/remote_memory.hpp"

namespace hearsay::sockets {

class Window final : public Channel, public RemoteMemory {
 public:
  /// Collective. `idle` runs while others are waited for.
  Window(std::shared_ptr<Network> network, std::size_t bytes, const MemoryUse& use, const Network::Idle& idle);
  ~Window() override { shut(); }

  std::span<std::byte> own() override { return own_.bytes(); }
  void put(std::span<const std::byte> bytes, int target, std::size_t offset) override;
  void store(const std::uint64_t& word, int target, std::size_t offset) override;
  bool flush(int target) override;
  void sync() override;
  int patience() const override;
  std::optional<std::uint64_t> peek(int target, std::size_t offset) override;
  std::vector<int> gone() const override { return network().gone(); }
  bool is_here(int target) const override { return network().is_here(target); }
  bool is_open(int target) const override { return others_[static_cast<std::size_t>(target)].is_open; }

  std::optional<std::span<std::byte>> destination_of(int from, const Frame& frame) override;
  void arrived(int from, const Frame& frame, RawBytes body, Descriptor file) override;
  void met(int rank) override;

 private:
  /// Another member's memory.
  struct Other {
    std::atomic<bool> is_open{false};  // it has said what follows; who comes later says it to another thread
    std::size_t bytes = 0;
    std::optional<SharedBlock> here;  // where it shares this host
    // Elsewhere: how many operations were begun, asked about and answered for; and the word that was asked for.
    std::uint64_t begun = 0, asked = 0, done = 0;
    bool asks_for_word = false;
    std::optional<std::uint64_t> word{};
  };

  Other& other(int target) { return others_[static_cast<std::size_t>(target)]; }
  std::span<std::byte> bytes_at(int target, std::size_t offset, std::size_t bytes);
  void require_within(int target, std::size_t offset, std::size_t bytes);
  std::span<std::byte> own_bytes(std::uint64_t offset, std::uint64_t bytes);
  bool is_near(int target);
  void tell_of_memory(int target);
  void meet(int from, std::size_t bytes, Descriptor file);

  SharedBlock own_;
  std::vector<Other> others_;
  std::atomic<bool> on_one_host_;
  bool others_go_on_;
  std::chrono::steady_clock::time_point polled_{};
};

}  // namespace hearsay::sockets
