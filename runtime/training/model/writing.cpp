#include "runtime/training/model/writing.hpp"

#include <algorithm>

namespace hearsay {

std::vector<std::vector<std::int64_t>> write_greedily(const torch::Tensor& source, const Writing& writing,
                                                      const NextToken& next) {
  const torch::Tensor sources = source.cpu().contiguous();
  const auto count = static_cast<std::size_t>(sources.size(0));
  std::vector<std::vector<std::int64_t>> written(count);
  std::vector<std::int64_t> most;
  const auto row = [](const torch::Tensor& matrix, std::size_t i) {
    return std::span(matrix.data_ptr<std::int64_t>(), static_cast<std::size_t>(matrix.numel()))
        .subspan(i * static_cast<std::size_t>(matrix.size(1)), static_cast<std::size_t>(matrix.size(1)));
  };
  for (std::size_t i = 0; i < count; ++i) most.push_back(writing.most(row(sources, i)));
  torch::Tensor so_far = torch::full({source.size(0), 1}, writing.begin(), source.options());
  std::vector<bool> ended(count, false);
  for (std::int64_t t = 0; t < std::ranges::max(most); ++t) {
    const torch::Tensor best = next(so_far).argmax(-1, true);
    so_far = torch::cat({so_far, best}, 1);
    const torch::Tensor tokens = best.cpu().contiguous();
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t token = row(tokens, i).front();
      ended[i] = ended[i] || token == writing.end() || t >= most[i];
      if (!ended[i]) written[i].push_back(token);
    }
    if (std::ranges::find(ended, false) == ended.end()) break;
  }
  return written;
}

}  // namespace hearsay
