#pragma once
// Members that come after the start. Those who have started together leave their records where members meet, and keep
// their doors open. Who comes takes the lowest free number, for good. It waits until those who came before it are
// connected or gone, knocks at everybody, and leaves a record of its own. So who comes later always knocks, and no two
// knock at each other. What it must know of the job it is told by whoever lets it in (its welcome).
// Cost: a thread that sleeps until somebody knocks, and looks for the dead five times a second; a record a member.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/sockets/meeting.hpp"
#include "runtime/sockets/network.hpp"
#include "runtime/sockets/places.hpp"
#include "runtime/sockets/rendezvous.hpp"
#include "runtime/transport/late_members.hpp"

namespace hearsay::sockets {

/// Says to whoever comes what a late member must know.
class Welcome final : public Channel {
 public:
  explicit Welcome(std::shared_ptr<Network> network);

  void say(std::vector<std::byte> words);
  /// Throws CommunicationError where nobody says it within `patience`, or nobody is there any more.
  std::vector<std::byte> hear(std::chrono::milliseconds patience, const Network::Idle& idle);
  void arrived(int from, const Frame& frame, RawBytes body, Descriptor file) override;
  void met(int rank) override;

 private:
  void send_to(int rank);

  std::optional<std::vector<std::byte>> words_;
};

class Messages;

class Latecomers final : public LateMembers {
 public:
  struct Options {
    std::optional<Places> came_to{};  ///< of a process that has come later
    bool reachable = false;           ///< from other hosts: a port is opened for those who come from there
    std::string interface {};
    std::chrono::milliseconds patience{std::chrono::minutes{2}};
  };

  /// `rendezvous`: null where nobody can be let in.
  Latecomers(std::shared_ptr<Network> network, std::unique_ptr<Rendezvous> rendezvous, Residence residence,
             Options options);
  ~Latecomers() override;
  Latecomers(const Latecomers&) = delete;
  Latecomers& operator=(const Latecomers&) = delete;

  bool is_late() const override { return options_.came_to.has_value(); }
  void open_places(int first, int count, const std::string& configuration) override;
  void welcome(std::vector<std::byte> words) override;
  std::vector<std::byte> await_welcome(const std::function<void()>& idle) override;
  void close_places() override;

 private:
  std::string agreed_opening(Messages& messages);
  void leave_records();
  void keep_the_door();
  void let_in(Door::Visitor visitor);
  void forget_the_dead();

  std::shared_ptr<Network> network_;
  std::unique_ptr<Rendezvous> rendezvous_;  // null: nobody comes any more
  Residence residence_;
  const Options options_;
  Places places_;
  MemberRecord at_the_door_;
  std::optional<Welcome> welcome_;
  std::size_t forgotten_ = 0;  // of the dead
  std::atomic<bool> closes_{false};
  std::thread keeper_;
};

}  // namespace hearsay::sockets
