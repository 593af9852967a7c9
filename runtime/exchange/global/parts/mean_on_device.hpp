#pragma once
// The mean of all ranks' gradients where they live: a ring whose sums a device makes, and the passes around it.
#include <map>
#include <memory>
#include <span>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// For a replica on a device that is not the processor.
class MeanOnDevice {
 public:
  /// Runs around the ring have at most so many values.
  MeanOnDevice(const ExchangeContext& context, std::size_t most);

  /// By the computing thread: looks whether the gradients [offset, offset + length) are numbers (8 bytes come for it),
  /// and returns them, ready for the ring. Throws as require_finite_gradients.
  std::span<float> begin(std::size_t offset, std::size_t length);
  /// By the communication thread: their sum.
  void add(std::span<float> values);
  /// Once all of g is a sum: g ← g / P. Throws as require_finite_sum.
  void finish();

 private:
  bool finite(std::size_t offset, std::span<const float> values);

  ExchangeContext context_;
  std::unique_ptr<Lane> lane_;
  std::map<std::pair<std::size_t, std::size_t>, Device::Norms> norms_;  // by offset and length
};

}  // namespace hearsay
