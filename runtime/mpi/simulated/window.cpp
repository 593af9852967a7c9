// The window of a simulated rank, on SimGrid's own messages: SMPI's MPI_Put cannot be asked whether it has arrived,
// only waited for, and a rank without a thread for its communication would stop computing meanwhile.
//
// An edge is a SimGrid mailbox whose receiver takes without asking, as TCP does: a message is on its way from the
// moment in which it is put, whatever its receiver is doing. The receiver writes what has come into its memory when it
// looks.
#include "runtime/mpi/window.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "runtime/mpi/check.hpp"
#include "runtime/mpi/simulated/failure.hpp"

namespace hearsay::mpi {
namespace {

namespace sim = simgrid::s4u;

constexpr std::align_val_t alignment{64};

struct AlignedDelete {
  void operator()(std::byte* p) const { ::operator delete[](p, alignment); }
};

/// SMPI makes messages copy bytes; these hand over a pointer.
sim::CommPtr handing_over(const sim::CommPtr& message) {
  return message->set_copy_data_callback(sim::Comm::copy_pointer_callback);
}

template <class T>
sim::CommPtr send(sim::Mailbox* mailbox, T* what, std::size_t simulated_bytes) {
  return handing_over(mailbox->put_init(what, simulated_bytes))->start();
}

template <class T>
sim::CommPtr expect(sim::Mailbox* mailbox, T*& where) {
  return handing_over(mailbox->get_init()->set_dst_data(reinterpret_cast<void**>(&where), sizeof(void*)))->start();
}

/// Without a byte, and its sender must not wait for it: SimGrid 3.32 takes an empty message on its way for an ended one
/// when the receiver looks, wakes the sender in the receiver's slice, and where actors are threads forgets to run it.
template <class T>
void announce(sim::Mailbox* mailbox, T* what) {
  handing_over(mailbox->put_init(what, 0))->detach();
}

/// One put on its way.
struct Put {
  std::size_t offset;
  std::vector<std::byte> bytes;
};

/// Which of them has ended, or −1. SimGrid 3.32 keeps what `Comm::test` and `Comm::test_any` have found in the actor's
/// list of activities for ever, and goes through that list whenever a message ends; what is waited for it forgets.
ssize_t ended(const std::vector<sim::CommPtr>& messages) {
  return messages.empty() ? -1 : sim::Comm::wait_any_for(messages, 0.0);
}

struct OutEdge {
  sim::Mailbox* mailbox = nullptr;
  std::vector<sim::CommPtr> under_way{};
  std::size_t puts = 0;   // so far
  bool has_news = false;  // something has ended since the last flush
};

/// What comes from one rank, in order.
struct InEdge {
  const OutEdge* from;
  Put* arriving = nullptr;
  sim::CommPtr next{};
  std::size_t taken = 0;
  void expect_next() { next = expect(from->mailbox, arriving); }
  bool is_empty() const { return taken == from->puts; }
};

}  // namespace

struct Window::Handle {
  MPI_Comm communicator = MPI_COMM_NULL;
  std::unique_ptr<std::byte[], AlignedDelete> memory;
  std::size_t bytes;
  sim::ActorPtr owner = sim::Actor::self();
  std::string name;
  sim::Mailbox* door = nullptr;   // where ranks that have never put before announce their edge
  std::size_t announcements = 0;  // so far, by those who announce
  OutEdge* announced = nullptr;
  sim::CommPtr next_announced;
  std::deque<InEdge> in;
  std::deque<std::unique_ptr<Put>> come;  // and not in the memory yet
  std::map<int, OutEdge> out;
  std::shared_ptr<std::vector<Handle*>> ranks;  // of one process: one list for all
  double longest_wait_s = std::numeric_limits<double>::infinity();
  std::optional<double> looked_at;  // when this rank last took note

  void expect_announcement() { next_announced = expect(door, announced); }
  OutEdge& edge_to(int target);
  /// What a rank can wait for: an announcement, of each edge the next put, and what is under way from here.
  std::vector<sim::CommPtr> events() const;
  bool expects_events() const;
  void take_note(std::size_t event);
  void take_note();
  bool has_news() const;
};

OutEdge& Window::Handle::edge_to(int target) {
  OutEdge& edge = out[target];
  if (edge.mailbox != nullptr) return edge;
  Handle& there = *(*ranks)[static_cast<std::size_t>(target)];
  edge.mailbox = sim::Mailbox::by_name(name + ">" + there.name);
  edge.mailbox->set_receiver(there.owner);
  announce(there.door, &edge);
  ++there.announcements;
  return edge;
}

std::vector<sim::CommPtr> Window::Handle::events() const {
  std::vector<sim::CommPtr> all{next_announced};
  for (const InEdge& edge : in) all.push_back(edge.next);
  for (const auto& [target, edge] : out) all.insert(all.end(), edge.under_way.begin(), edge.under_way.end());
  return all;
}

bool Window::Handle::expects_events() const {
  return in.size() != announcements || std::any_of(in.begin(), in.end(), [](auto& edge) { return !edge.is_empty(); }) ||
         std::any_of(out.begin(), out.end(), [](auto& edge) { return !edge.second.under_way.empty(); });
}

/// Takes note of one of `events()`, which has ended.
void Window::Handle::take_note(std::size_t event) {
  if (event == 0) {
    in.push_back({.from = announced});
    in.back().expect_next();
    return expect_announcement();
  }
  if (--event < in.size()) {
    InEdge& edge = in[event];
    come.emplace_back(edge.arriving);
    ++edge.taken;
    return edge.expect_next();
  }
  event -= in.size();
  auto to = out.begin();
  for (; event >= to->second.under_way.size(); ++to) event -= to->second.under_way.size();
  to->second.under_way.erase(to->second.under_way.begin() + static_cast<std::ptrdiff_t>(event));
  to->second.has_news = true;
}

/// Takes note of all that has ended by now. A question is a change to SimGrid's context and back, which costs a lot
/// where actors are threads: all is asked about at once, and once in a moment of simulated time.
void Window::Handle::take_note() {
  const double now = sim::Engine::get_clock();
  if (looked_at == now) return;
  looked_at = now;
  while (expects_events()) {
    const ssize_t event = ended(events());
    if (event < 0) return;
    take_note(static_cast<std::size_t>(event));
  }
}

bool Window::Handle::has_news() const {
  return !come.empty() || std::any_of(out.begin(), out.end(), [](auto& edge) { return edge.second.has_news; });
}

// No put is waited for here, whatever the use.
Window::Window(std::size_t bytes, CommunicatorHandle of, const MemoryUse& /*use*/)
    : handle_(std::make_unique<Handle>()) {
  handle_->communicator = of.as<MPI_Comm>();
  handle_->bytes = bytes;
  handle_->memory.reset(new (alignment) std::byte[bytes]());
  // The time keeps the mailboxes of windows apart that are made one after the other.
  handle_->name = std::to_string(sim::this_actor::get_pid()) + "@" + std::to_string(sim::Engine::get_clock());
  handle_->door = sim::Mailbox::by_name(handle_->name);
  handle_->door->set_receiver(handle_->owner);
  handle_->expect_announcement();
  int size = 1, rank = 0;
  MPI_Comm_size(handle_->communicator, &size);
  MPI_Comm_rank(handle_->communicator, &rank);
  std::shared_ptr<std::vector<Handle*>> made;
  if (rank == 0) made = std::make_shared<std::vector<Handle*>>(static_cast<std::size_t>(size));
  auto* list = &made;  // rank 0's, on everybody
  check(MPI_Bcast(&list, sizeof list, MPI_BYTE, 0, handle_->communicator), "MPI_Bcast");
  handle_->ranks = *list;
  (*handle_->ranks)[static_cast<std::size_t>(rank)] = handle_.get();
  check(MPI_Barrier(handle_->communicator), "MPI_Barrier");  // the list is whole, and everybody has it
}

Window::~Window() {
  if (std::uncaught_exceptions() > 0) {
    static_cast<void>(handle_.release());  // the process ends, and SimGrid is loud about messages under way
    return;
  }
  for (auto& [target, edge] : handle_->out) {
    for (const sim::CommPtr& put : edge.under_way) put->wait();
  }
  MPI_Barrier(handle_->communicator);  // everything has arrived
  handle_->looked_at.reset();
  sync();
  MPI_Barrier(handle_->communicator);  // nobody looks at this rank's edges any more
  for (const InEdge& edge : handle_->in) edge.next->cancel();
  handle_->next_announced->cancel();
}

std::span<std::byte> Window::own() { return {handle_->memory.get(), handle_->bytes}; }

void Window::put(std::span<const std::byte> bytes, int target, std::size_t offset) {
  OutEdge& edge = handle_->edge_to(target);
  ++edge.puts;
  auto put = std::make_unique<Put>(Put{.offset = offset, .bytes = {bytes.begin(), bytes.end()}});
  edge.under_way.push_back(send(edge.mailbox, put.release(), bytes.size()));  // the receiver deletes it
}

void Window::store(const std::uint64_t& word, int target, std::size_t offset) {
  put(std::as_bytes(std::span(&word, 1)), target, offset);
}

bool Window::flush(int target) {
  OutEdge& edge = handle_->edge_to(target);
  handle_->take_note();
  edge.has_news = false;
  return edge.under_way.empty();
}

void Window::sync() {
  handle_->take_note();
  for (; !handle_->come.empty(); handle_->come.pop_front()) {
    const Put& put = *handle_->come.front();
    std::memcpy(handle_->memory.get() + put.offset, put.bytes.data(), put.bytes.size());
  }
}

std::optional<std::uint64_t> Window::peek(int /*target*/, std::size_t /*offset*/) { return std::nullopt; }

int Window::patience() const { return 0; }

bool Window::fills_by_itself() const { return true; }

void Window::look_again_within(double seconds) { handle_->longest_wait_s = seconds; }

void Window::wait(double seconds) {
  constexpr double forever = -1.0;
  const double most = std::min({seconds, handle_->longest_wait_s, seconds_to_live()});
  if (!handle_->has_news()) {
    const ssize_t event =
        sim::Comm::wait_any_for(handle_->events(), most < std::numeric_limits<double>::infinity() ? most : forever);
    handle_->looked_at.reset();
    if (event >= 0) handle_->take_note(static_cast<std::size_t>(event));
  }
  fail_if_due();
}

}  // namespace hearsay::mpi
