// Bytes that no rank of this run can have meant: an error that names both ranks, never a crash, never a silent copy.
#include <algorithm>
#include <cstring>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/error.hpp"
#include "runtime/exchange/neighbour/link/link.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::corrupt_test {
namespace {

using namespace test;
using Bytes = std::vector<std::byte>;

const std::string sparse_run = "sparsify: {selector: {name: topk, density: 0.1}}\n";

/// Rank 0 posts bytes of the test's choice to rank 1, whose asynchronous exchange has to take them.
class Pair {
 public:
  explicit Pair(const std::string& sparsify)
      : plan_(ring + eventgrad("{name: arrival}", "asynchronous") + sparsify),
        layout_(reference::small_layout()),
        topology_(plan_.topology(2)),
        initial_(layout_.size(), 1.0F),
        job_{.topology = topology_, .layout = layout_, .initial = initial_, .plan = idle_},
        world_(job_),
        sender_(world_.make_rank(0)),
        receiver_(world_.make_rank(1)),
        exchange_(plan_.exchange().build(receiver_->context())) {}

  void post(const Bytes& bytes) {
    auto packet = std::make_shared<OutgoingPacket>();
    packet->bytes.assign(bytes.begin(), bytes.end());
    sender_->mailbox.post(0, packet);
    sender_->engine().wake();
  }
  /// What rank 1 says to what has come; empty if nothing is wrong.
  std::string receive() {
    try {
      receiver_->engine().poll();
      exchange_->start(0);
      exchange_->finish(0);
    } catch (const CommunicationError& error) {
      return error.what();
    }
    return {};
  }

 private:
  Plan plan_;
  Layout layout_;
  Topology topology_;
  std::vector<float> initial_;
  IdlePlan idle_{4096};
  LocalJob job_;
  LocalWorld world_;
  std::unique_ptr<LocalRank> sender_, receiver_;
  std::unique_ptr<Exchange> exchange_;
};

template <class T>
void append(Bytes& bytes, const T& value) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

/// One segment's header and that many zero bytes behind it, sealed as iteration 0 of rank 0.
Bytes packet(const SegmentHeader& header, std::size_t body_bytes, std::uint32_t segments = 1) {
  Bytes bytes(sizeof(PacketHeader));
  append(bytes, header);
  bytes.resize(bytes.size() + body_bytes);
  seal_packet(bytes, 0, 0, segments);
  return bytes;
}

std::string answer(const Bytes& bytes, const std::string& sparsify = "") {
  Pair pair(sparsify);
  pair.post(bytes);
  return pair.receive();
}

void check_names_both(const std::string& message) {
  CAPTURE(message);
  CHECK(message.find("rank 0") != std::string::npos);
  CHECK(message.find("rank 1") != std::string::npos);
}

TEST_CASE("packets that are as agreed are taken") {
  CHECK(answer(packet({.segment = 1, .count = 7, .bytes = 28, .kind = 1}, 28)) == "");
  CHECK(answer(packet({.segment = 1, .count = 1, .bytes = 8, .kind = 0}, 8), sparse_run) == "");
}

TEST_CASE("a segment that does not exist") {
  check_names_both(answer(packet({.segment = 4, .count = 1, .bytes = 4, .kind = 1}, 4)));
  check_names_both(answer(packet({.segment = 0xffffffff, .count = 1, .bytes = 4, .kind = 1}, 4)));
}

TEST_CASE("a segment of another length") {
  check_names_both(answer(packet({.segment = 1, .count = 7, .bytes = 24, .kind = 1}, 24)));
  check_names_both(answer(packet({.segment = 1, .count = 8, .bytes = 32, .kind = 1}, 32)));
  check_names_both(answer(packet({.segment = 1, .count = 0, .bytes = 0, .kind = 1}, 0)));
  check_names_both(answer(packet({.segment = 1, .count = 7, .bytes = 24, .kind = 1}, 24), sparse_run));
}

TEST_CASE("a segment longer than its packet, or fewer segments than announced") {
  check_names_both(answer(packet({.segment = 1, .count = 7, .bytes = 28, .kind = 1}, 24)));
  for (const std::uint64_t bytes : {std::uint64_t{0xffffffff}, std::uint64_t{1} << 32, (std::uint64_t{1} << 40) - 29}) {
    check_names_both(answer(packet({.segment = 1, .count = 7, .bytes = bytes, .kind = 1}, 28)));
    check_names_both(answer(packet({.segment = 1, .count = 7, .bytes = bytes + 28, .kind = 1}, 28)));
  }
  check_names_both(answer(packet({.segment = 1, .count = 7, .bytes = 28, .kind = 1}, 28, 2)));
}

TEST_CASE("bytes that belong to no segment") {
  check_names_both(answer(packet({.segment = 1, .count = 7, .bytes = 28, .kind = 1}, 32)));
  check_names_both(answer(packet({.segment = 1, .count = 7, .bytes = 28, .kind = 1}, 28, 0)));
}

TEST_CASE("sparse values for a dense run, and sparse values that cannot be") {
  check_names_both(answer(packet({.segment = 1, .count = 1, .bytes = 8, .kind = 0}, 8)));
  check_names_both(answer(packet({.segment = 1, .count = 8, .bytes = 32, .kind = 0}, 32), sparse_run));
  check_names_both(answer(packet({.segment = 1, .count = 2, .bytes = 16, .kind = 0}, 16), sparse_run));  // 0 twice
  check_names_both(answer(packet({.segment = 2, .count = 0xffffffff, .bytes = 8, .kind = 0}, 8), sparse_run));
}

TEST_CASE("a body of another kind than this run's") {
  const std::string rounding_run = "sparsify: {selector: {name: topk, density: 0.1}, quantiser: {name: fp16}}\n";
  check_names_both(answer(packet({.segment = 1, .count = 7, .bytes = 28, .kind = 1}, 28), sparse_run));
  check_names_both(answer(packet({.segment = 1, .count = 1, .bytes = 8, .kind = 2}, 8), sparse_run));
  check_names_both(answer(packet({.segment = 1, .count = 7, .bytes = 28, .kind = 3}, 28)));
  check_names_both(answer(packet({.segment = 1, .count = 1, .bytes = 6, .kind = 0}, 6), rounding_run));
  CHECK(answer(packet({.segment = 1, .count = 1, .bytes = 6, .kind = 2}, 6), rounding_run) == "");
  check_names_both(answer(packet({.segment = 1, .count = 1, .bytes = 8, .kind = 2}, 8), rounding_run));
}

TEST_CASE("a packet that says it is somebody else's or of another length") {
  Bytes stranger = packet({.segment = 1, .count = 7, .bytes = 28, .kind = 1}, 28);
  seal_packet(stranger, 3, 0, 1);
  check_names_both(answer(stranger));
  Bytes shorter = packet({.segment = 1, .count = 7, .bytes = 28, .kind = 1}, 28);
  const std::uint64_t length = 40;
  std::memcpy(shorter.data() + sizeof(PacketHeader::checksum), &length, sizeof length);
  check_names_both(answer(shorter));
}

TEST_CASE("any single flipped bit is noticed") {
  const Bytes good = packet({.segment = 1, .count = 7, .bytes = 28, .kind = 1}, 28);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    CAPTURE(bit);
    Bytes bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    check_names_both(answer(bad));
  }
}

TEST_CASE("a length of zero where a packet was announced") {
  Bytes marker = packet({.segment = 1, .count = 7, .bytes = 28, .kind = 1}, 28);
  const std::uint64_t length = 0;
  std::memcpy(marker.data() + sizeof(PacketHeader::checksum), &length, sizeof length);
  check_names_both(answer(marker));
}

Bytes to_bytes(const std::vector<std::uint8_t>& numbers) {
  Bytes bytes(numbers.size());
  std::ranges::transform(numbers, bytes.begin(), [](std::uint8_t number) { return std::byte{number}; });
  return bytes;
}

TEST_CASE("random bytes") {
  CHECK(rc::check("without a seal they are refused by name", [] {
    const auto size = *rc::gen::inRange<std::size_t>(sizeof(PacketHeader), 512);
    const auto message =
        answer(to_bytes(*rc::gen::container<std::vector<std::uint8_t>>(size, rc::gen::arbitrary<std::uint8_t>())));
    RC_ASSERT(message.find("rank 0") != std::string::npos);
    RC_ASSERT(message.find("rank 1") != std::string::npos);
  }));
}

TEST_CASE("random segments under a good seal are taken or refused by name") {
  CHECK(rc::check([] {
    Bytes bytes(sizeof(PacketHeader));
    const auto segments = *rc::gen::inRange<std::uint32_t>(0, 4);
    for (std::uint32_t s = 0; s < segments; ++s) {
      const SegmentHeader header{
          .segment = *rc::gen::inRange<std::uint32_t>(0, 6),
          .count = *rc::gen::element<std::uint32_t>(0, 1, 7, 64, 300, 0xffffffff),
          .bytes = *rc::gen::element<std::uint64_t>(0, 4, 8, 28, 56, 1ULL << 32, (1ULL << 56) - 1),
          .kind = *rc::gen::inRange<std::uint64_t>(0, 3)};
      append(bytes, header);
      const auto body = *rc::gen::element<std::size_t>(0, 3, 4, 8, 28, 56);
      const auto filling = *rc::gen::container<std::vector<std::uint8_t>>(body, rc::gen::inRange<std::uint8_t>(0, 9));
      const Bytes more = to_bytes(filling);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    seal_packet(bytes, 0, 0, *rc::gen::inRange<std::uint32_t>(0, 5));
    const std::string message = answer(bytes, *rc::gen::element<std::string>("", sparse_run));
    RC_CLASSIFY(message.empty(), "taken");
    RC_ASSERT(message.empty() ||
              (message.find("rank 0") != std::string::npos && message.find("rank 1") != std::string::npos));
  }));
}

}  // namespace
}  // namespace hearsay::corrupt_test
