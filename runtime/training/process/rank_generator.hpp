#pragma once
// One rank's own random numbers where ranks share a process, and with it LibTorch's one generator.
#include <torch/torch.h>

#include <mutex>

namespace hearsay {

/// Keeps the state of LibTorch's default generator between two uses by the same rank: what dropout draws does then not
/// depend on which rank computes when. Does nothing where the rank has the process to itself.
class RankGenerator {
 public:
  /// Keeps the state as it is now.
  explicit RankGenerator(bool shared) : shared_(shared) { keep(); }
  void use() const {
    if (!shared_) return;
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(generator.mutex());
    generator.set_state(state_);
  }
  void keep() {
    if (!shared_) return;
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(generator.mutex());
    state_ = generator.get_state();
  }

 private:
  bool shared_;
  torch::Tensor state_;
};

}  // namespace hearsay
