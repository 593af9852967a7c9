#pragma once
// A job without MPI: processes that have met (meeting.hpp) and are connected, all to all.
#include <memory>
#include <string>

#include "runtime/sockets/late.hpp"
#include "runtime/sockets/network.hpp"
#include "runtime/sockets/notices.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay::sockets {

/// A member's last word: it ends the job, and the processes of those whom it reaches.
class LastWord final : public Channel {
 public:
  explicit LastWord(std::shared_ptr<Network> network);
  ~LastWord() override { shut(); }

  /// Returns when the others have ended, seconds later at most.
  void say(int exit_code) const;
  void arrived(int from, const Frame& frame, RawBytes body, Descriptor file) override;
};

class Job final : public hearsay::Job {
 public:
  /// Collective.
  explicit Job(std::shared_ptr<Network> network);
  /// One that others may join later.
  Job(Met met, std::unique_ptr<Rendezvous> rendezvous, const Latecomers::Options& late);

  int rank() const override { return network_->rank(); }
  int ranks() const override { return network_->founders(); }
  std::string host() const override;
  int ranks_on_host() const override;
  /// Not collective here: all know who is where.
  int rank_on_host() const override;
  using hearsay::Job::communicator;
  std::unique_ptr<hearsay::Communicator> communicator(std::function<void()> idle) const override;
  std::unique_ptr<hearsay::Transport> transport() const override;
  hearsay::Notices& notices() override { return notices_; }
  LateMembers* late_members() const override { return late_.get(); }
  /// What has started the processes may end them all the same.
  bool outlives_a_rank() const override { return true; }
  /// The others end as soon as they look, with a sentence; whom this does not reach, takes it for a death.
  [[noreturn]] void abort(int exit_code) const override;

 private:
  std::shared_ptr<Network> network_;
  Notices notices_;
  LastWord last_word_;
  std::unique_ptr<Latecomers> late_;
};

}  // namespace hearsay::sockets
