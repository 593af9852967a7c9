#pragma once
// The framing of TensorFlow's record files (TFRecord), of which TensorBoard's event files are one. Internal to
// runtime/report.
#include <cstdint>
#include <string>
#include <string_view>

namespace hearsay {

/// CRC-32C (Castagnoli) of `bytes`, rotated and shifted as record files want it.
std::uint32_t masked_crc32c(std::string_view bytes);

/// length u64 · masked CRC of these 8 bytes · data · masked CRC of the data, little endian.
std::string framed(std::string_view data);

}  // namespace hearsay
