// Trigger policies that are Python functions, and what these see.
#include "trigger/trigger.hpp"

#include <cmath>
#include <limits>

#include "python/core/module.hpp"

namespace hearsay::python {
namespace {

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

}  // namespace

std::shared_ptr<const Trigger> python_trigger(const py::function& function) {
  return std::make_shared<const PythonTrigger>(function);
}

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

}  // namespace hearsay::python
