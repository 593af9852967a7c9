// dirichlet: every class is spread over the ranks in proportions p ~ Dirichlet(α, …, α), drawn class by class.
//   α → ∞: equal distributions;  α → 0: every class belongs to one rank.
// Hsu, Qi & Brown 2019, arXiv 1909.06335, and Lin, Karimireddy, Stich & Jaggi 2021 (quasi-global momentum).
// Deviates from the papers in: proportions are drawn per class over ranks, as in the second (the first draws them per
// rank over classes); a rank left empty gets one example of the rank that has most, instead of a new draw, which for a
// small α and many ranks would not end.
// p_i = g_i / Σ g with g_i ~ Gamma(α), by Marsaglia & Tsang 2000; for α < 1 by log g = log Gamma(α + 1) + log(U)/α.
// Cost: no messages; N + O(classes · P) draws, 8N bytes. Sizes of shares differ.
#include "runtime/data/partitions/dirichlet.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/data/partition.hpp"

namespace hearsay {
namespace {

/// Where to cut n examples so that rank i gets the share p_i, rounded such that the sizes sum to n.
std::vector<std::size_t> proportional_sizes(std::size_t n, std::span<const double> proportions) {
  std::vector<std::size_t> sizes;
  double cumulated = 0.0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < proportions.size(); ++i) {
    cumulated += proportions[i];
    const auto rounded = static_cast<std::size_t>(std::llround(cumulated * static_cast<double>(n)));
    const std::size_t end = i + 1 == proportions.size() ? n : std::clamp(rounded, begin, n);
    sizes.push_back(end - begin);
    begin = end;
  }
  return sizes;
}

void feed_empty_shares(std::vector<std::vector<std::uint32_t>>& shares) {
  for (auto& share : shares) {
    if (!share.empty()) continue;
    auto& largest = *std::max_element(shares.begin(), shares.end(),
                                      [](const auto& a, const auto& b) { return a.size() < b.size(); });
    share.push_back(largest.back());
    largest.pop_back();
  }
}

class Dirichlet : public Partition {
 public:
  explicit Dirichlet(Config& config)
      : alpha_(config.real("alpha", 0.5, Range::between(1e-6, 1e6), "concentration; small = few classes a rank")) {}

  std::vector<std::vector<std::uint32_t>> split(const GroupedExamples& examples, int ranks,
                                                Random& random) const override {
    const auto parts = static_cast<std::size_t>(ranks);
    require_examples(examples.size, parts, ranks);
    std::vector<std::vector<std::uint32_t>> shares(parts);
    for (auto& indices : by_group(examples)) {
      random.shuffle(std::span(indices));
      const auto pieces = cut(indices, proportional_sizes(indices.size(), dirichlet(alpha_, parts, random)));
      for (std::size_t i = 0; i < parts; ++i) shares[i].insert(shares[i].end(), pieces[i].begin(), pieces[i].end());
    }
    feed_empty_shares(shares);
    return shares;
  }

 private:
  double alpha_;
};

}  // namespace

double log_gamma_draw(double alpha, Random& random) {
  if (alpha < 1.0) {
    const double boosted = log_gamma_draw(alpha + 1.0, random);
    return boosted + std::log1p(-random.uniform()) / alpha;  // 1 − U is in (0, 1]
  }
  const double d = alpha - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = random.normal(), root = 1.0 + c * x;
    const double log_u = std::log1p(-random.uniform());
    if (root <= 0.0) continue;
    const double v = root * root * root;
    if (log_u < 0.5 * x * x + d * (1.0 - v + std::log(v))) return std::log(d * v);
  }
}

std::vector<double> dirichlet(double alpha, std::size_t n, Random& random) {
  std::vector<double> p(n);
  for (double& value : p) value = log_gamma_draw(alpha, random);
  const double largest = *std::max_element(p.begin(), p.end());
  double sum = 0.0;
  for (double& value : p) sum += value = std::exp(value - largest);
  for (double& value : p) value /= sum;
  return p;
}

PartitionEntry dirichlet_partition() {
  return {.name = "dirichlet",
          .summary = "every class spread over the ranks in Dirichlet(α) proportions: tunable skew",
          .equation = "share of class c at rank i: p_ci · N_c, p_c ~ Dirichlet(α, …, α)",
          .cost = "no messages; N + O(classes · P) draws, 8N bytes",
          .citation = "Hsu, Qi & Brown 2019, arXiv 1909.06335; Marsaglia & Tsang 2000",
          .make = [](Config& config) -> std::unique_ptr<Partition> { return std::make_unique<Dirichlet>(config); }};
}

}  // namespace hearsay
