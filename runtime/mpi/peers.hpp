#pragma once
// Point-to-point messages over MPI.
#include <functional>
#include <memory>

#include "runtime/transport/peers.hpp"

namespace hearsay::mpi {

/// All ranks, on a duplicate of MPI_COMM_WORLD. Collective to make.
class Peers final : public hearsay::Peers {
 public:
  struct Hooks {
    std::function<void()> idle = [] {};  ///< runs while an operation waits
    /// Told of every message as it is handed to MPI.
    std::function<void(int to, const Message& message)> sent = [](int, const Message&) {};
  };
  explicit Peers(Hooks hooks);
  ~Peers() override;
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void exchange(int to, const Message& out, int from, std::vector<std::byte>& in) override;
  void exchange(int to, const Message& out, int from, std::span<std::byte> in) override;
  void library_sum(std::span<float> values) override;
  std::vector<int> nodes() const override { return nodes_; }

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  Hooks hooks_;
  int rank_ = 0, size_ = 1;
  std::vector<int> nodes_;
};

}  // namespace hearsay::mpi
