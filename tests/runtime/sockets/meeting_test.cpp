// Who meets whom, who is refused, and what is left afterwards.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>

#include "base/random.hpp"
#include "runtime/sockets/greeting.hpp"
#include "tests/runtime/sockets/processes.hpp"

namespace hearsay::meeting_test {
namespace {

using namespace test;
using namespace sockets;
using Shared = std::shared_ptr<sockets::Network>;

bool mentions(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST_CASE("a proof is HMAC-SHA256 of purpose and words, under that of token and job") {
  const std::string token = "a token of a job's";
  const Secret one(token, "job"), same(token, "job"), other_job(token, "job2"), other_token(token + "!", "job");
  const auto words = std::as_bytes(std::span(std::string_view("words")));
  const Proof proof = one.proof("purpose", words);
  CHECK(hexadecimal(proof) == "d1f6261dbab82520116eaec6cfccdb2324bb61795cb8ad73e6434838cae07b9f");  // by Python's hmac
  CHECK(same.agrees(proof, "purpose", words));
  CHECK_FALSE(same.agrees(proof, "other purpose", words));
  CHECK_FALSE(same.agrees(proof, "purpose", words.first(4)));
  CHECK_FALSE(other_job.agrees(proof, "purpose", words));
  CHECK_FALSE(other_token.agrees(proof, "purpose", words));
  CHECK_THROWS_AS(Secret("short", "job"), ConfigError);
}

MemberRecord some_record() {
  return {.rank = 3,
          .ranks = 5,
          .incarnation = new_nonce(),
          .host = "boot net",
          .host_name = "node 7",
          .local_name = "hearsay-12",
          .addresses = {"10.0.0.1:4711", "192.168.0.1:4711"},
          .identity = {.build = "0.2.0-abc", .configuration = "0123"}};
}

TEST_CASE("a record is read as it was written, and no byte of it can be changed") {
  const Secret secret("a token of a job's", "job");
  const MemberRecord record = some_record();
  const std::string text = sealed(record, secret);
  const auto read = read_record(text, secret);
  REQUIRE(read);
  CHECK(read->is_sealed);
  CHECK(read->record.rank == record.rank);
  CHECK(read->record.ranks == record.ranks);
  CHECK(read->record.incarnation == record.incarnation);
  CHECK(read->record.host == record.host);
  CHECK(read->record.host_name == record.host_name);
  CHECK(read->record.local_name == record.local_name);
  CHECK(read->record.addresses == record.addresses);
  CHECK(read->record.identity.build == record.identity.build);
  CHECK(read->record.identity.configuration == record.identity.configuration);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    const auto found = read_record(changed, secret);
    CHECK_FALSE((found && found->is_sealed));
  }
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto found = read_record(text.substr(0, length), secret);
    CHECK_FALSE((found && found->is_sealed));
  }
}

TEST_CASE("a folder has what was put there last, whole, and is gone when nothing is left in it") {
  const MeetingFolder folder;
  {
    SharedFolder one(folder.path(), "job"), two(folder.path(), "job");
    CHECK_FALSE(one.get("key"));
    one.put("key", "a");
    two.put("key", "b\nc");
    CHECK(one.get("key") == "b\nc");
    CHECK(one.put_if_absent("key", "d") == "b\nc");
    CHECK(one.put_if_absent("other", "d") == "d");
    CHECK(two.list("") == std::vector<std::string>{"key", "other"});
    CHECK(two.list("k") == std::vector<std::string>{"key"});
    one.remove("key"), one.remove("other");
  }
  CHECK(folder.is_empty());
}

TEST_CASE("a folder that others may look into, or that cannot be made, is refused with a sentence") {
  const MeetingFolder folder;
  std::filesystem::create_directory(folder.path() / "job");
  std::filesystem::permissions(folder.path() / "job", std::filesystem::perms::all);
  CHECK_THROWS_AS(SharedFolder(folder.path(), "job"), ConfigError);
  CHECK_THROWS_AS(SharedFolder(folder.path(), "../job"), ConfigError);
  CHECK_THROWS_AS(SharedFolder(folder.path(), ""), ConfigError);
  std::ofstream(folder.path() / "file") << "x";
  CHECK_THROWS_AS(SharedFolder(folder.path() / "file", "job"), DataError);
}

/// Two processes of which one is different: what both say.
std::pair<Ending, Ending> unlike_pair(const std::function<void(int rank, Seat&, Identity&, MeetingOptions&)>& change) {
  const MeetingFolder folder;
  std::vector<Process> both;
  for (int rank = 0; rank < 2; ++rank)
    both.emplace_back([&, rank]() -> std::string {
      Seat seat{.rank = rank, .ranks = 2};
      Identity identity{"build", "configuration"};
      MeetingOptions options{.patience = std::chrono::seconds(20), .host = "here"};
      change(rank, seat, identity, options);
      SharedFolder rendezvous(folder.path(), "job");
      meet(rendezvous, seat, identity, options);
      return "met";
    });
  auto endings = std::pair{both[0].end(), both[1].end()};
  std::string left;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) left += entry.path().string();
  CHECK(left == "");
  return endings;
}

TEST_CASE("another token, build, configuration or size is refused on both sides, with a sentence") {
  const auto check = [](const std::pair<Ending, Ending>& both, const std::string& words) {
    for (const Ending& ending : {both.first, both.second}) {
      CAPTURE(ending.error);
      CHECK(ending.exit_code == static_cast<int>(ExitCode::configuration));
      CHECK(mentions(ending.error, words));
    }
  };
  check(unlike_pair([](int rank, Seat&, Identity&, MeetingOptions& options) {
          options.token = rank == 0 ? "the token of one of them" : "the token of the other";
        }),
        "another token");
  check(
      unlike_pair([](int rank, Seat&, Identity& identity, MeetingOptions&) { identity.build = std::to_string(rank); }),
      "build");
  check(unlike_pair([](int rank, Seat&, Identity& identity, MeetingOptions&) {
          identity.configuration = std::to_string(rank);
        }),
        "configuration");
  check(unlike_pair([](int rank, Seat& seat, Identity&, MeetingOptions&) { seat.ranks += rank; }), "ranks");
}

TEST_CASE("a rank that is there already is refused") {
  const auto both = unlike_pair([](int rank, Seat& seat, Identity&, MeetingOptions& options) {
    seat.rank = 0;
    options.patience = std::chrono::seconds(3);
    if (rank == 1) ::usleep(500'000);
  });
  CAPTURE(both.second.error);
  CHECK(both.second.exit_code == static_cast<int>(ExitCode::configuration));
  CHECK(mentions(both.second.error, "already"));
  CHECK(both.first.exit_code == static_cast<int>(ExitCode::communication));
  CHECK(mentions(both.first.error, "1 of 2 are missing (1)"));
}

TEST_CASE("who was killed while others had not come yet is followed by another, and nothing is left") {
  for (const auto& plan : {on_one_host(3), on_two_hosts(3)}) {
    const MeetingFolder folder;
    const auto body = [&](int rank) {
      return Process([&, rank] { return join(folder, plan, rank) ? "met" : "none"; });
    };
    for (const int victim : {0, 2}) {
      Process killed = body(victim), other = body(1);
      ::usleep(300'000);
      killed.kill();
      CHECK(killed.end().signal == SIGKILL);
      Process first = body(victim), second = body(2 - victim);
      for (Process* process : {&other, &first, &second}) {
        const Ending ending = process->end();
        CHECK(ending.error == "");
        CHECK(ending.said == "met");
      }
    }
    // The token of the first, who was killed, may stay.
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      CHECK_FALSE(mentions(entry.path().filename(), "member-"));
  }
}

/// A stranger at a member's door: what the door does with what it says.
class AtTheDoor {
 public:
  AtTheDoor() : self_(some_record()), other_(some_record()) {
    self_.local_name = door_.local_name();
    other_.rank = 4;
  }
  /// Says these bytes and looks whether somebody is let in. What is answered.
  std::vector<std::byte> answer_to(std::span<const std::byte> bytes) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, self_.local_name.data(), self_.local_name.size());
    const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + self_.local_name.size());
    REQUIRE(::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), length) == 0);
    REQUIRE(::send(socket.number(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    for (int look = 0; look < 3; ++look) CHECK_FALSE(door_.admit(self_, secret_, std::chrono::milliseconds(1)));
    std::vector<std::byte> answer(1000);
    const ssize_t came = ::recv(socket.number(), answer.data(), answer.size(), 0);
    answer.resize(came > 0 ? static_cast<std::size_t>(came) : 0);
    return answer;
  }
  Door& door() { return door_; }
  const MemberRecord& self() const { return self_; }
  const MemberRecord& other() const { return other_; }
  const Secret& secret() const { return secret_; }

 private:
  Door door_;
  Secret secret_{"a token of a job's", "job"};
  MemberRecord self_, other_;
};

TEST_CASE("strangers are told nothing, whatever they say, and members get in all the same") {
  AtTheDoor at;
  Random random(5);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::byte> bytes(1 + random.below(200));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    if (trial % 2 == 0) std::memcpy(bytes.data(), "hearsay1", std::min<std::size_t>(bytes.size(), 8));
    CHECK(at.answer_to(bytes).empty());
  }
  const Secret wrong("a token of another's", "job");
  std::jthread stranger([&] { CHECK_FALSE(knock(at.self(), at.other(), wrong)); });
  for (int look = 0; look < 20; ++look)
    CHECK_FALSE(at.door().admit(at.self(), at.secret(), std::chrono::milliseconds(10)));
  stranger.join();
  std::jthread member([&] { CHECK(static_cast<bool>(knock(at.self(), at.other(), at.secret()))); });
  std::optional<Door::Visitor> visitor;
  for (int look = 0; look < 1000 && !visitor; ++look)
    visitor = at.door().admit(at.self(), at.secret(), std::chrono::milliseconds(10));
  REQUIRE(visitor);
  CHECK(visitor->rank == at.other().rank);
}

TEST_CASE("an interface that is not there is refused, and the sentence names those that are") {
  Door door;
  CHECK_FALSE(door.open_port("").empty());
  CHECK_FALSE(door.open_port("lo").empty());
  try {
    door.open_port("nowhere0");
    FAIL("taken");
  } catch (const ConfigError& error) {
    CHECK(mentions(error.what(), "nowhere0"));
    CHECK(mentions(error.what(), "127.0.0.1"));
  }
}

}  // namespace
}  // namespace hearsay::meeting_test
