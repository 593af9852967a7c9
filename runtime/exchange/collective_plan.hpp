#pragma once
// What all plans have in common whose ranks step together and talk by collectives.
#include "runtime/exchange/exchange.hpp"

namespace hearsay {

class CollectivePlan : public ExchangePlan {
 public:
  /// Nothing goes through the mailbox. Throws ConfigError for a model that cannot be carried.
  std::size_t packet_bound(const Layout& layout, int) const final {
    require_fitting(layout);
    return 0;
  }
  Schedule schedule() const final { return Schedule::lockstep; }

 protected:
  /// Throws ConfigError.
  virtual void require_fitting(const Layout& layout) const { static_cast<void>(layout); }
};

}  // namespace hearsay
