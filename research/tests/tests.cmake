# Included by tests/CMakeLists.txt: the benchmarks of research/bench, and the smoke test of all that is here.
find_package(CLI11 REQUIRED)
find_package(benchmark QUIET)
set(bench ${PROJECT_SOURCE_DIR}/research/bench)
set(research_programs $<TARGET_FILE:hearsay>)

# A program of research/bench, into build/NAME/research/.
function(hearsay_add_research name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE hearsay_program nlohmann_json::nlohmann_json CLI11::CLI11)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/research)
  hearsay_compile_options(${name})
endfunction()

hearsay_add_research(mailbox ${bench}/mailbox.cpp)
add_executable(windows ${bench}/windows.cpp)
target_link_libraries(windows PRIVATE hearsay_core CLI11::CLI11)
set_target_properties(windows PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/research)
hearsay_compile_options(windows)
hearsay_add_research(selector_times ${bench}/selector_times.cpp)
list(APPEND research_programs $<TARGET_FILE:mailbox>)
if(benchmark_FOUND)
  file(GLOB sources CONFIGURE_DEPENDS ${bench}/kernels/*.cpp)
  hearsay_add_research(kernels ${sources})
  target_link_libraries(kernels PRIVATE benchmark::benchmark)
  hearsay_precompile_torch(kernels)
  list(APPEND research_programs $<TARGET_FILE:kernels>)
else()
  message(STATUS "kernels is not built: Google Benchmark was not found")
endif()

hearsay_add_script_test(research COMMAND ../research/tests/run.sh ${research_programs} TIMEOUT 600
                        LABELS torch mpi
                        ENVIRONMENT ${HEARSAY_MPI_ENVIRONMENT} MPIEXEC=${MPIEXEC_EXECUTABLE})
set_tests_properties(research PROPERTIES SKIP_RETURN_CODE 77)
