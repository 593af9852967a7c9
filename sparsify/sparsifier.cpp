#include <algorithm>
#include <cmath>
#include <string>

#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

bool has_key(const Config& config, std::string_view key) {
  return std::ranges::any_of(config.keys(), [&](const KeyDescription& asked) { return asked.key == key; });
}

bool read_per_segment(Config& selector, const SparsifierDefaults& defaults) {
  if (defaults.scope_is_fixed) return defaults.per_segment;
  return selector.choice("scope", defaults.per_segment ? "per_segment" : "global", {"global", "per_segment"},
                         "select among all values at once, or k of every segment") == "per_segment";
}

/// Whether what travels is what is news. With another selector than `dense` that chooses, and there is no budget.
bool read_news(Config& sparsify, const SparsifierDefaults& defaults, const Sparsifier& read) {
  const std::optional<StepRule> rule = read.codec->step_rule();
  Config selector = sparsify.section("selector"), quantiser = sparsify.section("quantiser");
  const bool budget = rule && rule->bits;
  quantiser.require(!budget || defaults.news, "bits_per_value",
                    "not with this exchange: a step may follow the bytes in sums over all ranks only (topk, gtopk, "
                    "gtopk_naive, sparseloco, diloco, demo); between neighbours it would grow when ranks move apart. "
                    "Leave it out");
  selector.require(!budget || !defaults.news || read.dense, "name",
                   "with quantiser.bits_per_value the values travel that are news, as many as the bits pay for: leave "
                   "the selector out, or bits_per_value");
  const bool news = rule && defaults.news && read.dense;
  selector.require(!news || read.dense_below == 0, "dense_below",
                   "not where one step counts the values of the whole model: leave it out");
  return news;
}

std::shared_ptr<const Codec> read_codec(Config& sparsify, std::string_view usual_quantiser) {
  Config codec = sparsify.section("codec");
  Config quantiser = sparsify.section("quantiser");
  auto values = chosen_entry(quantisers(), quantiser, usual_quantiser, "how values are written").make(quantiser);
  // Where only what is news travels, and in a bit or two, positions are most of it.
  const std::string_view usual = values->step_rule() ? "golomb" : "plain";
  auto positions = chosen_entry(position_coders(), codec, usual, "how positions are written").make(codec);
  return std::make_shared<const Codec>(std::move(positions), std::move(values));
}

}  // namespace

Sparsifier read_sparsifier(Config& sparsify, const SparsifierDefaults& defaults) {
  Sparsifier read;
  Config selector = sparsify.section("selector");
  read.codec = read_codec(sparsify, defaults.quantiser);
  const bool counts = defaults.news && read.codec->step_rule();
  const SelectorEntry& chosen =
      chosen_entry(selectors(), selector, counts ? "dense" : defaults.selector, "which values travel");
  read.selector = chosen.make(selector);
  read.name = chosen.name;
  read.dense = chosen.name == "dense";
  read.per_segment = read_per_segment(selector, defaults);
  read.dense_below = static_cast<std::size_t>(
      selector.integer("dense_below", 0, Range::at_least(0), "segments of fewer values are sent whole"));
  if (read_news(sparsify, defaults, read)) read.news = read.codec->step_rule();
  read.schedule = sparsify.reals("density_schedule", {}, Range::fraction_above_zero(),
                                 "densities of the first epochs, one each; then the selector's own");
  sparsify.require(read.schedule.empty() || has_key(selector, "density"), "density_schedule",
                   "the selector '" + std::string(chosen.name) + "' has no density; choose one that has, as topk");
  return read;
}

Sparsifier Sparsifier::fresh() const {
  return {.selector = selector->fresh(),
          .codec = codec,
          .name = name,
          .dense = dense,
          .per_segment = per_segment,
          .dense_below = dense_below,
          .schedule = schedule,
          .news = news};
}

double Sparsifier::density(double epoch) const {
  const double whole = std::floor(epoch);
  if (whole < 0.0 || whole >= static_cast<double>(schedule.size())) return selector->density();
  return schedule[static_cast<std::size_t>(whole)];
}

double Sparsifier::largest_density() const {
  double largest = selector->density();
  for (const double scheduled : schedule) largest = std::max(largest, scheduled);
  return largest;
}

}  // namespace hearsay
