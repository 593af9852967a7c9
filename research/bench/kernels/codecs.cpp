// Every position coder with whole values, and every quantiser with plain positions: 100,000 of 10,000,000 values.
#include <memory>

#include "apps/bench/between_ranks/oracle.hpp"
#include "research/bench/kernels/data.hpp"
#include "research/bench/kernels/suite.hpp"
#include "runtime/collectives/sparse_vector.hpp"

namespace hearsay {
namespace {

constexpr std::size_t block = 10'000'000, entries = 100'000, row = 1000;

struct Message {
  SparseVector v = normal_entries(1, 0, block, entries);
  std::vector<std::uint32_t> row_ends;
  Codec codec;
  std::vector<std::byte> bytes;

  explicit Message(Codec made) : codec(std::move(made)), bytes(codec.bound(entries, block)) {
    for (std::size_t end = row; end <= block; end += row) row_ends.push_back(static_cast<std::uint32_t>(end));
    bytes.resize(encode());
  }
  std::size_t encode() { return codec.encode(v.indices, v.values, block, row_ends, bytes).total(); }
};

Codec codec_of(const PositionCoderEntry& positions, const QuantiserEntry& quantiser) {
  Config coder_section, quantiser_section;
  return {positions.make(coder_section), quantiser.make(quantiser_section)};
}

void encode(benchmark::State& state, Codec codec) {
  Message message(std::move(codec));
  for (auto _ : state) {
    message.encode();
    benchmark::DoNotOptimize(message.bytes.data());
    benchmark::ClobberMemory();
  }
}

void decode(benchmark::State& state, Codec codec) {
  Message message(std::move(codec));
  SparseVector got;
  for (auto _ : state) {
    message.codec.decode(message.bytes, entries, block, message.row_ends, got.indices, got.values);
    benchmark::DoNotOptimize(got.values.data());
  }
}

/// `least`: bytes of fp32 values a second.
void add_both(std::vector<Kernel>& kernels, const PositionCoderEntry& positions, const QuantiserEntry& quantiser,
              double least) {
  const std::string name = std::string(positions.name) + "+" + std::string(quantiser.name);
  for (const auto& [way, work] : {std::pair{"encode/", &encode}, std::pair{"decode/", &decode}}) {
    kernels.push_back({.name = way + name,
                       .work = [work, &positions,
                                &quantiser](benchmark::State& state) { work(state, codec_of(positions, quantiser)); },
                       .floor = "copy/1e5",
                       .target = {Target::Kind::bytes_per_s_at_least, least},
                       .bytes = sizeof(float) * static_cast<double>(entries)});
  }
}

}  // namespace

void add_codecs(std::vector<Kernel>& kernels) {
  constexpr double fast = 2e9, packed = 0.5e9, coded = 0.05e9;  // bit by bit, through a range coder
  const auto is_coded = [](std::string_view name) {
    return name == "golomb" || name == "smallest" || name == "dead_zone";
  };
  Config quantiser_section, coder_section;
  const QuantiserEntry& whole = chosen_entry(quantisers(), quantiser_section, "none", "");
  const PositionCoderEntry& plain = chosen_entry(position_coders(), coder_section, "plain", "");
  for (const PositionCoderEntry& coder : position_coders())
    add_both(kernels, coder, whole, &coder == &plain ? fast : is_coded(coder.name) ? coded : packed);
  for (const QuantiserEntry& quantiser : quantisers())
    if (&quantiser != &whole)
      add_both(kernels, plain, quantiser, quantiser.name == "fp16" ? fast : is_coded(quantiser.name) ? coded : packed);
}

}  // namespace hearsay
