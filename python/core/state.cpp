// What a member knows beside x, for checkpoints of the Python loop.
#include <algorithm>
#include <stdexcept>

#include "python/core/member.hpp"

namespace hearsay::python {

/// What a job must have in common with the one whose state it takes up stands first.
void Member::state(Archive& archive) {
  const auto same = [&](const char* what, const std::string& here) {
    std::string there = here;
    archive.text(what, there, std::max<std::size_t>(here.size(), 1 << 20));
    if (there != here) archive.refuse(what, "here: " + here + "; in the saved state: " + there);
  };
  same("rank", std::to_string(rank()) + " of " + std::to_string(ranks()));
  same("exchange", plan_->exchange_name + ", " + std::string(schedule_name(plan_->exchange->schedule())));
  same("parameters", text_of(replica_->layout));
  std::string around;
  for (const int neighbour : participant_.edges().neighbourhood().neighbours) around += ' ' + std::to_string(neighbour);
  same("neighbours in the graph", around);
  Iteration done = place_.done;
  archive.value("steps", done);
  place_.done = done;
  participant_.state(archive);
}

RawBytes Member::state() {
  RawBytes bytes;
  if (plan_->in_step())
    participant_.finite().require();
  else
    together_.settle();
  Archive archive = Archive::saving(bytes);
  state(archive);
  participant_.communication().run([this] { communicator_->barrier(); });
  return bytes;
}

void Member::load_state(std::span<const std::byte> bytes) {
  if (place_.in_step || place_.done > 0)
    throw std::runtime_error("member.load_state_dict() after " + std::to_string(place_.done) +
                             " steps; load between hearsay.join and the first step");
  Archive archive = Archive::loading(bytes, "the member's state");
  state(archive);
  if (archive.left() > 0) archive.refuse("end", "there are " + std::to_string(archive.left()) + " bytes too many");
  together_.meet(Call::load_state_dict);  // a rank that could not is elsewhere by now
}

}  // namespace hearsay::python
