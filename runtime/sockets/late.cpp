#include "runtime/sockets/late.hpp"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "runtime/sockets/messages.hpp"

namespace hearsay::sockets {
Welcome::Welcome(std::shared_ptr<Network> network) : Channel(std::move(network)) { open(); }

void Welcome::say(std::vector<std::byte> words) {
  const auto alone = network().lock();
  words_ = std::move(words);
  for (int rank = network().founders(); rank < network().ranks(); ++rank) send_to(rank);
}

void Welcome::send_to(int rank) {
  if (!words_ || rank == network().rank() || !network().is_here(rank)) return;
  network().send(rank, frame(FrameKind::message, 0, words_->size()), *words_);
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
  const bool here = there->record.host == residence_.self.host;
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
