#include "runtime/exchange/finite_check.hpp"

#include <cstring>
#include <utility>

#include "runtime/collectives/gather.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw DivergenceError(sentence, DivergenceError::Place::said); }

}  // namespace

void FiniteCheck::rethrow(Iteration k, const DivergenceError& error) const {
  if (found_ && found_->last < k) refuse(sentence(*found_));  // it began there
  if (error.place == DivergenceError::Place::said) throw;
  refuse("rank " + std::to_string(edges_.rank()) + " diverged at iteration " + std::to_string(k) + ": " +
         error.finding);
}

void FiniteCheck::stepped(Iteration k) {
  if (!found_) found_ = watch_.look(k);
  last_stepped_ = k;
}

std::string FiniteCheck::sentence(const NotFinite& found) const {
  const std::string when = found.first >= found.last ? "at iteration " + std::to_string(found.last)
                                                     : "between iterations " + std::to_string(found.first) + " and " +
                                                           std::to_string(found.last);
  return "rank " + std::to_string(edges_.rank()) + " diverged " + when + ": " + found.what;
}

std::optional<FiniteCheck::Finding> FiniteCheck::own() {
  if (!exchange_) return std::nullopt;
  if (!found_) found_ = watch_.look_at_all(last_stepped_);
  if (found_) return Finding{2 * found_->last, sentence(*found_)};
  return kept_by_exchange();
}

std::optional<FiniteCheck::Finding> FiniteCheck::kept_by_exchange() {
  std::optional<Finding> kept;
  Archive archive = Archive::looking([&](std::string_view name, std::span<const float> values) {
    if (kept || all_finite(values)) return;
    const std::string of = "'" + std::string(name) + "' of the exchange";
    const auto what = values.size() == replica_.layout.size() ? not_finite(replica_.layout, 0, values) : std::nullopt;
    kept = {2 * last_stepped_ + 1,
            sentence({.first = last_stepped_,
                      .last = last_stepped_,
                      .what = what ? *what + ", in " + of : "a value in " + of + " is not finite"})};
  });
  exchange_->state(archive);
  return kept;
}

/// The first of all ranks' findings.
std::optional<FiniteCheck::Finding> FiniteCheck::of_all(const std::optional<Finding>& own) {
  std::optional<Finding> first = own;
  communication_.uncounted([&] {
    float found = own ? 1.0F : 0.0F;
    communication_.peers().library_sum({&found, 1});
    if (found == 0.0F) return;
    OwnedMessage message;
    if (own) {
      const auto order = std::as_bytes(std::span(&own->order, 1)), text = std::as_bytes(std::span(own->text));
      message.bytes.assign(order.begin(), order.end());
      message.bytes.insert(message.bytes.end(), text.begin(), text.end());
    }
    first.reset();
    for (const OwnedMessage& of : all_gather(Group(communication_.peers()), std::move(message))) {
      Iteration order = 0;
      if (of.bytes.size() < sizeof order) continue;
      std::memcpy(&order, of.bytes.data(), sizeof order);
      const auto* const text = reinterpret_cast<const char*>(of.bytes.data()) + sizeof order;
      if (!first || order < first->order) first = Finding{order, {text, of.bytes.size() - sizeof order}};
    }
    communication_.barrier();  // all know it before anybody leaves
  });
  return first;
}

void FiniteCheck::require_so_far() const {
  if (found_) refuse(sentence(*found_));
}

void FiniteCheck::require_here() {
  if (const auto found = own()) refuse(found->text);
}

void FiniteCheck::require() {
  std::optional<Finding> first = own();
  if (communication_.members().failures() == nullptr && edges_.topology().ranks() > 1) first = of_all(first);
  if (first) refuse(first->text);
}

}  // namespace hearsay
