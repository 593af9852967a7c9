#include "runtime/sockets/late.hpp"

#include <algorithm>
#include <exception>
#include <span>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "runtime/sockets/messages.hpp"

namespace hearsay::sockets {
namespace {

// The keys of a job that others may join. All but the first name its opening.
constexpr const char *places_key = "places", *claim_prefix = "claim-", *inside_prefix = "inside-";

std::string claim_key(const Places& places, int number) {
  return claim_prefix + places.opening + "-" + std::to_string(number);
}
std::string inside_key(const Places& places, int number) {
  return inside_prefix + places.opening + "-" + std::to_string(number);
}

std::string text_of_places(const Places& places) {
  return std::to_string(places.first) + " " + std::to_string(places.count) + " " + places.opening + " " +
         places.configuration;
}

std::optional<Places> read_places(const std::optional<std::string>& text) {
  Places places;
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  words >> places.first >> places.count >> places.opening;
  if (!words || places.first < 1 || places.count < 1 || places.first + places.count > most_ranks) return std::nullopt;
  words >> places.configuration;
  return places;
}

bool shares_host(const MemberRecord& a, const MemberRecord& b) { return a.host == b.host; }

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
    throw ConfigError("job '" + options_.job +
                      "' has another configuration than this process; join it with the one that it was started with "
                      "(config.yaml in its run folder)");
}

bool Arriving::is_still_open() {
  const auto open = read_places(rendezvous_.get(places_key));
  return open && open->opening == places_.opening;
}

/// Of those who are in the job, as far as they are like this process.
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
    if (shares_host(member, self_) && !answers(member, self_)) return {};
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
    member.shares_host = shares_host(record, self_);
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

Welcome::Welcome(std::shared_ptr<Network> network) : Channel(std::move(network)) { open(); }

void Welcome::say(std::vector<std::byte> words) {
  const auto alone = network().lock();
  words_ = std::move(words);
  for (int rank = network().founders(); rank < network().ranks(); ++rank) send_to(rank);
}

void Welcome::send_to(int rank) {
  if (!words_ || rank == network().rank() || !network().is_here(rank)) return;
  const std::uint64_t number = network().send(rank, frame(FrameKind::message, 0, words_->size()), *words_);
  static_cast<void>(number);  // the words stay
}

void Welcome::met(int rank) { send_to(rank); }

void Welcome::arrived(int /*from*/, const Frame& frame, RawBytes body, Descriptor /*file*/) {
  if (frame.kind != FrameKind::message) throw ConnectionLost("it does not say what latecomers are told");
  if (!words_) words_.emplace(body.begin(), body.end());
}

std::vector<std::byte> Welcome::hear(std::chrono::milliseconds patience, const Network::Idle& idle) {
  const auto until = std::chrono::steady_clock::now() + patience;
  const auto anybody = [&] {
    for (int rank = 0; rank < network().ranks(); ++rank)
      if (rank != network().rank() && network().is_here(rank)) return true;
    return false;
  };
  network().wait_until([&] { return words_ || !anybody() || std::chrono::steady_clock::now() > until; }, idle);
  const auto alone = network().lock();
  if (words_) return *words_;
  throw CommunicationError(anybody() ? "the job has not begun to train, so it has no place for this process yet; "
                                       "wait longer (HEARSAY_START_TIMEOUT, in seconds)"
                                     : "the job has ended before this process was in it");
}

Latecomers::Latecomers(std::shared_ptr<Network> network, std::unique_ptr<Rendezvous> rendezvous, Residence residence,
                       Options options)
    : network_(std::move(network)),
      rendezvous_(std::move(rendezvous)),
      residence_(std::move(residence)),
      options_(std::move(options)) {}

Latecomers::~Latecomers() { close_places(); }

// Nobody is let in before all who have started together can be found.
void Latecomers::open_places(int first, int count, const std::string& configuration) {
  if (!rendezvous_)
    throw ConfigError(
        "train.joins: those who come later look for the job in a folder; let HEARSAY_RENDEZVOUS name one");
  network_->hold_places(first + count);
  Messages messages(network_);
  places_ = {.first = first, .count = count, .opening = "", .configuration = configuration};
  places_.opening = is_late() ? options_.came_to->opening : agreed_opening(messages);
  welcome_.emplace(network_);
  at_the_door_ = residence_.self;
  at_the_door_.ranks = first + count;
  keeper_ = std::thread([this] { keep_the_door(); });
  leave_records();
  if (is_late()) return;
  messages.barrier([] {});
  if (network_->rank() == 0) rendezvous_->put(places_key, text_of_places(places_));
}

/// Rank 0 draws it, and takes away what a job of this name has left that is gone.
std::string Latecomers::agreed_opening(Messages& messages) {
  std::string opening = new_token();
  messages.broadcast(std::as_writable_bytes(std::span(opening)), 0, [] {});
  if (network_->rank() == 0) {
    rendezvous_->remove(places_key);
    for (const char* const prefix : {claim_prefix, inside_prefix})
      for (const std::string& key : rendezvous_->list(prefix))
        if (key.find(opening) == std::string::npos) rendezvous_->remove(key);
  }
  return opening;
}

void Latecomers::leave_records() {
  MemberRecord& self = residence_.self;
  if (options_.reachable && self.addresses.empty()) self.addresses = residence_.door.open_port(options_.interface);
  if (!residence_.token.empty()) rendezvous_->put_if_absent(token_key, residence_.token);
  rendezvous_->put(inside_key(places_, self.rank), sealed(self, residence_.secret));
}

void Latecomers::welcome(std::vector<std::byte> words) { welcome_->say(std::move(words)); }

std::vector<std::byte> Latecomers::await_welcome(const std::function<void()>& idle) {
  return welcome_->hear(options_.patience, idle);
}

void Latecomers::keep_the_door() {
  constexpr std::chrono::milliseconds a_look{200};
  while (!closes_) {
    try {
      if (auto visitor = residence_.door.admit(at_the_door_, residence_.secret, a_look)) let_in(std::move(*visitor));
      forget_the_dead();
    } catch (const std::exception&) {  // who was to be let in comes again, or gives up with a sentence
    }
  }
}

void Latecomers::let_in(Door::Visitor visitor) {
  if (visitor.rank < places_.first || network_->is_here(visitor.rank)) return;
  const auto claim = rendezvous_->get(claim_key(places_, visitor.rank));
  const auto there = claim ? read_record(*claim, residence_.secret) : std::nullopt;
  if (!there || !there->is_sealed || there->record.rank != visitor.rank || !bid_come_in(visitor.socket)) return;
  const bool here = shares_host(there->record, residence_.self);
  constexpr int hosts_of_their_own = 1'000'000;
  network_->admit(visitor.rank, {.host_name = there->record.host_name,
                                 .node = here ? network_->nodes()[static_cast<std::size_t>(network_->rank())]
                                              : hosts_of_their_own + visitor.rank,
                                 .shares_host = here,
                                 .socket = std::move(visitor.socket)});
}

void Latecomers::forget_the_dead() {
  const std::vector<int> gone = network_->gone();
  for (; forgotten_ < gone.size(); ++forgotten_) rendezvous_->remove(inside_key(places_, gone[forgotten_]));
}

// Who is the last to go takes along what the job has left.
void Latecomers::close_places() {
  closes_ = true;
  if (keeper_.joinable()) keeper_.join();
  const auto place = std::move(rendezvous_);  // gone at the end, with its folder if that is empty
  if (!place || places_.count == 0) return;
  try {
    place->remove(inside_key(places_, residence_.self.rank));
    if (place->list(inside_prefix + places_.opening).empty()) {
      for (const std::string& key : place->list(claim_prefix + places_.opening)) place->remove(key);
      if (const auto open = read_places(place->get(places_key)); open && open->opening == places_.opening) {
        place->remove(places_key);
        if (!residence_.token.empty()) place->remove(token_key);
      }
    }
  } catch (const std::exception&) {  // the place is gone, and with it what stood there
  }
}

}  // namespace hearsay::sockets
