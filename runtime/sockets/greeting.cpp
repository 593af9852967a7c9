#include "runtime/sockets/greeting.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace hearsay::sockets {
namespace {

constexpr std::chrono::seconds patience_with_strangers{5};  // with somebody who is to say something
constexpr std::size_t most_strangers = 64;

struct Hello {
  std::array<char, 8> magic{'h', 'e', 'a', 'r', 's', 'a', 'y', '1'};
  std::int32_t from = 0, to = 0;
  Nonce from_incarnation{}, to_incarnation{}, nonce{};
  Proof proof{};
};
static_assert(sizeof(Hello) == 96);
struct Challenge {
  Nonce nonce{};
  Proof proof{};
};
static_assert(sizeof(Challenge) == 48);

std::span<const std::byte> bytes_of(const Hello& hello) {
  return std::as_bytes(std::span(&hello, 1)).first(sizeof hello - sizeof hello.proof);
}

std::vector<std::byte> bytes_of(const Hello& hello, const Nonce& nonce) {
  std::vector<std::byte> words(sizeof hello + sizeof nonce);
  std::memcpy(words.data(), &hello, sizeof hello);
  std::memcpy(words.data() + sizeof hello, nonce.data(), sizeof nonce);
  return words;
}

/// False when it is too late.
bool wait_for(int socket, short events, Deadline until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
  pollfd waited{.fd = socket, .events = events, .revents = 0};
  return left > 0 && ::poll(&waited, 1, static_cast<int>(left)) != 0;
}

template <class Value>
bool say(const Descriptor& socket, const Value& value, Deadline until) {
  auto left = std::as_bytes(std::span(&value, 1));
  while (!left.empty()) {
    const ssize_t gone = ::send(socket.number(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (gone >= 0)
      left = left.subspan(static_cast<std::size_t>(gone));
    else if (errno != EAGAIN && errno != EINTR)
      return false;
    else if (!wait_for(socket.number(), POLLOUT, until))
      return false;
  }
  return true;
}

template <class Value>
bool listen_to(const Descriptor& socket, Value& value, Deadline until) {
  auto left = std::as_writable_bytes(std::span(&value, 1));
  while (!left.empty()) {
    const ssize_t came = ::recv(socket.number(), left.data(), left.size(), MSG_DONTWAIT);
    if (came > 0)
      left = left.subspan(static_cast<std::size_t>(came));
    else if (came == 0 || (errno != EAGAIN && errno != EINTR))
      return false;
    else if (!wait_for(socket.number(), POLLIN, until))
      return false;
  }
  return true;
}

/// Small frames go at once; a host that has vanished is noticed after two minutes, on both sides.
void prepare_tcp(const Descriptor& socket) {
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(socket.number(), level, option, &value, sizeof value);
  };
  constexpr int idle_s = 30, interval_s = 15, probes = 6, unanswered_ms = 120'000;
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
  set(IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
  set(IPPROTO_TCP, TCP_KEEPCNT, probes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, unanswered_ms);
}

Descriptor new_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

struct LocalAddress {
  sockaddr_un name{};
  socklen_t length = 0;
};
/// In the abstract name space: it begins with a zero.
LocalAddress local_address(const std::string& name) {
  LocalAddress address;
  address.name.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.name.sun_path - 1);
  std::memcpy(address.name.sun_path + 1, name.data(), length);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

/// "10.0.0.7:40123"
std::optional<sockaddr_in> read_address(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data() + colon + 1, end, port).ptr != end ||
      ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1)
    return std::nullopt;
  address.sin_port = htons(port);
  return address;
}

Descriptor connected(Descriptor socket, const sockaddr* address, socklen_t length) {
  if (!socket) return {};
  if (::connect(socket.number(), address, length) == 0) return socket;
  int error = errno;
  socklen_t size = sizeof error;
  constexpr std::chrono::seconds for_an_address{3};
  if (error != EINPROGRESS || !wait_for(socket.number(), POLLOUT, std::chrono::steady_clock::now() + for_an_address) ||
      ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
    return {};
  return socket;
}

Descriptor connect_to(const MemberRecord& at, const MemberRecord& self) {
  if (at.host == self.host) {
    const LocalAddress address = local_address(at.local_name);
    return connected(new_socket(AF_UNIX), reinterpret_cast<const sockaddr*>(&address.name), address.length);
  }
  for (const std::string& text : at.addresses) {
    const auto address = read_address(text);
    if (!address) continue;
    auto socket = connected(new_socket(AF_INET), reinterpret_cast<const sockaddr*>(&*address), sizeof(sockaddr_in));
    if (!socket) continue;
    prepare_tcp(socket);
    return socket;
  }
  return {};
}

/// This host's IPv4 addresses that others may reach; its loopback where it has no other.
std::vector<in_addr> addresses_of(const std::string& interface) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0)
    throw CommunicationError("cannot list interfaces: " + std::generic_category().message(errno));
  std::vector<in_addr> found, loopback;
  std::string names;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
    const in_addr address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    char text[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &address, text, sizeof text);
    names += (names.empty() ? "" : ", ") + std::string(one->ifa_name) + " (" + text + ")";
    if (!interface.empty() && interface != one->ifa_name && interface != text) continue;
    ((one->ifa_flags & IFF_LOOPBACK) != 0 && interface.empty() ? loopback : found).push_back(address);
  }
  ::freeifaddrs(all);
  if (found.empty()) found = loopback;
  if (found.empty())
    throw ConfigError("no interface of this host is called '" + interface + "'; it has " + names +
                      " (HEARSAY_INTERFACE)");
  return found;
}

}  // namespace

Door::Door() : local_name_("hearsay-" + new_token()), local_(new_socket(AF_UNIX)) {
  const LocalAddress address = local_address(local_name_);
  if (!local_ || ::bind(local_.number(), reinterpret_cast<const sockaddr*>(&address.name), address.length) != 0 ||
      ::listen(local_.number(), SOMAXCONN) != 0)
    throw CommunicationError("cannot open a local socket: " + std::generic_category().message(errno));
}

std::vector<std::string> Door::open_port(const std::string& interface) {
  const std::vector<in_addr> all = addresses_of(interface);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = all.size() == 1 ? all.front().s_addr : htonl(INADDR_ANY);
  socklen_t length = sizeof address;
  port_ = new_socket(AF_INET);
  if (!port_ || ::bind(port_.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(port_.number(), SOMAXCONN) != 0 ||
      ::getsockname(port_.number(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw CommunicationError("cannot open a port: " + std::generic_category().message(errno));
  std::vector<std::string> texts;
  for (const in_addr& one : all) {
    char text[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &one, text, sizeof text);
    texts.push_back(std::string(text) + ":" + std::to_string(ntohs(address.sin_port)));
  }
  return texts;
}

void Door::let_in(const Descriptor& listener) {
  Descriptor socket(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  if (&listener == &port_) prepare_tcp(socket);
  if (strangers_.size() >= most_strangers) strangers_.pop_front();
  strangers_.push_back(
      {.socket = std::move(socket), .until = std::chrono::steady_clock::now() + patience_with_strangers});
}

std::optional<Door::Visitor> Door::admit(const MemberRecord& self, const Secret& secret,
                                         std::chrono::milliseconds longest) {
  std::vector<pollfd> waited;
  const auto watch = [&](const Descriptor& socket) {
    waited.push_back({.fd = socket ? socket.number() : -1, .events = POLLIN, .revents = 0});
  };
  watch(local_), watch(port_);
  for (const Stranger& stranger : strangers_) watch(stranger.socket);
  ::poll(waited.data(), waited.size(), static_cast<int>(longest.count()));
  if (waited[0].revents != 0) let_in(local_);
  if (waited[1].revents != 0) let_in(port_);
  const auto now = std::chrono::steady_clock::now();
  std::size_t at = 2;
  for (auto stranger = strangers_.begin(); stranger != strangers_.end() && at < waited.size(); ++at) {
    std::optional<Visitor> visitor;
    const bool speaks = waited[at].revents != 0;
    if (speaks) visitor = hear(*stranger, self, secret);
    const bool stays = stranger->socket && stranger->until > now;
    stranger = stays ? std::next(stranger) : strangers_.erase(stranger);
    if (visitor) return visitor;
  }
  return std::nullopt;
}

/// Closes the socket of one who is no member.
std::optional<Door::Visitor> Door::hear(Stranger& stranger, const MemberRecord& self, const Secret& secret) {
  std::array<std::byte, sizeof(Hello)> more;
  const ssize_t came =
      ::recv(stranger.socket.number(), more.data(), sizeof(Hello) - stranger.said.size(), MSG_DONTWAIT);
  if (came < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  Descriptor socket = std::move(stranger.socket);
  if (came <= 0) return std::nullopt;
  stranger.said.insert(stranger.said.end(), more.begin(), more.begin() + came);
  Hello hello;
  const Hello expected;
  std::memcpy(&hello, stranger.said.data(), stranger.said.size());
  if (std::memcmp(&hello, &expected, std::min(stranger.said.size(), sizeof hello.magic)) != 0) return std::nullopt;
  if (stranger.said.size() < sizeof hello) {
    stranger.socket = std::move(socket);
    return std::nullopt;
  }
  if (!secret.agrees(hello.proof, "hello", bytes_of(hello)) || hello.to != self.rank ||
      hello.to_incarnation != self.incarnation || hello.from < 0 || hello.from >= self.ranks || hello.from == self.rank)
    return std::nullopt;
  const Deadline until = std::chrono::steady_clock::now() + patience_with_strangers;
  Challenge challenge{.nonce = new_nonce()};
  const auto words = bytes_of(hello, challenge.nonce);
  challenge.proof = secret.proof("challenge", words);
  Proof answer{};
  if (!say(socket, challenge, until) || !listen_to(socket, answer, until) || !secret.agrees(answer, "answer", words))
    return std::nullopt;
  return Visitor{.rank = hello.from, .socket = std::move(socket)};
}

Descriptor knock(const MemberRecord& at, const MemberRecord& self, const Secret& secret) {
  Descriptor socket = connect_to(at, self);
  if (!socket) return {};
  const Deadline until = std::chrono::steady_clock::now() + patience_with_strangers;
  Hello hello;
  hello.from = self.rank;
  hello.to = at.rank;
  hello.from_incarnation = self.incarnation;
  hello.to_incarnation = at.incarnation;
  hello.nonce = new_nonce();
  hello.proof = secret.proof("hello", bytes_of(hello));
  Challenge challenge;
  if (!say(socket, hello, until) || !listen_to(socket, challenge, until)) return {};
  const auto words = bytes_of(hello, challenge.nonce);
  if (!secret.agrees(challenge.proof, "challenge", words) || !say(socket, secret.proof("answer", words), until))
    return {};
  return socket;
}

constexpr std::byte come_in{'i'};

bool bid_come_in(const Descriptor& visitor) {
  return say(visitor, come_in, std::chrono::steady_clock::now() + patience_with_strangers);
}

bool is_bid_come_in(const Descriptor& door) {
  std::byte word{};
  return listen_to(door, word, std::chrono::steady_clock::now() + patience_with_strangers) && word == come_in;
}

bool answers(const MemberRecord& at, const MemberRecord& self) { return static_cast<bool>(connect_to(at, self)); }

}  // namespace hearsay::sockets
