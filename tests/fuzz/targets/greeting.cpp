// What a stranger says at a member's door, before it has proved anything: it is never let in, and told nothing. What
// stands where members meet: a record that was not sealed by the job is never taken for one that was.
//   the input: what is said, and what is read
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/sockets/greeting.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

struct Member {
  sockets::Door door;
  sockets::Secret secret{"a token of a job's", "job"};
  sockets::MemberRecord record{.rank = 1,
                               .ranks = 4,
                               .incarnation = {},
                               .host = "here",
                               .host_name = "here",
                               .local_name = door.local_name(),
                               .addresses = {},
                               .identity = {}};
};

Member& member() {
  static Member one;
  return one;
}

sockets::Descriptor knocked(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  sockets::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  require(::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), length) == 0, "a door");
  return socket;
}

}  // namespace

std::vector<std::string> seeds() {
  const sockets::Secret other("a token of another's", "job");
  return {"hearsay1" + std::string(88, '\0'), std::string(96, 'x'), sealed(member().record, other)};
}

std::vector<std::string> words() {
  return {"hearsay1", "\nproof ", "hearsay member 1", "\nrank ", "\naddress ", raw(std::int32_t{1})};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  using namespace hearsay::fuzz;
  Member& at = member();
  const auto stranger = knocked(at.door.local_name());
  require(::send(stranger.number(), data, size, MSG_NOSIGNAL) >= 0 || size == 0, "a stranger speaks");
  for (int look = 0; look < 3; ++look)
    require(!at.door.admit(at.record, at.secret, std::chrono::milliseconds(0)), "a stranger stays outside");
  std::byte answer{};
  require(::recv(stranger.number(), &answer, 1, MSG_DONTWAIT) <= 0, "and is told nothing");
  const auto found = sockets::read_record({reinterpret_cast<const char*>(data), size}, at.secret);
  require(!found || !found->is_sealed, "a stranger's record is not sealed");
  return 0;
}
