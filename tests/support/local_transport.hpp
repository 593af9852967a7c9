#pragma once
// A Transport between threads of one process.
#include <barrier>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "runtime/transport/transport.hpp"
#include "tests/support/local_memory.hpp"
#include "tests/support/local_peers.hpp"

namespace hearsay::test {

enum class EngineKind { inline_engine, thread_engine };

class LocalTransport final : public Transport {
 public:
  LocalTransport(LocalBlocks& blocks, PostOffice& office, std::barrier<>& everybody, int rank, EngineKind engine)
      : blocks_(blocks), office_(office), everybody_(everybody), rank_(rank), engine_(engine) {}

  int rank() const override { return rank_; }
  int ranks() const override { return office_.ranks(); }
  Clock clock() const override { return steady_time; }
  RemoteMemory& open_memory(std::size_t bytes, const MemoryUse& /*use*/) override {
    if (bytes > blocks_[rank_].size()) throw std::logic_error("local transport: more memory than this job has");
    return memory_.emplace(blocks_, rank_);
  }
  Peers& open_peers(Hooks hooks) override { return peers_.emplace(office_, rank_, std::move(hooks.sent)); }
  std::unique_ptr<CommunicationEngine> make_engine(ProgressStep step) override {
    if (engine_ == EngineKind::thread_engine) return std::make_unique<ThreadEngine>(std::move(step));
    return std::make_unique<InlineEngine>(std::move(step));
  }
  void barrier() override { everybody_.arrive_and_wait(); }
  void broadcast(std::span<std::byte>, int) override { throw std::logic_error("local ranks start with the same x"); }
  void pass_time(double seconds, CommunicationEngine&) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

 private:
  LocalBlocks& blocks_;
  PostOffice& office_;
  std::barrier<>& everybody_;
  int rank_;
  EngineKind engine_;
  std::optional<LocalMemory> memory_;
  std::optional<LocalPeers> peers_;
};

}  // namespace hearsay::test
