#pragma once
// A process without a vertex, which waits to take that of a rank that has died, with the model of a neighbour there.
#include <functional>
#include <optional>
#include <span>

#include "runtime/exchange/membership/communication.hpp"
#include "runtime/exchange/participant_options.hpp"

namespace hearsay {

class Spare {
 public:
  /// All of it must outlive the spare. `build`: makes the exchange, once x is there.
  Spare(Parameters& replica, Edges& edges, Communication& communication, const ParticipantOptions& options,
        std::function<void(const ExchangePlan& plan)> build)
      : replica_(replica), edges_(edges), communication_(communication), options_(options), build_(std::move(build)) {}

  /// In place of the loop: waits until a rank has died whose vertex is for it to take, and for the model of one of the
  /// neighbours there. True: x is that model, the loop begins with k = 0, and edges mix when both of their ends know
  /// each other's model. False: the job is over without it (others have left, or nobody lives), or interrupted. `plan`:
  /// the participant's.
  bool take_over(const ExchangePlan& plan);
  /// Whether it has a vertex and a model. Without, there is no exchange.
  bool has_joined() const { return joined_at_s_.has_value(); }
  /// When it has taken a vertex and a model, and when its first edge has mixed, on the ledger's clock since the ranks
  /// started together; nothing before.
  std::optional<double> joined_at_s() const { return joined_at_s_; }
  std::optional<double> mixes_since_s() const { return mixes_since_s_; }
  /// An edge mixes now.
  void note_mixing();

 private:
  bool over() const;
  std::optional<int> wait_for_vertex();
  std::optional<std::span<const std::byte>> wait_for_model();
  std::optional<std::span<const std::byte>> first_model() const;
  double now_s() const;

  Parameters& replica_;
  Edges& edges_;
  Communication& communication_;
  const ParticipantOptions& options_;
  std::function<void(const ExchangePlan& plan)> build_;
  std::optional<double> joined_at_s_{}, mixes_since_s_{};
};

}  // namespace hearsay
