// All trigger policies. To add one: its file in policies/, its declaration and its line here.
#include <array>

#include "trigger/trigger.hpp"

namespace hearsay {

TriggerEntry always_trigger();
TriggerEntry periodic_trigger();
TriggerEntry constant_trigger();
TriggerEntry adaptive_trigger();
TriggerEntry adaptive_compounding_trigger();
TriggerEntry geometric_trigger();
TriggerEntry sparq_trigger();
TriggerEntry etg_trigger();
TriggerEntry random_trigger();
TriggerEntry value_events_trigger();

std::span<const TriggerEntry> triggers() {
  static const std::array table{
      always_trigger(),    periodic_trigger(), constant_trigger(), adaptive_trigger(), adaptive_compounding_trigger(),
      geometric_trigger(), sparq_trigger(),    etg_trigger(),      random_trigger(),   value_events_trigger()};
  return table;
}

}  // namespace hearsay
