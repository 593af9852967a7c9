#include "runtime/exchange/membership/edges.hpp"

#include <algorithm>
#include <utility>

namespace hearsay {
namespace {

/// A spare without a vertex is a neighbour of nobody.
Neighbourhood neighbourhood_of(const Topology& topology, int process) {
  if (process < topology.ranks()) return topology.neighbourhood(process);
  Neighbourhood nobody;
  nobody.rank = process;
  return nobody;
}

}  // namespace

EdgeListener::EdgeListener(Edges& edges) : edges_(edges) { edges_.listeners_.push_back(this); }

EdgeListener::~EdgeListener() { std::erase(edges_.listeners_, this); }

Edges::Edges(std::shared_ptr<const Topology> topology, int process)
    : topology_(std::move(topology)), whole_(neighbourhood_of(*topology_, process)), neighbourhood_(whole_) {
  for (const int neighbour : whole_.neighbours) ends_.push_back({.process = neighbour});
}

template <class Tell>
void Edges::tell_all(const Tell& tell) {
  for (EdgeListener* const listener : listeners_) tell(*listener);
}

void Edges::lose_process(int process) {
  const auto at = std::ranges::find(ends_, process, &End::process);
  if (at != ends_.end() && at->state != State::lost) return lose(static_cast<std::size_t>(at - ends_.begin()));
  tell_all([](EdgeListener& listener) { listener.rank_lost(); });
}

void Edges::lose(std::size_t edge) {
  ends_[edge].state = State::lost;
  weigh();
  tell_all([&](EdgeListener& listener) {
    listener.edge_lost(edge);
    listener.rank_lost();
  });
}

void Edges::begin(std::size_t edge, int process) {
  ends_[edge] = {.process = process, .state = State::begins};
  tell_all([&](EdgeListener& listener) { listener.edge_begins(edge); });
}

bool Edges::admit() {
  bool any = false;
  for (std::size_t edge = 0; edge < ends_.size(); ++edge) {
    if (!begins(edge) || !ends_[edge].agrees) continue;
    ends_[edge].state = State::mixes;
    weigh();
    tell_all([&](EdgeListener& listener) { listener.edge_mixes(edge); });
    any = true;
  }
  return any;
}

void Edges::sit(int vertex) {
  whole_ = neighbourhood_ = topology_->neighbourhood(vertex);
  ends_.clear();
  for (const int neighbour : whole_.neighbours) ends_.push_back({.process = neighbour, .state = State::lost});
  weigh();
}

void Edges::weigh() {
  neighbourhood_.self_weight = whole_.self_weight;
  for (std::size_t edge = 0; edge < ends_.size(); ++edge) {
    neighbourhood_.weights[edge] = mixes(edge) ? whole_.weights[edge] : 0.0;
    if (!mixes(edge)) neighbourhood_.self_weight += whole_.weights[edge];
  }
}

}  // namespace hearsay
