#include "apps/hearsay/views/plan_table.hpp"

#include <algorithm>

#include "apps/bench/between_ranks/variants.hpp"
#include "apps/shared/text.hpp"

namespace hearsay {
namespace {

std::optional<PlanRow> predicted(const ExchangeVariant& variant, const PlanSubject& subject, const Network& network) {
  const auto plan = plan_variant(variant);
  if (plan->laws().along_graph && subject.topology.changes() && !plan->laws().follows_phases) return std::nullopt;
  if (plan->laws().along_graph && subject.topology.directed() && !plan->laws().along_arcs) return std::nullopt;
  const auto cost = plan->cost(subject.layout, subject.topology, subject.assumptions);
  if (!cost) return std::nullopt;
  return PlanRow{.algorithm = variant.name,
                 .neighbours = plan->laws().along_graph,
                 .cost = *cost,
                 .communication_s = communication_s(*cost, network),
                 .local_s = cost->local.seconds(network),
                 .iteration_s = iteration_s(*cost, network, subject.compute_s)};
}

std::string fastest(const std::vector<PlanRow>& rows, bool neighbours) {
  const auto row = std::ranges::find(rows, neighbours, &PlanRow::neighbours);
  return row == rows.end() ? "none" : row->algorithm + ", " + duration(row->iteration_s);
}

}  // namespace

std::vector<PlanRow> plan_rows(const PlanSubject& subject, const Network& network) {
  std::vector<PlanRow> rows;
  for (const ExchangeVariant& variant : exchange_variants(subject.density))
    if (auto row = predicted(variant, subject, network)) rows.push_back(std::move(*row));
  std::ranges::stable_sort(rows, {}, &PlanRow::iteration_s);
  return rows;
}

std::string plan_text(const std::vector<PlanRow>& rows, const PlanSubject& subject) {
  std::vector<std::vector<std::string>> cells{
      {"algorithm", "messages", "sent by a rank", "communication", "own work", "iteration"}};
  for (const PlanRow& row : rows) {
    cells.push_back({row.algorithm, significant(row.cost.inside.messages + row.cost.between.messages, 4),
                     byte_count(row.cost.sent_bytes), duration(row.communication_s), duration(row.local_s),
                     duration(row.iteration_s)});
  }
  const auto n = static_cast<std::uint64_t>(subject.layout.size());
  return with_separators(n) + " parameters in " +
         counted(static_cast<std::int64_t>(subject.layout.count()), "segment") + ", " +
         counted(subject.topology.ranks(), "rank") + " on " + counted(subject.assumptions.hosts, "host") + ", graph " +
         subject.topology.graph_name + ", density " + significant(subject.density, 4) + "\nforward and backward pass " +
         duration(subject.compute_s) + "\n\n" + aligned_table(cells) + "\n" +
         "among all ranks, fastest:      " + fastest(rows, false) + "\n" +
         "with neighbours only, fastest: " + fastest(rows, true) + "\n" + "note: " +
         wrapped(
             "predictions of the α-β model for one iteration (docs/guide/predict.md). A faster iteration is not yet a "
             "faster training: sparse sums and old copies may need more of them. Local steps are shown with an "
             "iteration's part of their round. EventGraD is shown as if " +
                 percent(subject.assumptions.event_fraction, 0) +
                 " of the segments fired, or of the values where these are events (--events).",
             94, 6) +
         "\n";
}

}  // namespace hearsay
