// Members that come after the start: who is let in and with what number, what reaches them, and what is left.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include <doctest/doctest.h>

#include "runtime/sockets/arrival.hpp"
#include "runtime/sockets/late.hpp"
#include "runtime/sockets/messages.hpp"
#include "runtime/sockets/window.hpp"
#include "tests/runtime/sockets/processes.hpp"

namespace hearsay::late_test {
namespace {

using namespace test;
using namespace sockets;
using std::chrono::milliseconds;

constexpr int founders = 3, places = 2, first = 5;  // 3 and 4 are vertices that nobody has taken
constexpr std::size_t words = 8;

/// One process's end of a job that others join.
struct Joinable {
  std::shared_ptr<sockets::Network> network;
  std::unique_ptr<Latecomers> late;
};

MeetingOptions options_of(const MeetingPlan& plan, int process) {
  return {.patience = plan.patience, .interface = "127.0.0.1", .reachable = true, .host = plan.host(process)};
}

Joinable opened(Met met, std::unique_ptr<Rendezvous> rendezvous, std::optional<Places> came_to) {
  Joinable job{.network = met.network, .late = nullptr};
  job.late = std::make_unique<Latecomers>(met.network, std::move(rendezvous), std::move(met.residence),
                                          Latecomers::Options{.came_to = std::move(came_to),
                                                              .reachable = true,
                                                              .interface = "127.0.0.1",
                                                              .patience = milliseconds(20'000)});
  job.late->open_places(first, places, "configuration");
  return job;
}

Joinable founded(const MeetingFolder& folder, const MeetingPlan& plan, int rank) {
  auto rendezvous = std::make_unique<SharedFolder>(folder.path(), "job");
  auto met = meet_and_stay(*rendezvous, {.rank = rank, .ranks = founders}, {"build", ""}, options_of(plan, rank));
  return opened(std::move(met), std::move(rendezvous), std::nullopt);
}

Joinable joined(const MeetingFolder& folder, const MeetingPlan& plan, int process,
                const Identity& identity = {"build", "configuration"}) {
  auto rendezvous = std::make_unique<SharedFolder>(folder.path(), "job");
  auto arrival = arrive(*rendezvous, identity, options_of(plan, process));
  return opened(std::move(arrival.met), std::move(rendezvous), arrival.places);
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Every process says its number to every other one, by a message and by a store into its memory.
std::string talk(const Joinable& job, const std::vector<int>& members) {
  const auto network = job.network;
  network->go_on_without_the_dead();
  Messages messages(network);
  Window window(network, words * sizeof(std::uint64_t), {.deaths = Deaths::others_go_on}, [] {});
  const int self = network->rank();
  const auto all_here = [&] {
    return std::ranges::all_of(members, [&](int m) { return m == self || network->is_here(m); });
  };
  network->wait_until(all_here, [] {});
  const std::vector<std::byte> said = bytes_of(std::to_string(self));
  const auto round = [&] {
    std::string all;
    for (const int member : members)
      if (member != self) messages.exchange(member, said, Messages::nobody, [] {});
    for (const int member : members) {
      if (member == self) continue;
      const RawBytes came = messages.exchange(Messages::nobody, {}, member, [] {});
      all += std::string(reinterpret_cast<const char*>(came.data()), came.size()) + " ";
    }
    return all;
  };
  const std::string heard = round();
  // What has come says that its sender's memory is open to this process.
  const std::uint64_t word = static_cast<std::uint64_t>(100 + self);
  for (const int member : members)
    if (member != self) window.store(word, member, static_cast<std::size_t>(self) * sizeof word);
  const auto seen = [&](int member) {
    std::uint64_t there = 0;
    std::memcpy(&there, window.own().data() + static_cast<std::size_t>(member) * sizeof there, sizeof there);
    return member == self || there == static_cast<std::uint64_t>(100 + member);
  };
  network->wait_until([&] { return window.sync(), std::ranges::all_of(members, seen); }, [] {});
  for (const int member : members)
    if (member != self) network->wait_until([&] { return window.flush(member); }, [] {});
  round();  // nobody closes its memory while others write there
  return heard;
}

void check_growth(const MeetingPlan& plan) {
  const MeetingFolder folder;
  std::vector<Process> processes;
  const std::vector<int> everybody{0, 1, 2, 5, 6};
  for (int rank = 0; rank < founders; ++rank)
    processes.emplace_back([&, rank] {
      const Joinable job = founded(folder, plan, rank);
      job.late->welcome(bytes_of("welcome"));
      return talk(job, everybody);
    });
  for (int late = 0; late < places; ++late)
    processes.emplace_back([&, late] {
      const Joinable job = joined(folder, plan, founders + late);
      const auto told = job.late->await_welcome([] {});
      if (told != bytes_of("welcome")) return std::string("told something else");
      job.late->welcome(told);
      return std::to_string(job.network->rank()) + ": " + talk(job, everybody);
    });
  std::vector<Ending> endings;
  for (Process& process : processes) endings.push_back(process.end());
  const auto said = all_done(endings);
  CHECK(said[0] == "1 2 5 6 ");
  CHECK(said[1] == "0 2 5 6 ");
  CHECK(said[2] == "0 1 5 6 ");
  const std::string five = "5: 0 1 2 6 ", six = "6: 0 1 2 5 ";
  CHECK(((said[3] == five && said[4] == six) || (said[3] == six && said[4] == five)));
  CHECK(folder.is_empty());
}

TEST_CASE("two processes come to three, are told what the job tells, and talk to all of them and to each other") {
  check_growth(on_one_host(founders));
  check_growth(on_two_hosts(founders));
  check_growth(all_apart(founders));
}

/// Whether members have left something of this kind and number where they meet.
bool there_is(const MeetingFolder& folder, const std::string& kind, const std::string& number) {
  std::error_code ignored;
  for (const auto& key : std::filesystem::directory_iterator(folder.path() / "job", ignored)) {
    const std::string name = key.path().filename();
    if (name.starts_with(kind) && name.ends_with("-" + number)) return true;
  }
  return false;
}

/// A job of three, into which `body` tries to come; the job ends when that is over.
std::string refusal(const std::function<Joinable(const MeetingFolder&, const MeetingPlan&)>& body, int late_ones = 0) {
  const MeetingPlan plan{.ranks = founders, .patience = milliseconds(20'000)};
  const MeetingFolder folder;
  const auto over = folder.path() / "over";
  const auto await_end = [&](const Joinable& job) {
    job.network->go_on_without_the_dead();
    job.network->wait_until([&] { return std::filesystem::exists(over); }, [] {});
    return std::string();
  };
  std::vector<Process> processes;
  for (int rank = 0; rank < founders; ++rank)
    processes.emplace_back([&, rank] { return await_end(founded(folder, plan, rank)); });
  for (int late = 0; late < late_ones; ++late)
    processes.emplace_back([&] { return await_end(joined(folder, plan, founders)); });
  while (late_ones > 0 && !there_is(folder, "inside-", std::to_string(first + late_ones - 1)))
    std::this_thread::sleep_for(milliseconds(10));
  Process stranger([&] { return static_cast<void>(body(folder, plan)), std::string(); });
  const Ending ending = stranger.end(std::chrono::seconds(30));
  std::ofstream(over) << "over";
  std::vector<Ending> endings;
  for (Process& process : processes) endings.push_back(process.end());
  all_done(endings);
  CHECK(ending.signal == 0);
  return std::to_string(ending.exit_code) + " " + ending.error;
}

TEST_CASE("whoever does not belong to the job is refused with a sentence, and the job goes on") {
  const auto has = [](const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
  };
  const std::string other_build = refusal([](const auto& folder, const auto& plan) {
    return joined(folder, plan, founders, {"another", "configuration"});
  });
  CHECK_MESSAGE(has(other_build, "2 job 'job' runs build build"), other_build);
  const std::string other_configuration = refusal([](const auto& folder, const auto& plan) {
    return joined(folder, plan, founders, {"build", "another"});
  });
  CHECK_MESSAGE(has(other_configuration, "2 job 'job' has another configuration"), other_configuration);
  const std::string other_token = refusal([](const auto& folder, const auto& plan) {
    SharedFolder rendezvous(folder.path(), "job");
    auto options = options_of(plan, founders);
    options.token = "a token of another job";
    static_cast<void>(arrive(rendezvous, {"build", "configuration"}, options));
    return Joinable{};
  });
  CHECK_MESSAGE(has(other_token, "2 job 'job' has another token"), other_token);
  const std::string too_many =
      refusal([](const auto& folder, const auto& plan) { return joined(folder, plan, founders); }, places);
  CHECK_MESSAGE(has(too_many, "no place left"), too_many);
  const std::string nowhere = refusal([](const auto& folder, const MeetingPlan& plan) {
    SharedFolder rendezvous(folder.path(), "elsewhere");
    auto options = options_of(plan, founders);
    options.job = "elsewhere";
    options.patience = milliseconds(300);
    static_cast<void>(arrive(rendezvous, {"build", "configuration"}, options));
    return Joinable{};
  });
  CHECK_MESSAGE(has(nowhere, "4 no job 'elsewhere'"), nowhere);
}

TEST_CASE("one that is killed on its way in, and a member that is killed, are no obstacle to the next") {
  const MeetingPlan plan{.ranks = founders, .patience = milliseconds(20'000)};
  const MeetingFolder folder;
  const auto stays = [](const Joinable& job) {
    job.network->go_on_without_the_dead();
    job.network->wait_until([&] { return job.network->is_here(first + 1); }, [] {});
    return talk(job, {1, 2, 6});
  };
  std::vector<Process> members;
  for (int rank = 0; rank < founders; ++rank)
    members.emplace_back([&, rank] { return stays(founded(folder, plan, rank)); });
  // It has claimed number 5 and listens, and is killed before it is connected to anybody.
  Process on_its_way([&] {
    SharedFolder rendezvous(folder.path(), "job");
    while (!rendezvous.get("places")) std::this_thread::sleep_for(milliseconds(5));
    const Secret secret(*rendezvous.get("token"), "job");
    Door door;
    std::string opening;
    std::istringstream(*rendezvous.get("places")) >> opening >> opening >> opening;
    const MemberRecord self{.rank = first,
                            .ranks = founders,
                            .incarnation = new_nonce(),
                            .host = plan.host(0),
                            .host_name = "here",
                            .local_name = door.local_name(),
                            .addresses = {},
                            .identity = {"build", ""}};
    rendezvous.put_if_absent("claim-" + opening + "-5", sealed(self, secret));
    std::this_thread::sleep_for(std::chrono::minutes(1));
    return std::string();
  });
  while (!there_is(folder, "claim-", "5")) std::this_thread::sleep_for(milliseconds(10));
  Process next([&] {
    const Joinable job = joined(folder, plan, founders);
    return std::to_string(job.network->rank()) + ": " + talk(job, {1, 2, 6});
  });
  std::this_thread::sleep_for(milliseconds(300));  // it waits for the one before it
  members[0].kill();
  on_its_way.kill();
  const Ending came = next.end();
  CHECK(came.error == "");
  CHECK(came.said == "6: 1 2 ");
  CHECK(members[1].end().said == "2 6 ");
  CHECK(members[2].end().said == "1 6 ");
}

}  // namespace
}  // namespace hearsay::late_test
