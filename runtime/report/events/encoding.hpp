#pragma once
// TensorFlow's Event messages as bytes. Internal to runtime/report. Needs Protobuf: protobuf/ and none/ are two sources
// for the same functions, of which a build has one (CMake's HEARSAY_EVENTS_SOURCES).
#include <cstdint>
#include <span>
#include <string>

namespace hearsay {

/// A number under a name; `loss/batch` is drawn in the group `loss`.
struct Scalar {
  std::string tag;
  double value;  ///< written as a float: 24 bits of it
};

/// Whether this build can write events at all. Where it cannot, the functions below throw std::logic_error.
bool can_encode_events();
/// The first event of every file. `wall_time_s`: since 1970.
std::string encode_file_version(double wall_time_s);
std::string encode_scalars(double wall_time_s, std::int64_t step, std::span<const Scalar> scalars);

}  // namespace hearsay
