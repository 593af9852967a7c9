#include "runtime/sockets/arrival.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hearsay::sockets {
namespace {

/// A process on its way into a job.
class Arriving {
 public:
  Arriving(Rendezvous& rendezvous, const Identity& identity, const MeetingOptions& options)
      : rendezvous_(rendezvous),
        options_(options),
        until_(std::chrono::steady_clock::now() + options.patience),
        token_(found_token()),
        secret_(token_, options.job) {
    self_.incarnation = new_nonce();
    self_.host = options.host;
    self_.host_name = own_host_name();
    self_.local_name = door_.local_name();
    self_.identity = identity;
    if (options.reachable) self_.addresses = door_.open_port(options.interface);
  }

  Arrival run() {
    do {
      find_job();
      claim_place();
    } while (!is_still_open());
    for (int earlier = places_.first; earlier < self_.rank; ++earlier) await_earlier(earlier);
    const auto members = records();
    sockets_.resize(static_cast<std::size_t>(places_.first + places_.count));
    for (const MemberRecord& member : members)
      if (member.rank < self_.rank) sockets_[static_cast<std::size_t>(member.rank)] = knocked_at(member);
    auto network = std::make_shared<Network>(self_.rank, places(members), self_.ranks);
    network->go_on_without_the_dead();
    return {.met = {.network = std::move(network),
                    .residence = {.token = options_.token.empty() ? token_ : "",
                                  .secret = secret_,
                                  .door = std::move(door_),
                                  .self = self_}},
            .places = places_};
  }

 private:
  bool too_late() const { return std::chrono::steady_clock::now() > until_; }
  void wait() {
    options_.idle();
    rendezvous_.watch(std::chrono::milliseconds(50));
  }
  CommunicationError no_job() const {
    return CommunicationError("no job '" + options_.job + "' that others may join is at " + rendezvous_.name() +
                              "; look at its name (HEARSAY_JOB), at HEARSAY_RENDEZVOUS, and whether its "
                              "configuration has train.joins");
  }

  std::string found_token();
  void find_job();
  bool is_still_open();
  std::vector<MemberRecord> records();
  void require_like(const FoundRecord& there) const;
  void claim_place();
  void await_earlier(int number);
  Descriptor knocked_at(const MemberRecord& member);
  std::vector<Member> places(const std::vector<MemberRecord>& members);

  Rendezvous& rendezvous_;
  const MeetingOptions& options_;
  const Deadline until_;
  std::string token_;
  Secret secret_;
  Door door_;
  MemberRecord self_;
  Places places_;
  std::vector<Descriptor> sockets_;  // by number
};

std::string Arriving::found_token() {
  for (;;) {
    const auto left = rendezvous_.get(token_key);
    const bool is_open = rendezvous_.get(places_key).has_value();
    if (is_open && !options_.token.empty()) return options_.token;
    if (is_open && left) return *left;
    if (std::chrono::steady_clock::now() > until_) throw no_job();
    wait();
  }
}

/// One whose members are there: somebody answers.
void Arriving::find_job() {
  for (;;) {
    if (const auto open = read_places(rendezvous_.get(places_key))) {
      places_ = *open;
      const auto members = records();
      const auto there = std::ranges::find_if(members, [&](const auto& member) { return answers(member, self_); });
      if (there != members.end()) {
        self_.ranks = there->ranks;
        break;
      }
    }
    if (too_late()) throw no_job();
    wait();
  }
  if (places_.configuration != self_.identity.configuration)
    throw ConfigError(
        "job '" + options_.job +
        "' has another configuration, or another model, than this process; join it with those that it was "
        "started with (config.yaml in its run folder)");
}

bool Arriving::is_still_open() {
  const auto open = read_places(rendezvous_.get(places_key));
  return open && open->opening == places_.opening;
}

/// Those who are in the job, as far as they are like this process.
std::vector<MemberRecord> Arriving::records() {
  std::vector<MemberRecord> all;
  for (int number = 0; number < places_.first + places_.count; ++number) {
    const auto text = rendezvous_.get(inside_key(places_, number));
    const auto there = text ? read_record(*text, secret_) : std::nullopt;
    if (!there || there->record.rank != number) continue;
    require_like(*there);
    all.push_back(there->record);
  }
  return all;
}

void Arriving::require_like(const FoundRecord& there) const {
  const std::string who = "job '" + options_.job + "'";
  if (!there.is_sealed)
    throw ConfigError(who + " has another token than this process; give it that job's HEARSAY_JOB_TOKEN");
  if (there.record.identity.build != self_.identity.build)
    throw ConfigError(who + " runs build " + there.record.identity.build + ", and this process " +
                      self_.identity.build + "; start the same program");
}

void Arriving::claim_place() {
  for (int number = places_.first; number < places_.first + places_.count; ++number) {
    self_.rank = number;
    const std::string claim = sealed(self_, secret_);
    if (rendezvous_.put_if_absent(claim_key(places_, number), claim) == claim) return;
  }
  throw ConfigError("job '" + options_.job + "' has no place left: all " + std::to_string(places_.count) +
                    " that train.joins holds are taken, each for good");
}

/// Returns when one that has come before this one is there, or gone.
void Arriving::await_earlier(int number) {
  const auto claim = rendezvous_.get(claim_key(places_, number));
  const auto earlier = claim ? read_record(*claim, secret_) : std::nullopt;
  while (earlier && !rendezvous_.get(inside_key(places_, number)) && answers(earlier->record, self_)) {
    if (too_late()) throw CommunicationError("a process that comes before this one does not get there");
    wait();
  }
}

/// None where it is gone: then the others take its record away.
Descriptor Arriving::knocked_at(const MemberRecord& member) {
  constexpr std::chrono::seconds for_an_answer{10};
  const auto until = std::chrono::steady_clock::now() + for_an_answer;
  for (;;) {
    if (auto socket = knock(member, self_, secret_); socket && is_bid_come_in(socket)) return socket;
    if (member.host == self_.host && !answers(member, self_)) return {};
    if (!rendezvous_.get(inside_key(places_, member.rank))) return {};
    if (std::chrono::steady_clock::now() > until)
      throw CommunicationError("rank " + std::to_string(member.rank) + " on " + member.host_name +
                               " does not answer; between hosts, a firewall may be in the way (HEARSAY_INTERFACE "
                               "chooses another network)");
    wait();
  }
}

std::vector<Member> Arriving::places(const std::vector<MemberRecord>& members) {
  std::vector<Member> all(sockets_.size());
  std::vector<std::string> hosts;
  for (Member& place : all) place.is_here = false, place.node = nowhere;
  const auto take = [&](const MemberRecord& record) {
    Member& member = all[static_cast<std::size_t>(record.rank)];
    member.socket = std::move(sockets_[static_cast<std::size_t>(record.rank)]);
    member.is_here = member.socket || record.rank == self_.rank;
    if (!member.is_here) return;
    const auto host = std::ranges::find(hosts, record.host);
    member.node = static_cast<int>(host - hosts.begin());
    if (host == hosts.end()) hosts.push_back(record.host);
    member.host_name = record.host_name;
    member.shares_host = record.host == self_.host;
  };
  for (const MemberRecord& record : members)
    if (record.rank < self_.rank) take(record);
  take(self_);
  return all;
}

}  // namespace

Arrival arrive(Rendezvous& rendezvous, const Identity& identity, const MeetingOptions& options) {
  return Arriving(rendezvous, identity, options).run();
}

}  // namespace hearsay::sockets
