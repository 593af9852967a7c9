// Every way to write positions with every way to write values: bytes that are none are refused with a
// CommunicationError; others are positions that rise below n and finite values, and as many as were asked for.
//   the input: which coder, which quantiser, rows or not; count and n; then the bytes
#include <cmath>
#include <memory>

#include "base/error.hpp"
#include "sparsify/sparsify.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

/// Coders × quantisers, one_bit by rows as well.
std::vector<Codec> make_codecs() {
  std::vector<Codec> codecs;
  for (const PositionCoderEntry& coder : position_coders()) {
    for (const QuantiserEntry& quantiser : quantisers()) {
      Config defaults;
      codecs.emplace_back(coder.make(defaults), quantiser.make(defaults));
    }
    Config coder_keys, rows = Config::from_text("centre: row_mean");
    for (const QuantiserEntry& quantiser : quantisers())
      if (quantiser.name == "one_bit") codecs.emplace_back(coder.make(coder_keys), quantiser.make(rows));
  }
  return codecs;
}

const std::vector<Codec>& codecs() {
  static const std::vector<Codec> all = make_codecs();
  return all;
}

constexpr std::uint32_t most_values = 100'000;

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> seeds;
  for (std::size_t c = 0; c < codecs().size(); ++c) {
    for (const std::uint32_t n : {3U, 70U, 70'000U}) {
      const std::vector<std::uint32_t> indices{0, 2, n - 1};
      const std::vector<std::uint32_t> rows{1, n};
      const std::vector<float> values{1.0F, -0.5F, 3.0F};
      std::vector<std::byte> out(codecs()[c].bound(3, n));
      const std::size_t k = n == 3 ? 2 : 3;
      const auto size = codecs()[c].encode(std::span(indices).first(k), std::span(values).first(k), n, rows, out);
      if (size.total() > 3000) continue;
      seeds.push_back(raw(static_cast<std::uint8_t>(c)) + raw(static_cast<std::uint32_t>(k)) + raw(n) +
                      std::string(reinterpret_cast<const char*>(out.data()), size.total()));
    }
  }
  return seeds;
}

std::vector<std::string> words() {
  return {raw(1.0F), raw(NAN), raw(INFINITY), raw(-0.0F), raw(1e-40F), "\x80\x80\x80\x80\x0f"};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  fuzz::Reader reader({data, size});
  const Codec& codec = fuzz::codecs()[reader.take<std::uint8_t>() % fuzz::codecs().size()];
  const std::size_t count = reader.take<std::uint32_t>(), n = reader.take<std::uint32_t>() % fuzz::most_values;
  const std::vector<std::uint32_t> rows{1, static_cast<std::uint32_t>(n)};
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
  try {
    const EncodedSize used =
        codec.decode(reader.rest_bytes(), count, n, n < 2 ? std::span<const std::uint32_t>() : rows, indices, values);
    fuzz::require(used.total() == reader.rest().size(), "all bytes are accounted for");
  } catch (const CommunicationError&) {
    return 0;
  }
  fuzz::require(indices.size() == count && values.size() == count, "as many as were asked for");
  for (std::size_t i = 0; i < count; ++i) {
    fuzz::require(indices[i] < n && (i == 0 || indices[i - 1] < indices[i]), "positions rise and are below n");
    fuzz::require(std::isfinite(values[i]), "values are finite");
  }
  return 0;
}
