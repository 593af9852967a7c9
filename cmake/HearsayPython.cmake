# HEARSAY_PYTHON: the Python package. AUTO: where pybind11, Python's headers and numpy are found and MPI is not
# simulated; OFF: never, which is the default inside another project. Needs no LibTorch. Another Python than the first
# that will do: Python_EXECUTABLE.
if(PROJECT_IS_TOP_LEVEL)
  set(HEARSAY_PYTHON AUTO CACHE STRING "Build the Python package: AUTO (if it can be), ON or OFF")
else()
  set(HEARSAY_PYTHON OFF CACHE STRING "Build the Python package: AUTO (if it can be), ON or OFF")
endif()
set_property(CACHE HEARSAY_PYTHON PROPERTY STRINGS AUTO ON OFF)

set(HEARSAY_HAS_PYTHON OFF)
if(HEARSAY_PYTHON STREQUAL "OFF" OR HEARSAY_SANITIZE OR HEARSAY_MPI STREQUAL "smpi")
  message(STATUS "Python package: not built (HEARSAY_PYTHON is OFF, or this is a build with sanitizers or for the "
                 "simulator)")
  return()
endif()
# The first Python on the PATH may not be the distribution's, and then has not the distribution's packages.
if(NOT Python_EXECUTABLE)
  foreach(python IN ITEMS python3 /usr/bin/python3)
    execute_process(COMMAND ${python} -c "import sys, numpy; print(sys.executable)" OUTPUT_VARIABLE found
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE code)
    if(code EQUAL 0)
      set(Python_EXECUTABLE ${found} CACHE FILEPATH "The Python that the package is built for")
      break()
    endif()
  endforeach()
endif()
find_package(Python 3.9 COMPONENTS Interpreter Development.Module QUIET)
find_package(pybind11 2.10 CONFIG QUIET)
if(Python_Development.Module_FOUND AND pybind11_FOUND)
  set(HEARSAY_HAS_PYTHON ON)
  message(STATUS "Python package: built for ${Python_EXECUTABLE} (${Python_VERSION})")
elseif(HEARSAY_PYTHON STREQUAL "AUTO")
  message(STATUS "Python package: not built, pybind11 or Python's headers were not found (Debian: pybind11-dev "
                 "python3-dev python3-numpy)")
else()
  message(FATAL_ERROR "HEARSAY_PYTHON is ON, but pybind11 or Python's headers were not found (Debian: pybind11-dev "
                      "python3-dev python3-numpy). Install them, or set HEARSAY_PYTHON to OFF.")
endif()
