// The extension module hearsay._core: what the Python package is made on. Private to python/hearsay/.
#include "python/core/module.hpp"

#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <hearsay_version.hpp>

#include <cstdio>
#include <optional>
#include <string>
#include <tuple>

#include "base/error.hpp"
#include "base/launchers.hpp"
#include "base/text/foreign_text.hpp"
#include "python/core/member.hpp"
#include "python/core/places.hpp"
#include "python/core/store.hpp"
#include "runtime/job/start.hpp"
#include "runtime/job/start_watch.hpp"
#include "runtime/mpi/environment.hpp"

namespace hearsay::python {
namespace {

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

/// `file` or `text`; `set`: ("key=value", how messages name it) on top of it.
std::shared_ptr<const JobPlan> read_plan(const std::optional<std::string>& file, const std::string& text,
                                         const std::vector<std::pair<std::string, std::string>>& set,
                                         const std::string& model_name, const std::string& data_name,
                                         const std::optional<py::function>& trigger) {
  Config config = file ? Config::from_file(*file) : Config::from_text(text, "configuration");
  if (trigger) config.document().provide(provided_trigger, ProvidedTrigger(python_trigger(*trigger)));
  for (const auto& [assignment, place] : set) config.document().override_with(assignment, place);
  config.document().rehearse([&](Config rehearsed) { JobPlan(std::move(rehearsed), model_name, data_name); });
  return std::make_shared<const JobPlan>(std::move(config), model_name, data_name);
}

void heed_signals() {
  const py::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

/// (rank, ranks, a name that no other job has)
using Seat = std::tuple<int, int, std::string>;

/// The job of this process; or, of MPI's, that of the ranks of a communicator; or that of a group which this process
/// has a seat in. `store` makes another place to meet of a job's name, or None.
std::unique_ptr<Job> job_of(std::optional<int> communicator, const py::object& store, const std::optional<Seat>& seat) {
  const auto elsewhere = [&](const std::string& job) -> std::unique_ptr<sockets::Rendezvous> {
    const py::gil_scoped_acquire locked;
    py::object made = store.is_none() ? py::none() : store(job);
    return made.is_none() ? nullptr : std::make_unique<Store>(std::move(made));
  };
  const StartOptions options{.build = std::string(full_version), .elsewhere = elsewhere, .idle = heed_signals};
  if (seat) {
    const auto& [rank, ranks, name] = *seat;
    return start_group({.rank = rank, .ranks = ranks}, name, options);
  }
  if (!communicator) return start_job(options);
  return std::make_unique<mpi::Environment>(mpi::CommunicatorHandle::from_fortran(*communicator));
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

void say_that_it_ends(const std::string& words) {
  if (!words.empty()) std::fprintf(stderr, "hearsay: %s\n", words.c_str());
}

/// Never ended by Python itself: a forked child that ends must not end its parent's job.
using JobPointer = std::unique_ptr<Job, py::nodelete>;

/// The job that this process belongs to.
void add_process(py::module_& m) {
  m.attr("rank_process_variable") = rank_process_variable;
  m.def("come_to", [](const std::string& job, const std::shared_ptr<const JobPlan>& plan,
                      const std::shared_ptr<Parameters>& replica, const std::string& buffers) {
    const py::gil_scoped_release unlocked;
    const StartOptions options{.build = std::string(full_version), .idle = heed_signals};
    return JobPointer(come_to(job, *plan, common_hash(*plan, replica->layout, buffers), options).release());
  });
  py::class_<StartWatch>(m, "StartWatch")
      .def(py::init([] { return std::make_unique<StartWatch>(say_that_it_ends); }))
      .def("end", &StartWatch::end, Unlocked());
  py::class_<Job, JobPointer>(m, "Job")
      .def(py::init([](std::optional<int> communicator, const py::object& store, const std::optional<Seat>& seat) {
             const py::gil_scoped_release unlocked;
             return JobPointer(job_of(communicator, store, seat).release());
           }),
           py::arg("communicator") = py::none(), py::arg("store") = py::none(), py::arg("seat") = py::none())
      .def(
          "end", [](Job* job) { delete job; }, Unlocked())
      .def(
          "close_places",
          [](const Job& job) {
            if (LateMembers* const late = job.late_members()) late->close_places();
          },
          Unlocked())
      .def_property_readonly("outlives_a_rank", [](const Job& job) { return job.ranks() > 1 && job.outlives_a_rank(); })
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
  translate<RankDied>("RankDied");
  translate<TakenForDead>("TakenForDead");

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
      .def_property_readonly("others_go_on", [](const JobPlan& plan) { return plan.on_failure.others_go_on; })
      .def_property_readonly("others_may_come", [](const JobPlan& plan) { return plan.on_failure.joins > 0; })
      .def_property_readonly("serves", [](const JobPlan& plan) { return plan.exchange->laws().sharded; })
      .def_property_readonly("measures_steps",
                             [](const JobPlan& plan) { return plan.exchange->laws().measures_steps; });

  add_observation(m);
  add_member(m);
  add_process(m);
  add_tools(m);
}

}  // namespace hearsay::python
