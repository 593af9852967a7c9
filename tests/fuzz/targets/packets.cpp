// What a neighbour writes: packets of segments under a good seal, rings of any bytes. A packet is taken, or refused
// with a CommunicationError that names both ranks.
//   the input: a byte that says which run it is of and whether it is sealed, the number of segments, and the bytes
#include <memory>

#include "base/error.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/transport/packet.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::fuzz {
namespace {

const std::string graph = "topology: {graph: {name: ring}, weights: {name: uniform}}\ntrigger: {name: always}\n";
const std::string neighbours = "exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}\n";
const std::string some = "sparsify: {selector: {name: topk, density: 0.1}, ";

/// Rank 1's exchange, and what rank 0 may put into its mailbox.
struct Run {
  explicit Run(const std::string& yaml)
      : plan(yaml),
        layout(reference::small_layout()),
        topology(plan.topology(2)),
        initial(layout.size(), 1.0F),
        job{.topology = topology, .layout = layout, .initial = initial, .plan = idle} {}

  test::Plan plan;
  Layout layout;
  Topology topology;
  std::vector<float> initial;
  test::IdlePlan idle{4096};
  test::LocalJob job;
};

const std::vector<std::unique_ptr<Run>>& runs() {
  static const auto all = [] {
    std::vector<std::unique_ptr<Run>> made;
    for (const std::string& yaml :
         {graph + neighbours, graph + neighbours + some + "codec: {name: smallest}}\n",
          graph + neighbours + some + "codec: {name: delta}, quantiser: {name: int8}}\n",
          graph + neighbours + some + "codec: {name: bitmap}, quantiser: {name: one_bit, centre: row_mean}}\n"})
      made.push_back(std::make_unique<Run>(yaml));
    return made;
  }();
  return all;
}

std::string segment(std::uint32_t number, std::uint32_t count, std::uint64_t kind, const std::string& body) {
  const SegmentHeader header{.segment = number, .count = count, .bytes = body.size(), .kind = kind};
  return raw(header) + body;
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string whole = segment(1, 0, 1, std::string(28, '\0'));
  return {std::string("\0\1", 2) + whole,
          std::string("\0\2", 2) + whole + whole,
          std::string("\1\1", 2) + segment(1, 1, 0, std::string(10, '\0')),
          std::string("\2\1", 2) + segment(1, 1, 2, std::string(7, '\1')),
          std::string("\3\1", 2) + segment(1, 1, 2, std::string(10, '\1')),
          std::string("\x80\1", 2) + whole};
}

std::vector<std::string> words() {
  return {raw(std::uint32_t{1}), raw(std::uint64_t{28}), raw(std::uint64_t{1} << 40), raw(1.0F)};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  fuzz::Reader reader({data, size});
  const auto choice = reader.take<std::uint8_t>();
  const fuzz::Run& run = *fuzz::runs()[choice % 4];
  const bool sealed = choice < 0x80;
  const auto segments = reader.take<std::uint8_t>();
  const auto body = reader.rest_bytes().first(std::min<std::size_t>(reader.rest().size(), 4000));
  test::LocalWorld world(run.job);
  const auto sender = world.make_rank(0), receiver = world.make_rank(1);
  const auto exchange = run.plan.exchange().build(receiver->context());
  auto packet = std::make_shared<OutgoingPacket>();
  packet->bytes.resize(sizeof(PacketHeader));
  packet->bytes.insert(packet->bytes.end(), body.begin(), body.end());
  seal_packet(packet->bytes, 0, 0, segments);
  if (!sealed && !body.empty())
    std::memcpy(packet->bytes.data(), body.data(), std::min(body.size(), sizeof(PacketHeader)));
  if (!sealed && packet_header(packet->bytes).iteration < 0) return 0;  // rank 0 itself would refuse it
  try {
    sender->mailbox.post(0, packet);
    sender->engine().wake();
    receiver->engine().poll();
    exchange->start(0);
    exchange->finish(0);
  } catch (const CommunicationError& error) {
    const std::string words = error.what();
    fuzz::require(words.find("rank 0") != std::string::npos && words.find("rank 1") != std::string::npos, "both ranks");
  }
  return 0;
}
