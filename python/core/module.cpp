// The extension module hearsay._core: what the Python package is made on. Private to python/hearsay/.
//
// The interpreter's lock is released wherever the core waits or works; the communication thread never takes it.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <hearsay_version.hpp>

#include <cmath>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/text/foreign_text.hpp"
#include "python/core/member.hpp"
#include "python/core/store.hpp"
#include "runtime/job/start.hpp"
#include "runtime/mpi/environment.hpp"
#include "trigger/trigger.hpp"

namespace py = pybind11;

namespace hearsay::python {

void add_tools(py::module_& m);  // tools.cpp

namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

/// A row of numbers; a copy where nobody owns them. Strides are said: a pybind11 from before numpy 2 reads them from
/// the wrong place.
template <class T>
py::array_t<T> row(std::size_t length, const T* first, const py::handle& owner = {}) {
  constexpr py::ssize_t stride = sizeof(T);
  return py::array_t<T>({static_cast<py::ssize_t>(length)}, {stride}, first, owner);
}

/// A block of floats as an array over the same memory, which lives as long as the array.
py::array_t<float> view(const std::shared_ptr<Parameters>& replica, FloatBlock& block) {
  const py::capsule owner(new std::shared_ptr<Parameters>(replica),
                          [](void* p) { delete static_cast<std::shared_ptr<Parameters>*>(p); });
  return row(block.size(), block.span().data(), owner);
}

std::shared_ptr<Parameters> make_replica(const std::vector<std::string>& names,
                                         const std::vector<std::vector<std::int64_t>>& shapes) {
  Layout layout;
  for (std::size_t s = 0; s < names.size(); ++s) layout.append(names[s], shapes[s]);
  return std::make_shared<Parameters>(std::move(layout));
}

/// Python's own bool, numpy's and a torch tensor of one: as numbers the last two would be thresholds of 0 and 1.
bool is_bool(const py::object& answer) {
  if (py::isinstance<py::bool_>(answer)) return true;
  if (py::isinstance<py::float_>(answer) || !py::hasattr(answer, "dtype")) return false;
  const std::string type = py::str(answer.attr("dtype"));
  return type == "bool" || type == "torch.bool";
}

double threshold_of(const py::object& answer) {
  if (is_bool(answer)) return py::bool_(answer) ? 0.0 : std::numeric_limits<double>::infinity();
  const char* const remedy = "; return a threshold, or a bool";
  double threshold;
  try {
    threshold = answer.cast<double>();
  } catch (const py::cast_error&) {
    throw py::type_error("the trigger function has returned " + std::string(py::repr(answer)) + remedy);
  }
  if (std::isnan(threshold)) throw py::value_error("the trigger function has returned NaN" + std::string(remedy));
  return threshold;
}

/// The interpreter's lock is taken where it is freed.
std::shared_ptr<py::function> shared_function(const py::function& function) {
  return {new py::function(function), [](py::function* f) {
            const py::gil_scoped_acquire locked;
            delete f;
          }};
}

/// A trigger policy that is a Python function. It is called by the thread that computes, which takes the interpreter's
/// lock for it; the communication thread never does.
class PythonTrigger final : public Trigger {
 public:
  explicit PythonTrigger(const py::function& function) : function_(shared_function(function)) {}
  std::unique_ptr<Trigger> for_segments(std::size_t /*segments*/) const override {
    return std::make_unique<PythonTrigger>(*this);
  }
  double threshold(const Observation& observation) const override {
    const py::gil_scoped_acquire locked;
    return threshold_of((*function_)(observation));
  }

 private:
  std::shared_ptr<py::function> function_;
};

void add_observation(py::module_& m) {
  py::class_<Observation>(m, "Observation", "One parameter tensor at one step, as a trigger function sees it.")
      .def_readonly("segment", &Observation::segment, "its number, in the order of member.parameters")
      .def_readonly("length", &Observation::length, "values in it")
      .def_readonly("iteration", &Observation::iteration, "steps made before this one")
      .def_readonly("norm", &Observation::norm, "‖x‖₂ of the parameter now")
      .def_readonly("norm_at_event", &Observation::norm_at_event, "the norm when it was last sent")
      .def_readonly("change", &Observation::change,
                    "|norm − norm_at_event|, or ‖x − what neighbours hold‖₂ with trigger.measure: change")
      .def_readonly("iteration_of_event", &Observation::iteration_of_event, "of the last event; −1 before the first")
      .def_property_readonly("learning_rate", &Observation::rate,
                             "of the step that follows, or, where only `finish` says it, of the one before; "
                             "ConfigError where the loop has not said it")
      .def_property_readonly("silence", &Observation::silence, "steps since the last event")
      .def_property_readonly("slope", &Observation::slope, "change / silence");
}

/// `file` or `text`; `set`: ("key=value", how messages name it) on top of it.
std::shared_ptr<const JobPlan> read_plan(const std::optional<std::string>& file, const std::string& text,
                                         const std::vector<std::pair<std::string, std::string>>& set,
                                         const std::string& model_name, const std::string& data_name,
                                         const std::optional<py::function>& trigger) {
  Config config = file ? Config::from_file(*file) : Config::from_text(text, "configuration");
  if (trigger) config.provide(provided_trigger, ProvidedTrigger(std::make_shared<const PythonTrigger>(*trigger)));
  for (const auto& [assignment, place] : set) config.override_with(assignment, place);
  config.rehearse([&](Config rehearsed) { JobPlan(std::move(rehearsed), model_name, data_name); });
  return std::make_shared<const JobPlan>(std::move(config), model_name, data_name);
}

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

/// The job of this process; or, of MPI's, that of the ranks of a communicator. `store` makes another place to meet of
/// a job's name, or None.
std::unique_ptr<Job> job_of(std::optional<int> communicator, const py::object& store) {
  const auto elsewhere = [&](const std::string& job) -> std::unique_ptr<sockets::Rendezvous> {
    const py::gil_scoped_acquire locked;
    py::object made = store.is_none() ? py::none() : store(job);
    return made.is_none() ? nullptr : std::make_unique<Store>(std::move(made));
  };
  const auto idle = [] {
    const py::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  };
  if (!communicator) return start_job({.build = std::string(full_version), .elsewhere = elsewhere, .idle = idle});
  return std::make_unique<mpi::Environment>(mpi::CommunicatorHandle::from_fortran(*communicator));
}

/// Meetings that Python never destroys by itself, as a member.
class MeetingsHandle {
 public:
  explicit MeetingsHandle(Job& job) {
    assemble(job, [] {
      const py::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    });
    meetings_ = new std::shared_ptr(std::make_shared<Meetings>(job));
  }
  const std::shared_ptr<Meetings>& operator*() const { return *meetings_; }
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
    if (member_ != nullptr) member_->participant().leave();  // told: whoever waits for this rank learns it
    delete member_;
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
    if (departed) member.tell_of_step();
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

template <class Error>
py::object in_python(const py::object& type, const Error& error) {
  return type(shown_message(error.in_python()));
}

/// With its problems: (the file or the argument, line or None, column or None, message).
py::object in_python(const py::object& type, const ConfigError& error) {
  py::list problems;
  for (const ConfigProblem& p : error.problems) {
    const bool has_place = p.line > 0;
    // An argument's own name is all of it that stands before what it was set to.
    problems.append(py::make_tuple(has_place ? p.source : p.source.substr(0, p.source.find('=')),
                                   has_place ? std::optional(p.line) : std::nullopt,
                                   has_place ? std::optional(p.column) : std::nullopt, shown_message(p.message)));
  }
  return type(shown_message(error.in_python()), problems);
}

template <class Error>
void translated(const std::exception_ptr& thrown, const char* name) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const py::object type = py::module_::import("hearsay.errors").attr(name);
    PyErr_SetObject(type.ptr(), in_python(type, error).ptr());
  }
}

template <class Error>
void translate(const char* name) {
  static const char* const python_name = name;  // a translator is a plain function
  py::register_exception_translator([](std::exception_ptr thrown) { translated<Error>(thrown, python_name); });
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
                        .buffers = std::move(buffers)};
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
             waiting(h, [named = call_named(call)](Member& m_) { m_.meet(named); });
           })
      .def("same_on_all",
           [](MemberHandle& h, std::optional<double> value) {
             return waiting(h, [&](Member& m_) { return m_.same_on_all(value); });
           })
      .def("end",
           [](MemberHandle& h) {
             waiting(h, [](Member& m_) {
               m_.participant().service().await_all();
               m_.participant().service().end();
               m_.participant().settle();
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
             const auto span =
                 std::as_writable_bytes(std::span(bytes.mutable_data(), static_cast<std::size_t>(bytes.size())));
             waiting(h, [&](Member& m_) { m_.broadcast(span); });
           })
      .def("average",
           [](MemberHandle& h, py::array_t<double, py::array::c_style> more) {
             const std::span<double> span(more.mutable_data(), static_cast<std::size_t>(more.size()));
             std::vector<float> mean;
             const double distance = waiting(h, [&](Member& m_) { return m_.average(span, mean); });
             return std::tuple(row(mean.size(), mean.data()), more, distance);
           })
      .def("evaluated", [](MemberHandle& h, const std::vector<std::tuple<std::string, bool, bool>>& metrics,
                           const std::vector<double>& of_mean, const std::vector<double>& own,
                           std::optional<double> examples, double seconds) {
        std::vector<Score> scores;
        for (std::size_t i = 0; i < metrics.size(); ++i) {
          const auto& [name, higher_is_better, fraction] = metrics[i];
          scores.push_back({.metric = {.name = name, .higher_is_better = higher_is_better, .fraction = fraction},
                            .of_mean = of_mean.at(i),
                            .own = own.at(i)});
        }
        std::vector<std::tuple<double, double, double>> found;
        for (const RunQuality& quality :
             waiting(h, [&](Member& m_) { return m_.evaluated(scores, examples, seconds); }))
          found.emplace_back(quality.mean_model, quality.rank_worst, quality.rank_mean);
        return found;
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
      .def_property_readonly("layer_wise", [](MemberHandle& h) { return (*h).layer_wise(); })
      .def_property_readonly("replica_hash", [](MemberHandle& h) { return (*h).replica_hash(); })
      .def_property_readonly("memory_bytes", [](MemberHandle& h) { return (*h).memory_bytes(); });
}

void add_meetings(py::module_& m) {
  py::class_<MeetingsHandle>(m, "Meetings")
      .def(py::init<Job&>(), py::arg("job"), Unlocked())
      .def("meet", &MeetingsHandle::meet)
      .def("close", &MeetingsHandle::close, Unlocked());
}

void add_member(py::module_& m) {
  MemberClass member(m, "Member");
  define_start(member);
  define_loop(member);
  define_meetings(member);
  define_state(member);
  define_end(member);
  define_facts(member);
}

/// The job that this process belongs to.
void add_process(py::module_& m) {
  // Never ended by Python itself: a forked child that ends must not end its parent's job.
  py::class_<Job, std::unique_ptr<Job, py::nodelete>>(m, "Job")
      .def(py::init([](std::optional<int> communicator, const py::object& store) {
             const py::gil_scoped_release unlocked;
             return std::unique_ptr<Job, py::nodelete>(job_of(communicator, store).release());
           }),
           py::arg("communicator") = py::none(), py::arg("store") = py::none())
      .def(
          "end", [](Job* job) { delete job; }, Unlocked())
      .def_property_readonly("rank", &Job::rank)
      .def_property_readonly("ranks", &Job::ranks)
      .def_property_readonly("ranks_on_host", &Job::ranks_on_host)
      .def(
          "tell_of_end", [](Job& job) { tell_of_end(job); }, "This rank will never join. Waits for nobody.", Unlocked())
      .def(
          "abort", [](const Job& job, int code) { job.abort(code); }, Unlocked());
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  translate<DivergenceError>("DivergenceError");
  translate<CommunicationError>("CommunicationError");
  translate<DataError>("DataError");
  translate<ConfigError>("ConfigError");
  translate<RankLeft>("RankLeft");

  py::class_<Parameters, std::shared_ptr<Parameters>>(m, "Replica")
      .def(py::init(&make_replica), py::arg("names"), py::arg("shapes"))
      .def_property_readonly("values", [](const std::shared_ptr<Parameters>& r) { return view(r, r->values); })
      .def_property_readonly("gradients", [](const std::shared_ptr<Parameters>& r) { return view(r, r->gradients); });

  py::class_<JobPlan, std::shared_ptr<JobPlan>>(m, "Plan")
      .def(py::init([](const std::optional<std::string>& file, const std::string& text,
                       const std::vector<std::pair<std::string, std::string>>& set, const std::string& model,
                       const std::string& data, const std::optional<py::function>& trigger) {
             return std::const_pointer_cast<JobPlan>(read_plan(file, text, set, model, data, trigger));
           }),
           py::arg("file"), py::arg("text"), py::arg("set"), py::arg("model"), py::arg("data"),
           py::arg("trigger") = py::none())
      .def_readonly("seed", &JobPlan::seed)
      .def_readonly("exchange", &JobPlan::exchange_name)
      .def_readwrite("yaml", &JobPlan::yaml)
      .def_readonly("notes", &JobPlan::notes)
      .def_property_readonly("directory", [](const JobPlan& plan) { return plan.report.directory.string(); })
      .def_property_readonly("every_iterations", [](const JobPlan& plan) { return plan.report.every_iterations; })
      .def_property_readonly("lockstep", &JobPlan::in_step)
      .def_property_readonly("serves", [](const JobPlan& plan) { return plan.exchange->laws().sharded; })
      .def_property_readonly("measures_steps",
                             [](const JobPlan& plan) { return plan.exchange->laws().measures_steps; });

  add_observation(m);
  add_meetings(m);
  add_member(m);
  add_process(m);
  hearsay::python::add_tools(m);
}

}  // namespace hearsay::python
