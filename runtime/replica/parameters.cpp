#include "runtime/replica/parameters.hpp"

#include <utility>

#include "base/hash.hpp"

namespace hearsay {

Parameters::Parameters(Layout l) : Parameters(std::move(l), processor()) {}
Parameters::Parameters(Layout l, std::shared_ptr<Device> where)
    : layout(std::move(l)),
      device(std::move(where)),
      values(device->block(layout.size())),
      gradients(device->block(layout.size())) {}

std::uint64_t replica_hash(std::span<const float> values) { return xxh3(std::as_bytes(values)); }

}  // namespace hearsay
