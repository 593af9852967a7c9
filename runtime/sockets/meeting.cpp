#include "runtime/sockets/meeting.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hearsay::sockets {
namespace {

class Meeting {
 public:
  Meeting(Rendezvous& rendezvous, const Seat& seat, const Identity& identity, const MeetingOptions& options)
      : rendezvous_(rendezvous),
        options_(options),
        until_(std::chrono::steady_clock::now() + options.patience),
        token_(agreed_token()),
        secret_(token_, options.job),
        found_(static_cast<std::size_t>(seat.ranks)),
        sockets_(static_cast<std::size_t>(seat.ranks)),
        self_{.rank = seat.rank,
              .ranks = seat.ranks,
              .incarnation = new_nonce(),
              .host = options.host,
              .host_name = own_host_name(),
              .local_name = door_.local_name(),
              .addresses = {},
              .identity = identity} {}
  ~Meeting() {
    try {
      if (announced_) rendezvous_.remove(member_key(self_.rank));
      if (left_token_) rendezvous_.remove(token_key);
    } catch (...) {  // the place is gone, and with it what stood there
    }
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  Met run() {
    announce();
    find_all();
    if (std::ranges::any_of(found_, [&](const auto& member) { return member->host != self_.host; })) meet_other_hosts();
    for (int lower = 0; lower < self_.rank; ++lower) knock_at(lower);
    admit_higher();
    auto network = std::make_shared<Network>(self_.rank, members());
    return {
        .network = std::move(network),
        .residence = {
            .token = options_.token.empty() ? token_ : "", .secret = secret_, .door = std::move(door_), .self = self_}};
  }

 private:
  std::string agreed_token() {
    if (!options_.token.empty()) return options_.token;
    const std::string drawn = new_token();
    std::string there = rendezvous_.put_if_absent(token_key, drawn);
    left_token_ = there == drawn;
    return there;
  }
  std::optional<MemberRecord>& found(int rank) { return found_[static_cast<std::size_t>(rank)]; }
  Descriptor& socket(int rank) { return sockets_[static_cast<std::size_t>(rank)]; }
  bool too_late() const { return std::chrono::steady_clock::now() > until_; }
  void wait() {
    options_.idle();
    rendezvous_.watch(std::chrono::milliseconds(50));
  }

  void announce();
  void find_all();
  void look_at(const std::string& key);
  bool is_present(const MemberRecord& member, const std::string& key);
  [[noreturn]] void refuse(const std::string& why);
  void tell_who_is_missing();
  std::optional<std::string> unlike(const FoundRecord& there) const;
  void meet_other_hosts();
  void knock_at(int rank);
  void admit_higher();
  CommunicationError nobody_came(const std::string& what) const;
  std::vector<Member> members();

  Rendezvous& rendezvous_;
  const MeetingOptions& options_;
  const Deadline until_;
  bool left_token_ = false, announced_ = false, told_ = false;
  std::string token_;
  Secret secret_;
  Door door_;
  std::vector<std::optional<MemberRecord>> found_;  // by rank
  std::vector<Descriptor> sockets_;
  MemberRecord self_;
  std::map<std::string, Deadline> doubtful_;  // records, and until when they may be what somebody has left
};

void Meeting::announce() {
  if (const auto before = rendezvous_.get(member_key(self_.rank)))
    if (const auto other = read_record(*before, secret_); other && answers(other->record, self_))
      throw ConfigError("rank " + std::to_string(self_.rank) + " of job '" + options_.job + "' is another process on " +
                        other->record.host_name +
                        " already; give every process a rank of its own (HEARSAY_RANK), or the job another name "
                        "(HEARSAY_JOB)");
  rendezvous_.put(member_key(self_.rank), sealed(self_, secret_));
  announced_ = true;
  found(self_.rank) = self_;
}

void Meeting::find_all() {
  for (;;) {
    for (const std::string& key : rendezvous_.list(members_key)) look_at(key);
    if (std::ranges::all_of(found_, [](const auto& member) { return member.has_value(); })) return;
    if (too_late()) throw nobody_came("has come to " + rendezvous_.name());
    tell_who_is_missing();
    wait();
  }
}

void Meeting::tell_who_is_missing() {
  constexpr std::chrono::seconds soon{10};
  if (told_ || until_ - std::chrono::steady_clock::now() > options_.patience - soon) return;
  told_ = true;
  std::string missing;
  for (std::size_t rank = 0; rank < found_.size(); ++rank)
    if (!found_[rank]) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  options_.waits(missing);
}

/// Takes the record of one who is like this process.
void Meeting::look_at(const std::string& key) {
  const auto text = rendezvous_.get(key);
  const auto there = text ? read_record(*text, secret_) : std::nullopt;
  if (!there) return;
  const MemberRecord& record = there->record;
  if (key == member_key(self_.rank)) {
    if (there->is_sealed && record.incarnation == self_.incarnation) return;
    announced_ = false;  // it is not this one's to remove
    throw ConfigError("two processes say that they are rank " + std::to_string(self_.rank) + " of job '" +
                      options_.job + "', the other one on " + record.host_name +
                      "; give every process a rank of its own (HEARSAY_RANK)");
  }
  const auto why = unlike(*there);
  if (!why) {
    found(record.rank) = record;
  } else if (is_present(record, key)) {
    refuse(*why);
  }
}

/// Whether a record is that of a process which is there, and not what somebody has left who was killed. Between hosts
/// that is not to be seen before there are ports: what stays for so long is believed.
bool Meeting::is_present(const MemberRecord& member, const std::string& key) {
  constexpr std::chrono::seconds doubt{10};
  if (member.host == self_.host || !member.addresses.empty()) return answers(member, self_);
  const auto now = std::chrono::steady_clock::now();
  return doubtful_.emplace(key, now + doubt).first->second < now;
}

/// The other one refuses this process for the same reason, and takes it for gone if it is gone too soon.
void Meeting::refuse(const std::string& why) {
  constexpr std::chrono::milliseconds seen_by_others{1000};
  std::this_thread::sleep_for(seen_by_others);
  throw ConfigError(why);
}

/// What is wrong with a record, as a sentence.
std::optional<std::string> Meeting::unlike(const FoundRecord& there) const {
  const MemberRecord& other = there.record;
  const std::string who = "rank " + std::to_string(other.rank) + " on " + other.host_name;
  if (!there.is_sealed)
    return who + " has another token than this process; give all processes of job '" + options_.job +
           "' the same HEARSAY_JOB_TOKEN, or none of them";
  if (other.ranks != self_.ranks || other.rank < 0 || other.rank >= other.ranks)
    return who + " belongs to a job of " + std::to_string(other.ranks) + " ranks, and this process to one of " +
           std::to_string(self_.ranks) +
           "; start all with the same HEARSAY_RANKS, or give the jobs different names "
           "(HEARSAY_JOB)";
  if (other.identity.build != self_.identity.build)
    return who + " runs build " + other.identity.build + ", and this process " + self_.identity.build +
           "; start the same program everywhere";
  if (other.identity.configuration != self_.identity.configuration)
    return who + " has another configuration than this process; give all processes the same one";
  return std::nullopt;
}

/// Those who share a host never open a port.
void Meeting::meet_other_hosts() {
  self_.addresses = door_.open_port(options_.interface);
  rendezvous_.put(member_key(self_.rank), sealed(self_, secret_));
  found(self_.rank) = self_;
  const auto can_be_reached = [&](const auto& member) {
    return member->host == self_.host || !member->addresses.empty();
  };
  for (;;) {
    for (const std::string& key : rendezvous_.list(members_key)) look_at(key);
    if (std::ranges::all_of(found_, can_be_reached)) return;
    if (too_late()) throw nobody_came("has said how it is reached");
    wait();
  }
}

/// What stands in a record may be that of a process that is gone: then its successor's comes.
void Meeting::knock_at(int rank) {
  while (!(socket(rank) = knock(*found(rank), self_, secret_))) {
    if (too_late())
      throw CommunicationError("rank " + std::to_string(rank) + " on " + found(rank)->host_name +
                               " does not answer; see what it has printed. Between hosts, a firewall may be in the way "
                               "(HEARSAY_INTERFACE chooses another network)");
    wait();
    look_at(member_key(rank));
  }
}

void Meeting::admit_higher() {
  const auto missing = [&] {
    return std::any_of(sockets_.begin() + self_.rank + 1, sockets_.end(), [](const auto& socket) { return !socket; });
  };
  while (missing()) {
    constexpr std::chrono::milliseconds a_look{100};
    if (auto visitor = door_.admit(self_, secret_, a_look); visitor && visitor->rank > self_.rank)
      socket(visitor->rank) = std::move(visitor->socket);
    if (too_late()) throw nobody_came("is connected");
  }
}

CommunicationError Meeting::nobody_came(const std::string& what) const {
  std::string ranks;
  int count = 0;
  for (int r = 0; r < self_.ranks; ++r) {
    const auto at = static_cast<std::size_t>(r);
    if (found_[at] && (r <= self_.rank || sockets_[at] || what.starts_with("has"))) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
    ++count;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.patience).count();
  return CommunicationError("after " + std::to_string(seconds) + " s not every rank " + what + ": " +
                            std::to_string(count) + " of " + std::to_string(self_.ranks) + " are missing (" + ranks +
                            "). Start them with the same HEARSAY_RENDEZVOUS and HEARSAY_JOB, or wait longer for them "
                            "(HEARSAY_START_TIMEOUT, in seconds)");
}

std::vector<Member> Meeting::members() {
  std::vector<Member> all;
  std::vector<std::string> hosts;
  for (int r = 0; r < self_.ranks; ++r) {
    const MemberRecord& record = *found(r);
    const auto host = std::ranges::find(hosts, record.host);
    const auto node = static_cast<int>(host - hosts.begin());
    if (host == hosts.end()) hosts.push_back(record.host);
    all.push_back({.host_name = record.host_name,
                   .node = node,
                   .shares_host = record.host == self_.host,
                   .socket = std::move(socket(r))});
  }
  return all;
}

}  // namespace

Met meet_and_stay(Rendezvous& rendezvous, const Seat& seat, const Identity& identity, const MeetingOptions& options) {
  if (seat.rank < 0 || seat.rank >= seat.ranks)
    throw std::logic_error("no seat of " + std::to_string(seat.ranks) + " is number " + std::to_string(seat.rank));
  return Meeting(rendezvous, seat, identity, options).run();
}

}  // namespace hearsay::sockets
