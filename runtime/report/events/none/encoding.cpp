// The build without Protobuf.
#include "runtime/report/events/encoding.hpp"

#include <stdexcept>

namespace hearsay {
namespace {

[[noreturn]] void refuse() {
  throw std::logic_error(
      "events are written by a build without Protobuf; `report.tensorboard` should have been refused");
}

}  // namespace

bool can_encode_events() { return false; }

std::string encode_file_version(double) { refuse(); }

std::string encode_scalars(double, std::int64_t, std::span<const Scalar>) { refuse(); }

}  // namespace hearsay
