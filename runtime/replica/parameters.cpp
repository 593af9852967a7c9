#include "runtime/replica/parameters.hpp"

#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace hearsay {
namespace {

FloatBlock borrowed(std::span<float> memory, const Layout& layout) {
  if (memory.size() != layout.size())
    throw ConfigError("a borrowed block of " + std::to_string(memory.size()) + " floats for a layout of " +
                      std::to_string(layout.size()) + "; lend one of the layout's size");
  return {memory.data(), memory.size(), [](float*) {}};
}

}  // namespace

Parameters::Parameters(Layout l) : Parameters(std::move(l), processor()) {}
Parameters::Parameters(Layout l, std::shared_ptr<Device> where)
    : layout(std::move(l)),
      device(std::move(where)),
      values(device->block(layout.size())),
      gradients(device->block(layout.size())) {}

Parameters::Parameters(Layout l, std::span<float> x, std::span<float> g)
    : layout(std::move(l)), device(processor()), values(borrowed(x, layout)), gradients(borrowed(g, layout)) {}

std::uint64_t replica_hash(std::span<const float> values) { return xxh3(std::as_bytes(values)); }

}  // namespace hearsay
