// The classes Member and Meetings of the extension module hearsay._core.
//
// The interpreter's lock is released wherever the core waits or works; the communication thread never takes it.
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <optional>

#include "python/core/member.hpp"
#include "python/core/module.hpp"
#include "python/core/places.hpp"

namespace hearsay::python {
namespace {

/// (η, μ, dampening, maximize, (β, ε, from zero) or nothing)
using Step = std::tuple<double, double, double, bool, std::optional<std::tuple<double, double, bool>>>;

StepResponse response(const Step& step) {
  const auto& [learning_rate, momentum, dampening, maximize, normalised] = step;
  StepResponse made{.learning_rate = learning_rate, .momentum = momentum, .dampening = dampening, .maximize = maximize};
  if (normalised) {
    const auto& [memory, epsilon, from_zero] = *normalised;
    made.normalised = StepResponse::Normalised{.memory = memory, .epsilon = epsilon, .from_zero = from_zero};
  }
  return made;
}

/// Meetings that Python never destroys by itself, as a member.
class MeetingsHandle {
 public:
  MeetingsHandle(Job& job, const JobPlan& plan, const Parameters& replica, const std::string& buffers) {
    const auto idle = [] {
      const py::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    };
    if (job.late_members() == nullptr || !job.late_members()->is_late()) assemble(job, idle);
    told_ = open_places(job, plan, common_hash(plan, replica.layout, buffers), idle);
    meetings_ = new std::shared_ptr(std::make_shared<Meetings>(job));
  }
  const std::shared_ptr<Meetings>& operator*() const { return *meetings_; }
  /// Where this process has come to a job that trains: what it was told.
  const std::optional<Beginning>& told() const { return told_; }
  /// While no member meets there. Called with the interpreter's lock.
  void meet(const std::string& call) {
    (*meetings_)->come({.call = call_named(call)});
    (*meetings_)->meet([this] {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (const auto why = (*meetings_)->contradiction()) throw RankLeft(*why);
    });
  }
  /// Collective, after the members'.
  void close() { delete std::exchange(meetings_, nullptr); }

 private:
  std::shared_ptr<Meetings>* meetings_ = nullptr;
  std::optional<Beginning> told_;
};

/// A member that Python never destroys by itself: its window is closed by all ranks together, or not at all. In a
/// forked child, which has no communication thread, nothing of it may be touched.
class MemberHandle {
 public:
  MemberHandle(const Job& job, std::shared_ptr<Meetings> meetings, std::shared_ptr<const JobPlan> plan,
               std::shared_ptr<Parameters> replica, Program program)
      : member_(new Member(job, std::move(meetings), std::move(plan), std::move(replica), std::move(program))) {}
  Member& operator*() {
    if (member_ == nullptr) throw std::runtime_error("this member has left its job (member.leave()); join again");
    return *member_;
  }
  /// Collective.
  void leave() {
    if (member_ == nullptr) return;
    member_->leave();                         // told: whoever waits for this rank learns it
    if (!member_->may_die()) delete member_;  // all ranks close the window together, and some may be dead
    member_ = nullptr;
  }

 private:
  Member* member_;
};

/// What Python makes of a wait that was interrupted.
[[noreturn]] void leave_wait(const std::optional<std::string>& departed) {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  if (departed) throw RankLeft(*departed);
  throw std::runtime_error("a signal has ended the wait for other ranks, and its handler went on; the job cannot");
}

/// Runs what may wait without the interpreter's lock.
template <class Work>
auto waiting(MemberHandle& handle, const Work& work) {
  Member& member = *handle;
  member.forget_signal();
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  try {
    const py::gil_scoped_release unlocked;
    return work(member);
  } catch (const WaitInterrupted&) {
    const std::optional<std::string> departed = member.departed();
    if (departed) member.together().tell_of_step();
    leave_wait(departed);
  }
}

std::unique_ptr<MemberHandle> joined(const Job& job, const MeetingsHandle& meetings,
                                     std::shared_ptr<const JobPlan> plan, std::shared_ptr<Parameters> replica,
                                     Program program) {
  try {
    const py::gil_scoped_release unlocked;
    return std::make_unique<MemberHandle>(job, *meetings, std::move(plan), std::move(replica), std::move(program));
  } catch (const WaitInterrupted&) {
    leave_wait(std::nullopt);
  }
}

/// What a rank has sent so far.
py::dict counts_of(MemberHandle& h) {
  const LedgerTotals t = (*h).participant().ledger().totals();
  py::dict counts;
  for (const auto& [name, value] : {std::pair{"events", t.events},
                                    {"messages", t.messages},
                                    {"deferred", t.deferred},
                                    {"packets", t.packets},
                                    {"puts", t.puts},
                                    {"bytes_sent", t.bytes()},
                                    {"payload_bytes", t.payload_bytes},
                                    {"index_bytes", t.index_bytes},
                                    {"header_bytes", t.header_bytes},
                                    {"control_bytes", t.control_bytes}})
    counts[name] = value;
  counts["staleness_max_iterations"] = (*h).participant().ledger().staleness_max();
  return counts;
}

std::span<std::byte> bytes_of(py::array_t<std::uint8_t, py::array::c_style>& array) {
  return std::as_writable_bytes(std::span(array.mutable_data(), static_cast<std::size_t>(array.size())));
}

using MemberClass = py::class_<MemberHandle>;

void define_start(MemberClass& member) {
  member.def(
      py::init([](const Job& job, const MeetingsHandle& meetings, std::shared_ptr<const JobPlan> plan,
                  std::shared_ptr<Parameters> replica, std::string command, std::map<std::string, std::string> versions,
                  Iteration iterations_per_epoch, Iteration iterations, std::vector<int> signals, std::string buffers) {
        Program program{.command = std::move(command),
                        .versions = std::move(versions),
                        .iterations_per_epoch = iterations_per_epoch,
                        .iterations = iterations,
                        .signals = std::move(signals),
                        .buffers = std::move(buffers),
                        .told = meetings.told()};
        return joined(job, meetings, std::move(plan), std::move(replica), std::move(program));
      }),
      py::arg("job"), py::arg("meetings"), py::arg("plan"), py::arg("replica"), py::kw_only(), py::arg("command"),
      py::arg("versions"), py::arg("iterations_per_epoch"), py::arg("iterations"), py::arg("signals"),
      py::arg("buffers"));
}

void define_loop(MemberClass& member) {
  member
      .def("tell_steps",
           [](MemberHandle& h, const std::vector<Step>& steps) {
             std::vector<StepResponse> responses;
             for (const Step& step : steps) responses.push_back(response(step));
             (*h).participant().steps(responses);
           })
      .def("start", [](MemberHandle& h) { waiting(h, [](Member& m_) { m_.start(); }); })
      .def("gradient_ready",
           [](MemberHandle& h, SegmentId segment) { waiting(h, [&](Member& m_) { m_.gradient_ready(segment); }); })
      .def("finish",
           [](MemberHandle& h, std::optional<double> rate) { waiting(h, [&](Member& m_) { m_.finish(rate); }); })
      .def("stepped", [](MemberHandle& h, double loss) { waiting(h, [&](Member& m_) { m_.stepped(loss); }); });
}

/// What all ranks do together.
void define_meetings(MemberClass& member) {
  member
      .def("meet",
           [](MemberHandle& h, const std::string& call) {
             waiting(h, [named = call_named(call)](Member& m_) { m_.together().meet(named); });
           })
      .def("begin", [](MemberHandle& h) { waiting(h, [](Member& m_) { m_.together().begin(); }); })
      .def("agree", [](MemberHandle& h) { waiting(h, [](Member& m_) { m_.together().agree(); }); })
      .def("give_up", [](MemberHandle& h) { (*h).together().give_up(); })
      .def("note_evaluation", [](MemberHandle& h, double seconds) { (*h).note_evaluation(seconds); })
      .def("is_done", [](MemberHandle& h) { return waiting(h, [](Member& m_) { return m_.together().is_done(); }); })
      .def("same_on_all",
           [](MemberHandle& h, std::optional<double> value) {
             return waiting(h, [&](Member& m_) { return m_.together().same_on_all(value); });
           })
      .def("end",
           [](MemberHandle& h) {
             waiting(h, [](Member& m_) {
               m_.participant().service().await_all();
               m_.participant().service().end();
               m_.together().settle();
             });
           })
      .def("optimizer",
           [](MemberHandle& h, const py::function& step) {
             (*h).participant().service().optimizer([kept = shared_function(step)] {
               const py::gil_scoped_acquire locked;
               (*kept)();
             });
           })
      .def("broadcast",
           [](MemberHandle& h, py::array_t<std::uint8_t, py::array::c_style> bytes) {
             waiting(h, [&](Member& m_) { m_.together().broadcast(bytes_of(bytes)); });
           })
      .def("average",
           [](MemberHandle& h, py::array_t<double, py::array::c_style> more) {
             const std::span<double> span(more.mutable_data(), static_cast<std::size_t>(more.size()));
             std::vector<float> mean;
             const double distance = waiting(h, [&](Member& m_) { return m_.average(span, mean); });
             return std::tuple(row(mean.size(), mean.data()), more, distance);
           })
      .def("evaluated",
           [](MemberHandle& h, const std::vector<std::tuple<std::string, bool, bool>>& metrics,
              const std::vector<double>& of_mean, const std::vector<double>& own, std::optional<double> examples) {
             std::vector<Score> scores;
             for (std::size_t i = 0; i < metrics.size(); ++i) {
               const auto& [name, higher_is_better, fraction] = metrics[i];
               scores.push_back({.metric = {.name = name, .higher_is_better = higher_is_better, .fraction = fraction},
                                 .of_mean = of_mean.at(i),
                                 .own = own.at(i)});
             }
             std::vector<std::tuple<double, double, double>> found;
             for (const RunQuality& quality : waiting(h, [&](Member& m_) { return m_.evaluated(scores, examples); }))
               found.emplace_back(quality.mean_model, quality.rank_worst, quality.rank_mean);
             return found;
           });
}

/// Who comes later, and whom the first rank lets in.
void define_newcomers(MemberClass& member) {
  using Bytes = py::array_t<std::uint8_t, py::array::c_style>;
  member.def("newcomers", [](MemberHandle& h) { return (*h).newcomers().waiting(); })
      .def("let_in",
           [](MemberHandle& h, int newcomer, std::int64_t epochs) {
             waiting(h, [&](Member& m_) {
               m_.newcomers().let_in(newcomer,
                                     {.calls = m_.together().progress(), .steps = m_.steps(), .epochs = epochs});
             });
           })
      .def("send", [](MemberHandle& h, int newcomer,
                      Bytes bytes) { waiting(h, [&](Member& m_) { m_.newcomers().send(newcomer, bytes_of(bytes)); }); })
      .def("take_vertex",
           [](MemberHandle& h) { waiting(h, [](Member& m_) { m_.newcomers().take_vertex(*m_.plan().exchange); }); })
      .def("await_admission",
           [](MemberHandle& h) {
             const Admission told = waiting(h, [](Member& m_) { return m_.newcomers().await_admission(); });
             return std::tuple(told.calls.calls, told.calls.meetings, told.steps, told.epochs);
           })
      .def("receive", [](MemberHandle& h,
                         Bytes bytes) { waiting(h, [&](Member& m_) { m_.newcomers().receive(bytes_of(bytes)); }); })
      .def("enter", [](MemberHandle& h, std::uint64_t calls, std::uint64_t meetings, Iteration steps) {
        waiting(h, [&](Member& m_) {
          m_.begin_at(steps);
          m_.newcomers().enter({.calls = {.calls = calls, .meetings = meetings}, .steps = steps});
        });
      });
}

void define_state(MemberClass& member) {
  member
      .def("state",
           [](MemberHandle& h) {
             const RawBytes bytes = waiting(h, [](Member& m_) { return m_.state(); });
             return row(bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
           })
      .def("load_state", [](MemberHandle& h, const py::array_t<std::uint8_t, py::array::c_style>& state) {
        const auto bytes = std::as_bytes(std::span(state.data(), static_cast<std::size_t>(state.size())));
        waiting(h, [&](Member& m_) { m_.load_state(bytes); });
      });
}

void define_end(MemberClass& member) {
  member.def("summary", [](MemberHandle& h) { return waiting(h, [](Member& m_) { return m_.summary(); }); })
      .def("write_ending", [](MemberHandle& h, const std::string& status,
                              const std::string& message) { (*h).write_ending(status, message); })
      .def(
          "leave", [](MemberHandle& h) { h.leave(); }, Unlocked());
}

void define_facts(MemberClass& member) {
  member.def("iterations_per_epoch", [](MemberHandle& h, Iteration length) { (*h).iterations_per_epoch(length); })
      .def("warnings", [](MemberHandle& h) { return (*h).warnings(); })
      .def("neighbours", [](MemberHandle& h) { return (*h).participant().edges().neighbourhood().neighbours; })
      .def("events",
           [](MemberHandle& h) {
             const auto events = measures_of((*h).participant().exchange()).events();
             return std::vector<bool>(events.begin(), events.end());
           })
      .def("counts", counts_of)
      .def_property_readonly("rank", [](MemberHandle& h) { return (*h).rank(); })
      .def_property_readonly("ranks", [](MemberHandle& h) { return (*h).ranks(); })
      .def_property_readonly("steps", [](MemberHandle& h) { return (*h).steps(); })
      .def_property_readonly("may_die", [](MemberHandle& h) { return (*h).may_die(); })
      .def_property_readonly("is_first", [](MemberHandle& h) { return (*h).together().is_first(); })
      .def_property_readonly("reports", [](MemberHandle& h) { return (*h).reports(); })
      .def_property_readonly("layer_wise", [](MemberHandle& h) { return (*h).layer_wise(); })
      .def_property_readonly("replica_hash", [](MemberHandle& h) { return (*h).replica_hash(); })
      .def_property_readonly("memory_bytes", [](MemberHandle& h) { return (*h).memory_bytes(); });
}

void add_meetings(py::module_& m) {
  py::class_<MeetingsHandle>(m, "Meetings")
      .def(py::init([](Job& job, const std::shared_ptr<const JobPlan>& plan, const std::shared_ptr<Parameters>& replica,
                       const std::string& buffers) {
             return std::make_unique<MeetingsHandle>(job, *plan, *replica, buffers);
           }),
           py::arg("job"), py::arg("plan"), py::arg("replica"), py::arg("buffers"), Unlocked())
      .def("meet", &MeetingsHandle::meet)
      .def("close", &MeetingsHandle::close, Unlocked());
}

}  // namespace

void add_member(py::module_& m) {
  add_meetings(m);
  MemberClass member(m, "Member");
  define_start(member);
  define_loop(member);
  define_meetings(member);
  define_newcomers(member);
  define_state(member);
  define_end(member);
  define_facts(member);
}

}  // namespace hearsay::python
