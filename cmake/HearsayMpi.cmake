# The target MPI::MPI_CXX, and HEARSAY_MPI_SOURCES, the folder of runtime/mpi that goes with it: the installed MPI, or
# SimGrid's SMPI, under which all ranks are threads of one process in simulated time.
set(HEARSAY_MPI "system" CACHE STRING "system: the MPI that is installed; smpi: SimGrid's simulated MPI")
set_property(CACHE HEARSAY_MPI PROPERTY STRINGS system smpi)
if(HEARSAY_MPI STREQUAL "system")
  set(HEARSAY_MPI_SOURCES real)
  set(MPI_CXX_SKIP_MPICXX TRUE)  # the C++ bindings that MPI itself has removed
  find_package(MPI COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND)
    message(FATAL_ERROR "no MPI was found with the compiler wrapper '${MPI_CXX_COMPILER}' (Debian: libopenmpi-dev and "
                        "openmpi-bin; for the presets mpich and mpich-core libmpich-dev and mpich). "
                        "Elsewhere set MPI_CXX_COMPILER and MPIEXEC_EXECUTABLE to your MPI's.")
  endif()
elseif(HEARSAY_MPI STREQUAL "smpi")
  set(HEARSAY_MPI_SOURCES simulated)
  find_path(SMPI_INCLUDE_DIR smpi/smpi.h)
  find_library(SIMGRID_LIBRARY simgrid)
  find_program(SMPIRUN smpirun)
  if(NOT SMPI_INCLUDE_DIR OR NOT SIMGRID_LIBRARY OR NOT SMPIRUN)
    message(FATAL_ERROR "SimGrid with SMPI was not found (Debian: libsimgrid-dev). It is needed for simulations only: "
                        "configure without HEARSAY_MPI=smpi, or with another preset.")
  endif()
  add_library(MPI::MPI_CXX INTERFACE IMPORTED)
  target_include_directories(MPI::MPI_CXX SYSTEM INTERFACE ${SMPI_INCLUDE_DIR}/smpi ${SMPI_INCLUDE_DIR})
  target_link_libraries(MPI::MPI_CXX INTERFACE ${SIMGRID_LIBRARY})
  set(MPIEXEC_EXECUTABLE ${SMPIRUN})
  set(MPIEXEC_NUMPROC_FLAG -np)
else()
  message(FATAL_ERROR "HEARSAY_MPI is system or smpi, not '${HEARSAY_MPI}'")
endif()

# hearsay_compile_with_mpi(<globs>): the sources that include <mpi.h>. The others are compiled alike whatever MPI there
# is, so that ccache has them when another preset has been built.
function(hearsay_compile_with_mpi)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE globs)
  file(GLOB sources CONFIGURE_DEPENDS ${globs})
  foreach(property IN ITEMS INTERFACE_INCLUDE_DIRECTORIES INTERFACE_COMPILE_DEFINITIONS INTERFACE_COMPILE_OPTIONS)
    get_target_property(${property} MPI::MPI_CXX ${property})
    if(NOT ${property})
      set(${property} "")
    endif()
  endforeach()
  list(REMOVE_ITEM INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  list(TRANSFORM INTERFACE_INCLUDE_DIRECTORIES PREPEND -isystem)
  set_source_files_properties(${sources} PROPERTIES COMPILE_DEFINITIONS "${INTERFACE_COMPILE_DEFINITIONS}"
                              COMPILE_OPTIONS "${INTERFACE_INCLUDE_DIRECTORIES};${INTERFACE_COMPILE_OPTIONS}")
endfunction()
