#include "runtime/exchange/membership/communication.hpp"

#include <string>
#include <utility>

#include "base/error.hpp"

namespace hearsay {

Communication::Communication(std::unique_ptr<Transport> transport, const Edges& edges, Options options)
    : transport_(std::move(transport)),
      edges_(edges),
      options_(std::move(options)),
      seats_(edges.topology(), options_.map.spares),
      ledger_(seats_.neighbour_slots(transport_->rank()), options_.segments, transport_->clock()),
      peers_(transport_->open_peers(hooks())),
      memory_(&transport_->open_memory(
          options_.map.behind_counts(seats_.neighbour_slots(transport_->rank())) +
              options_.deaths.bytes(seats_.processes(), seats_.spares()),
          {.deaths = options_.deaths.failure_timeout.count() > 0 ? Deaths::others_go_on : Deaths::end_the_job,
           .haste = options_.haste})),
      memory_pin_(options_.reads_mailbox != nullptr ? options_.reads_mailbox->pin(memory_->own()) : nullptr),
      mailbox_(*memory_, seats_, transport_->rank(), options_.map.ring_bytes, ledger_, options_.tails),
      members_(*memory_, options_.map, seats_, transport_->rank(), mailbox_, ledger_, transport_->clock(),
               options_.deaths) {
  if (options_.others_began)
    ledger_.start_after(std::chrono::system_clock::now() - *options_.others_began);
  else
    ledger_.start_together();  // the memories were opened together, a moment ago
  engine_ = transport_->make_engine([this] { return progress(); });
}

Transport::Hooks Communication::hooks() {
  return {.idle = [this] { serve(); },
          .sent =
              [this](int to, const Message& message) {
                if (!counts_messages_) return;
                ledger_.message_sent(edges_.neighbourhood().slot(to),
                                     {.payload_bytes = message.payload_bytes, .index_bytes = message.index_bytes},
                                     message.bytes.size());
              }};
}

void Communication::serve() {
  progress();
  if (options_.interrupted()) throw WaitInterrupted();
  require_root();
}

bool Communication::progress() {
  const bool any = members_.progress();
  return mailbox_.progress() || any;
}

void Communication::compute_for(double seconds) {
  const double rest = engine_->still_to_pass(seconds);
  ledger_.computed_while_waiting(seconds - rest);
  pass_time(rest);
}

void Communication::flush() {
  engine_->wait_until([this] { return !mailbox_.sending(); });
}

void Communication::broadcast(std::span<std::byte> bytes, int root) {
  engine_->run([&] {
    broadcasts_ = root;
    transport_->broadcast(bytes, root);
    broadcasts_.reset();
  });
}

/// Whoever goes on without the dead has nothing to go on from before this. What the root had sent before it died comes
/// with the next look.
void Communication::require_root() {
  if (!broadcasts_ || members_.failures() == nullptr || members_.failures()->alive(*broadcasts_)) return;
  if (std::exchange(root_is_dead_, true))
    throw CommunicationError("rank " + std::to_string(*broadcasts_) +
                             " has died before training began; start the job again");
}

void Communication::uncounted(const std::function<void()>& job) {
  engine_->run([&] {
    counts_messages_ = false;
    job();
    counts_messages_ = true;
  });
}

// Whoever waits for this rank learns that it does not come.
void Communication::leave() {
  if (JobCount* const count = members_.count(); count != nullptr && engine_ && members_.failures() == nullptr) {
    count->leave();
    engine_->wait_until([count] { return count->has_told(); });
  }
  engine_.reset();
}

}  // namespace hearsay
