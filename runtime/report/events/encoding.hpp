#pragma once
// TensorFlow's Event messages as bytes, and the framing of its record files (TFRecord), of which TensorBoard's event
// files are one. Internal to runtime/report. Messages need Protobuf: protobuf/ and none/ are two sources for the same
// functions, of which a build has one (CMake's HEARSAY_EVENTS_SOURCES).
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

/// CRC-32C (Castagnoli) of `bytes`, rotated and shifted as record files want it.
std::uint32_t masked_crc32c(std::string_view bytes);
/// length u64 · masked CRC of these 8 bytes · data · masked CRC of the data, little endian.
std::string framed(std::string_view data);

}  // namespace hearsay
