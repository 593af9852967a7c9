#pragma once
// Sequences written by a model: at every step the most probable token (greedy decoding).
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/data/examples.hpp"

namespace hearsay {

/// Logits (B, V) of the token after what has been written so far, (B, t) with the begin token in front. Called with
/// one token more every time.
using NextToken = std::function<torch::Tensor(const torch::Tensor& so_far)>;

/// A module that can write on without beginning anew at every token.
class SequenceWriter {
 public:
  virtual ~SequenceWriter() = default;
  /// For sources (B, S) of tokens.
  virtual NextToken writer(const torch::Tensor& source) = 0;
};

/// For every source (B, S), what is written until the end token or as much as `writing` allows for it, without either.
std::vector<std::vector<std::int64_t>> write_greedily(const torch::Tensor& source, const Writing& writing,
                                                      const NextToken& next);

}  // namespace hearsay
