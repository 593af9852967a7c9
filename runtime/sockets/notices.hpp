#pragma once
// Notices as frames to all other members. Included in runtime/sockets/ only.
#include <set>
#include <utility>

#include "runtime/sockets/network.hpp"
#include "runtime/transport/notices.hpp"

namespace hearsay::sockets {

class Notices final : public hearsay::Notices, public Channel {
 public:
  explicit Notices(std::shared_ptr<Network> network);
  ~Notices() override { shut(); }

  void post(Notice notice) override { tell(notice, true); }
  void withdraw(Notice notice) override { tell(notice, false); }
  bool has_posted(int rank, Notice notice) override;
  void await_all(const std::function<void()>& idle) override;

  void arrived(int from, const Frame& frame, RawBytes body, Descriptor file) override;

 private:
  void tell(Notice notice, bool posted);
  void note(int rank, Notice notice, bool posted);

  std::shared_ptr<Network> network_;
  std::set<std::pair<int, Notice>> posted_;
};

}  // namespace hearsay::sockets
