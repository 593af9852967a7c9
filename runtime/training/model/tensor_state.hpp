#pragma once
// LibTorch's tensors in archives.
#include <torch/torch.h>

#include <cstring>
#include <span>
#include <string_view>

#include "base/state/archive.hpp"

namespace hearsay {

/// The values of a tensor, wherever it lies; loading writes into it.
inline void tensor_state(Archive& archive, std::string_view name, const torch::Tensor& tensor) {
  const torch::NoGradGuard no_gradient;
  archive.bytes(
      name, tensor.nbytes(),
      [&](std::span<std::byte> here) {
        const torch::Tensor copy = tensor.detach().cpu().contiguous();
        if (!here.empty()) std::memcpy(here.data(), copy.data_ptr(), here.size());
      },
      [&](std::span<const std::byte> here) {
        torch::Tensor copy = torch::empty_like(tensor, tensor.options().device(torch::kCPU)).contiguous();
        if (!here.empty()) std::memcpy(copy.data_ptr(), here.data(), here.size());
        torch::Tensor(tensor).copy_(copy);
      });
}

/// The same of one that may not be there yet, and is then made like `like`. `tensor` gives a reference to it.
template <class Access>
void optional_tensor_state(Archive& archive, std::string_view name, const torch::Tensor& like, Access tensor) {
  const torch::NoGradGuard no_gradient;
  bool there = !archive.loads() && tensor().defined();
  archive.value(name, there);
  if (!there) return;
  if (archive.loads()) tensor() = torch::empty_like(like.detach());
  tensor_state(archive, name, tensor());
}

}  // namespace hearsay
