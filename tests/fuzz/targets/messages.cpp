// What ranks send each other on the global path and at the end of a run: sparse messages (gtopk, lkgs, topk,
// gradient_dropping), bundles of them (hitopk) and packed ledgers. Refused with a CommunicationError, or taken.
//   the input: a byte that says which; then the message
#include "base/error.hpp"
#include "runtime/collectives/sparse_vector.hpp"
#include "runtime/exchange/global/parts/nodes.hpp"
#include "runtime/report/report.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

const Codec& codec() {
  static const Codec delta = [] {
    Config defaults;
    std::unique_ptr<PositionCoder> positions;
    for (const PositionCoderEntry& entry : position_coders())
      if (entry.name == "smallest") positions = entry.make(defaults);
    return Codec(std::move(positions), quantisers().front().make(defaults));
  }();
  return delta;
}

constexpr std::size_t n = 1000;

Layout two_segments() {
  Layout layout;
  layout.append("a", {600});
  layout.append("b", {400});
  return layout;
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::vector<std::string> seeds() {
  const SparseWire wire(codec(), n, {});
  SparseVector v;
  v.push_back(1, 2.0F);
  v.push_back(999, -1.0F);
  const OwnedMessage message = wire.encode(v);
  const std::vector<OwnedMessage> two{message, message};
  const Neighbourhood row{.rank = 0, .self_weight = 0.5, .neighbours = {1}, .weights = {0.5}};
  Ledger ledger(1, 2);
  ledger.control_put(0, 8);
  return {'\0' + text(message.bytes), '\1' + text(pack(two).bytes), '\2' + text(pack_ledger(ledger, row))};
}

std::vector<std::string> words() { return {raw(std::uint64_t{2}), raw(std::uint64_t{1} << 63), raw(1.0F)}; }

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  fuzz::Reader reader({data, size});
  const auto kind = reader.take<std::uint8_t>() % 3;
  try {
    if (kind == 0) {
      const SparseVector v = SparseWire(fuzz::codec(), fuzz::n, {}).decode(reader.rest_bytes());
      for (std::size_t i = 0; i < v.size(); ++i)
        fuzz::require(v.indices[i] < fuzz::n && (i == 0 || v.indices[i - 1] < v.indices[i]), "positions rise below n");
    } else if (kind == 1) {
      fuzz::require(unpack(reader.rest_bytes(), 2, 1).size() == 2, "as many as were asked for");
    } else {
      const std::vector<std::vector<std::byte>> packed{{reader.rest_bytes().begin(), reader.rest_bytes().end()}};
      std::vector<std::string> not_written;  // no folder can be there
      write_communication("/dev/null/nowhere", packed, fuzz::two_segments(), "", &not_written);
      fuzz::require(not_written.size() == 3, "three tables");
    }
  } catch (const CommunicationError&) {
  }
  return 0;
}
