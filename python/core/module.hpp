#pragma once
// What the files of the extension module hearsay._core share, and what each adds to it.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>

#include "trigger/trigger.hpp"

namespace hearsay::python {

namespace py = pybind11;

/// The interpreter's lock is released meanwhile.
using Unlocked = py::call_guard<py::gil_scoped_release>;

/// A row of numbers; a copy where nobody owns them. Strides are said: a pybind11 from before numpy 2 reads them from
/// the wrong place.
template <class T>
py::array_t<T> row(std::size_t length, const T* first, const py::handle& owner = {}) {
  constexpr py::ssize_t stride = sizeof(T);
  return py::array_t<T>({static_cast<py::ssize_t>(length)}, {stride}, first, owner);
}

/// The interpreter's lock is taken where it is freed.
inline std::shared_ptr<py::function> shared_function(const py::function& function) {
  return {new py::function(function), [](py::function* f) {
            const py::gil_scoped_acquire locked;
            delete f;
          }};
}

/// A trigger policy that is a Python function.
std::shared_ptr<const Trigger> python_trigger(const py::function& function);

void add_observation(py::module_& m);  ///< trigger.cpp: what such a function sees
void add_member(py::module_& m);       ///< member_module.cpp: a member of the job, and meetings of all ranks
void add_tools(py::module_& m);        ///< tools.cpp: what `python3 -m hearsay` prints

}  // namespace hearsay::python
