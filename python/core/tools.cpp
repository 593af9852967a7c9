// What `python3 -m hearsay` prints: texts that the program `hearsay` has, too.
#include "apps/tools/tools.hpp"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "apps/tools/launch.hpp"
#include "apps/tools/watch_view.hpp"
#include "hearsay_version.hpp"
#include "python/core/module.hpp"

namespace hearsay::python {

void add_tools(py::module_& m) {
  m.attr("version") = std::string(version);
  m.def("list_text", [](const std::optional<std::string>& kind) { return list_text(python_catalogue(), kind); });
  m.def("describe_text",
        [](const std::vector<std::string>& names) { return describe_text(python_catalogue(), names); });
  m.def("markdown_text",
        [](const std::vector<std::string>& kinds) { return markdown_text(python_catalogue(), kinds); });
  m.def("compare_text", &compare_text);
  m.def(
      "launch_here",
      [](int ranks, std::vector<std::string> words, bool recover, std::string job) {
        return launch_here({.ranks = ranks, .words = std::move(words), .recover = recover, .job = std::move(job)});
      },
      py::arg("ranks"), py::arg("words"), py::arg("recover"), py::arg("job") = "",
      py::call_guard<py::gil_scoped_release>());
  m.def("version_text", &version_text);
  py::class_<WatchedRun>(m, "WatchedRun")
      .def(py::init<std::filesystem::path>())
      .def("poll", &WatchedRun::poll)
      .def("view", [](const WatchedRun& run, std::size_t width) { return watch_view(run, width); })
      .def_property_readonly("status", &WatchedRun::status);
}

}  // namespace hearsay::python
