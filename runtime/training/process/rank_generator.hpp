#pragma once
// One rank's own random numbers where ranks share a process, and with it LibTorch's one generator.
#include <torch/torch.h>

#include <mutex>
#include <string>

#include "runtime/training/model/tensor_state.hpp"

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

  /// What dropout draws next, on the processor and where the model computes.
  void state(Archive& archive, bool cuda) {
    generator_state(archive, at::detail::getDefaultCPUGenerator());
    if (archive.loads()) keep();
    if (cuda) generator_state(archive, at::globalContext().defaultGenerator(torch::kCUDA));
  }

 private:
  static void generator_state(Archive& archive, at::Generator generator) {
    constexpr const char* name = "LibTorch's random numbers";
    const std::lock_guard lock(generator.mutex());
    torch::Tensor state = generator.get_state();
    const torch::Tensor before = state.clone();
    tensor_state(archive, name, state);
    if (!archive.loads()) return;
    try {
      generator.set_state(state);
    } catch (const c10::Error& error) {
      generator.set_state(before);
      archive.refuse(name, std::string("are none: ") + error.what_without_backtrace());
    }
  }

  bool shared_;
  torch::Tensor state_;
};

}  // namespace hearsay
