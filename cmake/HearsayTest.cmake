# hearsay_add_test(NAME SOURCES <globs> LIBRARIES … [THREADS] [LABELS …] [ENVIRONMENT …] [TIMEOUT seconds]): a program
# of doctest cases in one process. THREADS: it starts some, so that ThreadSanitizer has something to judge. Sanitizers
# leave out the suite "arithmetic": long cases about values, which do nothing that shorter cases do not. Elsewhere, with
# ARITHMETIC, that suite is a test of its own, NAME.arithmetic, which runs beside the others. APART folder: so are the
# cases below it, NAME.folder.
#
# hearsay_add_mpi_test(NAME … RANKS 1 2 4 [MPIRUN_ARGS …]): the same program under mpirun, one test NAME.npP for each
# number of ranks. With PROGRAM instead of SOURCES the program of another MPI test is run, e.g. with other MPIRUN_ARGS.
# OPEN_MPI: what makes the test one of Open MPI only; it is skipped with these words under another MPI.
#
# hearsay_add_script_test(NAME COMMAND <script in tests/> <arguments> …): a script; exit status 0 is a pass.
#
# Labels: `mpi` and `torch` by what a test links; `tsan` on those with THREADS.
#
# PROCESSORS counts thirds of a core, and scripts/test begins as many tests as there are thirds: ranks mostly wait for
# each other's naps, and scripts for jobs to start and to end. They use a third of the processor time that they take.
set(HEARSAY_TEST_ENVIRONMENT OMP_NUM_THREADS=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
    TSAN_OPTIONS=halt_on_error=1)
set(HEARSAY_MPI_ENVIRONMENT
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers usually run as root
    OMPI_MCA_mpi_yield_when_idle=1                            # more ranks than cores
    OMPI_MCA_btl_tcp_if_include=lo                            # a testbed's interfaces come and go
    ASAN_OPTIONS=detect_leaks=0)                              # MPI keeps memory until the end
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpirun_version ERROR_QUIET)
set(HEARSAY_OPEN_MPI OFF)
if(mpirun_version MATCHES "Open MPI|OpenRTE")
  set(HEARSAY_OPEN_MPI ON)
  # Unbound: two tests that run side by side would otherwise be bound to the same cores.
  set(HEARSAY_MPIRUN_ARGS --oversubscribe --bind-to none)
elseif(HEARSAY_MPI STREQUAL "smpi")
  # Every simulated rank gets a copy of the program, with globals of its own: doctest has some. Ranks take turns on one
  # thread: with a thread each, handing over took most of the time.
  set(HEARSAY_MPIRUN_ARGS -platform ${PROJECT_SOURCE_DIR}/configs/platforms/ethernet-1g-32.xml
      --cfg=smpi/privatization:dlopen --cfg=smpi/simulate-computation:no --cfg=contexts/factory:raw
      --cfg=smpi/wtime:0 --cfg=smpi/test:0 --log=root.thres:critical)
  add_compile_options(-fPIC -fno-gnu-unique)
endif()
cmake_host_system_information(RESULT HEARSAY_CORES QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR HEARSAY_MACHINE "3 * ${HEARSAY_CORES}")  # PROCESSORS of a test that wants to be alone

add_library(hearsay_test_main OBJECT ${PROJECT_SOURCE_DIR}/tests/main.cpp)
target_link_libraries(hearsay_test_main PRIVATE hearsay_base doctest::doctest)
hearsay_compile_options(hearsay_test_main)
add_library(hearsay_mpi_test_main OBJECT ${PROJECT_SOURCE_DIR}/tests/mpi_main.cpp)
target_link_libraries(hearsay_mpi_test_main PRIVATE hearsay_core doctest::doctest)
hearsay_compile_options(hearsay_mpi_test_main)

add_custom_target(mpi_tests COMMENT "All test programs that run under mpirun")
add_custom_target(thread_tests COMMENT "All test programs that start threads")

function(hearsay_add_test_program target main)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_SOURCES})
  if(NOT sources)
    message(FATAL_ERROR "no file matches ${ARG_SOURCES}")
  endif()
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE ${main} ${ARG_LIBRARIES} doctest::doctest rapidcheck)
  hearsay_compile_options(${target})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # a quarter less to compile; what they test is optimised in full
    target_compile_options(${target} PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>")
  endif()
  if("${ARG_LIBRARIES}" MATCHES "hearsay_(runtime|models|program)")
    hearsay_precompile_torch(${target})
  elseif(NOT HEARSAY_MPI STREQUAL "smpi")  # whose tests are compiled with other flags
    hearsay_precompile(${target})
  endif()
  hearsay_compile_in_batches(${target} 6)
endfunction()

# hearsay_skip_test(NAME REASON LABELS …): a test that this build cannot have is reported as skipped.
function(hearsay_skip_test name reason)
  cmake_parse_arguments(ARG "" "" "LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: " LABELS "${ARG_LABELS}")
endfunction()

# The labels that follow from what a test links, in the variable `labels`; `skip` where this build cannot have the test.
macro(hearsay_classify_test)
  set(labels ${ARG_LABELS})
  set(needs_torch OFF)
  if("${ARG_LIBRARIES}" MATCHES "hearsay_(runtime|models|program)")
    set(needs_torch ON)
    list(APPEND labels torch)
  endif()
  set(skip OFF)
  if(needs_torch AND NOT HEARSAY_TORCH)
    set(skip ON)
  endif()
endmacro()

function(hearsay_add_test name)
  cmake_parse_arguments(ARG "THREADS;ARITHMETIC" "TIMEOUT;APART" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(HEARSAY_SANITIZE)  # which makes programs several times slower
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  hearsay_classify_test()
  if(skip)
    return()
  endif()
  hearsay_add_test_program(${name}_test hearsay_test_main SOURCES ${ARG_SOURCES} LIBRARIES ${ARG_LIBRARIES})
  if(ARG_THREADS)
    list(APPEND labels tsan)
    add_dependencies(thread_tests ${name}_test)
  endif()
  set(tests ${name})
  set(arguments)
  if(ARG_ARITHMETIC)
    set(arguments --test-suite-exclude=arithmetic)
    if(NOT HEARSAY_SANITIZE)
      list(APPEND tests ${name}.arithmetic)
      add_test(NAME ${name}.arithmetic COMMAND ${name}_test --test-suite=arithmetic)
    endif()
  endif()
  if(ARG_APART)
    list(APPEND tests ${name}.${ARG_APART})
    add_test(NAME ${name}.${ARG_APART} COMMAND ${name}_test --source-file=*/${ARG_APART}/* ${arguments})
    list(APPEND arguments --source-file-exclude=*/${ARG_APART}/*)
  endif()
  add_test(NAME ${name} COMMAND ${name}_test ${arguments})
  set_tests_properties(${tests} PROPERTIES LABELS "${labels}" TIMEOUT ${ARG_TIMEOUT} PROCESSORS 2
                       ENVIRONMENT "${HEARSAY_TEST_ENVIRONMENT};${ARG_ENVIRONMENT}")
  if(TEST ${name}.arithmetic)  # its threads take turns: a quarter of a core
    set_tests_properties(${name}.arithmetic PROPERTIES PROCESSORS 1 COST 900)
  endif()
endfunction()

function(hearsay_add_mpi_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;PROGRAM;OPEN_MPI" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT;RANKS;MPIRUN_ARGS"
                        ${ARGN})
  if(NOT ARG_RANKS)
    message(FATAL_ERROR "hearsay_add_mpi_test(${name}): RANKS is missing")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(HEARSAY_SANITIZE)  # which makes programs several times slower
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  hearsay_classify_test()
  if(skip OR HEARSAY_SANITIZE MATCHES "thread")
    return()
  endif()
  if(HEARSAY_SANITIZE)  # the values that more ranks come to are other presets' to check; 5 are a tree and a butterfly
    list(FILTER ARG_RANKS INCLUDE REGEX "^[35]$")
  endif()
  set(program ${name}_test)
  if(ARG_PROGRAM)
    set(program ${ARG_PROGRAM}_test)
  else()
    hearsay_add_test_program(${program} hearsay_mpi_test_main SOURCES ${ARG_SOURCES} LIBRARIES ${ARG_LIBRARIES}
                             hearsay_core)
    add_dependencies(mpi_tests ${program})
    if(HEARSAY_MPI STREQUAL "smpi")
      target_link_options(${program} PRIVATE -shared)  # smpirun loads it
    endif()
  endif()
  set(environment "${HEARSAY_TEST_ENVIRONMENT};${HEARSAY_MPI_ENVIRONMENT}")
  foreach(ranks IN LISTS ARG_RANKS)
    if(ARG_OPEN_MPI AND NOT HEARSAY_OPEN_MPI)
      hearsay_skip_test(${name}.np${ranks} "${ARG_OPEN_MPI} of Open MPI" LABELS mpi ${labels})
      continue()
    endif()
    add_test(NAME ${name}.np${ranks}
             COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${HEARSAY_MPIRUN_ARGS} ${ARG_MPIRUN_ARGS}
                     $<TARGET_FILE:${program}>)
    set(processors 1)
    if(ranks GREATER 4)
      set(processors 2)
    endif()
    set_tests_properties(${name}.np${ranks} PROPERTIES LABELS "mpi;${labels}" TIMEOUT ${ARG_TIMEOUT}
                         PROCESSORS ${processors}
                         ENVIRONMENT "${environment};HEARSAY_EXPECTED_RANKS=${ranks};${ARG_ENVIRONMENT}")
  endforeach()
endfunction()

# hearsay_add_fuzz_targets(NAME … [FOLDER fuzz/targets] [LIBRARIES …]): the program fuzz_NAME of each NAME.cpp in that
# folder of tests/, and a test fuzz.NAME that runs it for a few seconds.
function(hearsay_add_fuzz_targets)
  cmake_parse_arguments(ARG "" "FOLDER" "LIBRARIES" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER fuzz/targets)
  endif()
  set(seconds 1)
  if(HEARSAY_SANITIZE)
    set(seconds 7)
  endif()
  if(NOT TARGET fuzz_replay)
    add_library(fuzz_replay OBJECT fuzz/replay.cpp)
    target_link_libraries(fuzz_replay PRIVATE hearsay_core hearsay_datasets)
    hearsay_compile_options(fuzz_replay)
  endif()
  foreach(name IN LISTS ARG_UNPARSED_ARGUMENTS)
    add_executable(fuzz_${name} ${ARG_FOLDER}/${name}.cpp)
    target_link_libraries(fuzz_${name} PRIVATE fuzz_replay hearsay_core hearsay_datasets ${ARG_LIBRARIES})
    hearsay_compile_options(fuzz_${name})
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} --seconds ${seconds})
    set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 120 PROCESSORS 2 ENVIRONMENT
                         "${HEARSAY_TEST_ENVIRONMENT};ASAN_OPTIONS=abort_on_error=1:handle_segv=0:detect_leaks=0")
  endforeach()
endfunction()

# hearsay_add_script_test(NAME COMMAND <script in tests/> <arguments> [LABELS …] [ENVIRONMENT …] [TIMEOUT s]
#                         [PROCESSORS n])
function(hearsay_add_script_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;PROCESSORS" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(HEARSAY_SANITIZE)  # which makes programs several times slower
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 2)
  endif()
  list(POP_FRONT ARG_COMMAND script)
  add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${ARG_PROCESSORS}
                       ENVIRONMENT "${HEARSAY_TEST_ENVIRONMENT};${ARG_ENVIRONMENT}")
endfunction()

# hearsay_add_cli_tests(NAME … TIMEOUT seconds): the scripts of those names in cli/, NAME_test.sh or .py,
# which are given the program and the sources, as cli.NAME; cli itself as cli.
function(hearsay_add_cli_tests)
  cmake_parse_arguments(ARG "" "TIMEOUT" "" ${ARGN})
  foreach(name IN LISTS ARG_UNPARSED_ARGUMENTS)
    string(REGEX REPLACE "^cli\\.cli$" "cli" test "cli.${name}")
    set(script cli/${name}_test.sh)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${script})
      set(script cli/${name}_test.py)
    endif()
    hearsay_add_script_test(${test} COMMAND ${script} $<TARGET_FILE:hearsay> ${PROJECT_SOURCE_DIR}
                            TIMEOUT ${ARG_TIMEOUT} LABELS torch mpi
                            ENVIRONMENT ${HEARSAY_MPI_ENVIRONMENT} MPIEXEC=${MPIEXEC_EXECUTABLE})
  endforeach()
endfunction()

# hearsay_add_testbed_test(NAME COMMAND … ): a script test on the hosts of scripts/testbed, one at a time; skipped where
# network namespaces are not permitted (the script says why).
function(hearsay_add_testbed_test name)
  if(NOT HEARSAY_OPEN_MPI)
    hearsay_skip_test(${name} "scripts/testbed starts ranks by the launch agent of Open MPI" LABELS testbed mpi)
    return()
  endif()
  hearsay_add_script_test(${name} ${ARGN} TIMEOUT 600 LABELS testbed mpi)
  # They come first: one at a time and waiting for slow links, they leave more than a core to the others.
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 RESOURCE_LOCK testbed COST 1000 PROCESSORS 1)
endfunction()
