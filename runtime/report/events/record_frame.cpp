// https://www.tensorflow.org/tutorials/load_data/tfrecord, section "TFRecords format details".
#include "runtime/report/events/encoding.hpp"

#include <bit>
#include <boost/crc.hpp>

namespace hearsay {
namespace {

using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

template <typename Unsigned>
void append_little_endian(std::string& bytes, Unsigned x) {
  for (std::size_t i = 0; i < sizeof x; ++i) bytes += static_cast<char>(x >> (8 * i) & 0xFF);
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  Crc32c crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return std::rotr(static_cast<std::uint32_t>(crc.checksum()), 15) + 0xA282EAD8;
}

std::string framed(std::string_view data) {
  std::string record;
  append_little_endian(record, std::uint64_t{data.size()});
  append_little_endian(record, masked_crc32c(record));
  record += data;
  append_little_endian(record, masked_crc32c(data));
  return record;
}

}  // namespace hearsay
