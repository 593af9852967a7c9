// What a member sends that is out of its mind: any bytes on its connection. It is lost, or what it says is taken; no
// other member is, nothing but this process's memory is written, and nothing is allocated that has not come.
//   the input: frames, and what follows them
#include <sys/socket.h>

#include <array>

#include "base/error.hpp"
#include "runtime/sockets/messages.hpp"
#include "runtime/sockets/window.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

using sockets::Descriptor;
using sockets::Frame;
using sockets::FrameKind;

constexpr std::size_t memory_bytes = 256;

std::string frame(FrameKind kind, std::uint32_t channel, std::uint64_t number, std::uint64_t bytes,
                  const std::string& body = {}) {
  return raw(Frame{.kind = kind, .channel = channel, .number = number, .bytes = bytes}) + body;
}

/// The other end of a connection.
struct OtherEnd {
  Descriptor ours, theirs;
  OtherEnd() {
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0, "a connection");
    ours = Descriptor(ends[0]);
    theirs = Descriptor(ends[1]);
  }
  void say(std::string_view bytes) const {
    require(::send(theirs.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0 || bytes.empty() || errno == EPIPE,
            "it can speak");
  }
};

}  // namespace

std::vector<std::string> seeds() {
  const std::string eight = "12345678";
  return {frame(FrameKind::put, 0, 8, 8, eight),     frame(FrameKind::put, 0, memory_bytes - 4, 8, eight),
          frame(FrameKind::flush, 0, 1, 0),          frame(FrameKind::flushed, 0, 1, 0),
          frame(FrameKind::get, 0, 16, 0),           frame(FrameKind::word, 0, 7, 0),
          frame(FrameKind::message, 1, 0, 8, eight), frame(FrameKind::message, 7, 0, std::uint64_t{1} << 40, eight),
          frame(FrameKind::window, 0, 64, 0),        frame(FrameKind::goodbye, 0, 0, 0)};
}

std::vector<std::string> words() {
  return {raw(std::uint64_t{memory_bytes}), raw(~std::uint64_t{0}), raw(std::uint32_t{1}), raw(std::uint64_t{1} << 47)};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  using namespace hearsay::fuzz;
  OtherEnd mad, sane;
  std::vector<sockets::Member> members;
  members.push_back({.host_name = "here", .node = 0, .shares_host = true});
  members.push_back({.host_name = "there", .node = 1, .socket = std::move(mad.ours)});
  members.push_back({.host_name = "there", .node = 1, .socket = std::move(sane.ours)});
  const auto network = std::make_shared<sockets::Network>(0, std::move(members));
  for (const OtherEnd* end : {&mad, &sane}) end->say(frame(FrameKind::window, 0, memory_bytes, 0));
  sockets::Window window(network, memory_bytes, {.deaths = Deaths::others_go_on}, [] {});
  sockets::Messages messages(network);
  mad.say({reinterpret_cast<const char*>(data), size});
  for (int look = 0; look < 4; ++look) window.sync();
  const std::string word = "a word\0\0";
  sane.say(frame(FrameKind::put, 0, 64, word.size(), word));
  sane.say(frame(FrameKind::message, 1, 0, word.size(), word));
  window.sync();
  require(std::memcmp(window.own().data() + 64, word.data(), word.size()) == 0, "the others are heard");
  const RawBytes came = messages.exchange(sockets::Messages::nobody, {}, 2, [] {});
  require(came.size() == word.size(), "and understood");
  mad.theirs = Descriptor();
  sane.theirs = Descriptor();
  return 0;
}
