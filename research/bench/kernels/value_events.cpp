// Value events of a Mi values, from x and its copy to bytes and back into a copy: 1, 5 and 15 % of the values fire.
#include <memory>

#include "base/random.hpp"
#include "research/bench/kernels/data.hpp"
#include "research/bench/kernels/suite.hpp"
#include "runtime/replica/device.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr std::size_t coded_block = std::size_t{1} << 20;

struct Events {
  Layout layout;
  Sparsifier sparsifier;
  std::shared_ptr<Device> device = processor();
  FloatBlock x{coded_block}, copy{coded_block};
  float step = sent_step(1.0);
  std::unique_ptr<ChangeSelection> selection;
  std::vector<std::uint32_t> positions;
  std::vector<float> values;
  std::vector<std::byte> bytes;
  std::size_t count = 0;

  explicit Events(double share) {
    layout.append("values", {static_cast<std::int64_t>(coded_block)});
    Config section = Config::from_text("{quantiser: {name: dead_zone}}");
    sparsifier = read_sparsifier(section, {});
    selection = device->select_changes(layout, sparsifier);
    Random random(1);
    for (float& v : x.span())
      v = static_cast<float>(random.uniform() < share ? random.uniform(1.0, 1.99) : random.uniform(0.0, 0.99)) *
          (random.below(2) == 0 ? -1.0F : 1.0F);
    bytes.resize(sparsifier.codec->bound(coded_block, coded_block));
    bytes.resize(encode());
  }
  std::size_t encode() {
    selection->begin(0, x.span(), copy.span(), coded_block, dead_zone(*sparsifier.codec->step_rule(), step));
    selection->take(0, positions, values);
    count = positions.size();
    return sparsifier.codec->encode(positions, values, coded_block, {}, bytes, step).total();
  }
  void decode() {
    sparsifier.codec->decode(bytes, count, coded_block, {}, positions, values);
    device->add_entries(positions, values, copy.span());
  }
};

}  // namespace

void add_value_events(std::vector<Kernel>& kernels) {
  constexpr double seconds = 3e-9 * coded_block;  // 3 ns a value at 5 %
  for (const double share : {0.01, 0.05, 0.15}) {
    const Target target{share == 0.05 ? Target::Kind::seconds_at_most : Target::Kind::none, seconds};
    kernels.push_back({.name = "value_events/encode/" + short_number(share),
                       .work =
                           [share](benchmark::State& state) {
                             Events events(share);
                             events.bytes.resize(events.sparsifier.codec->bound(coded_block, coded_block));
                             for (auto _ : state) benchmark::DoNotOptimize(events.encode());
                           },
                       .target = target,
                       .bytes = sizeof(float) * coded_block});
    kernels.push_back({.name = "value_events/decode/" + short_number(share),
                       .work =
                           [share](benchmark::State& state) {
                             Events events(share);
                             for (auto _ : state) {
                               events.decode();
                               benchmark::ClobberMemory();
                             }
                           },
                       .target = target,
                       .bytes = sizeof(float) * coded_block});
  }
}

}  // namespace hearsay
