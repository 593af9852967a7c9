#include "runtime/report/events/encoding.hpp"

#include <event.pb.h>

namespace hearsay {

bool can_encode_events() { return true; }

std::string encode_file_version(double wall_time_s) {
  events::Event event;
  event.set_wall_time(wall_time_s);
  event.set_file_version("brain.Event:2");
  return event.SerializeAsString();
}

std::string encode_scalars(double wall_time_s, std::int64_t step, std::span<const Scalar> scalars) {
  events::Event event;
  event.set_wall_time(wall_time_s);
  event.set_step(step);
  for (const Scalar& scalar : scalars) {
    events::Summary::Value& value = *event.mutable_summary()->add_value();
    value.set_tag(scalar.tag);
    value.set_simple_value(static_cast<float>(scalar.value));
  }
  return event.SerializeAsString();
}

}  // namespace hearsay
