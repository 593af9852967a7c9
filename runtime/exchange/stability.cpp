#include "runtime/exchange/stability.hpp"

#include <cmath>

#include "base/text/number.hpp"

namespace hearsay {
namespace {

std::string halving_text(double iterations) {
  if (!std::isfinite(iterations)) return "mixing alone does not bring ranks together";
  if (iterations < 1.0) return "a distance between ranks halves in an iteration";
  return "a distance between ranks halves every " + number_text(std::ceil(iterations), 3) + " iterations";
}

}  // namespace

std::string stability_text(const std::optional<Stability>& stability) {
  if (!stability) return "not known for this exchange, schedule, code or optimizer";
  const auto& [most, alone, halves, claim, silence] = *stability;
  if (most <= 0.0) {
    if (claim == Stability::Claim::at_least) return "not known: no length of a step is sure to be stable";
    return "unstable, however short steps are";
  }
  std::string text = claim == Stability::Claim::if_equal ? "where silences are equal, steps" : "steps";
  if (claim == Stability::Claim::at_least) text += " at least";
  text += " up to ηL = " + number_text(most, 3) +
          ", L being the largest curvature (one rank alone: " + number_text(alone, 3) + ")";
  if (silence) text += ", while no silence is longer than " + std::to_string(*silence);
  return text + "; " + halving_text(halves);
}

}  // namespace hearsay
