# hearsay_add_library(NAME SOURCES <globs> [PUBLIC <libraries>] [PRIVATE <libraries>] [TOGETHER | APART]): the static
# library hearsay_NAME (alias hearsay::NAME) of one folder, with the headers beside its sources. Globs are re-checked at
# every build, so a new algorithm file needs no CMake edit.
#
# Files may be compiled together (HEARSAY_BATCH): names in the anonymous namespaces of one library must differ.
# TOGETHER: four files that include LibTorch always are, 37 s for eight of them instead of 90 s. APART: never.
set(HEARSAY_BATCH 0 CACHE STRING
    "Files of a library that are compiled as one: 12 for a build from nothing; 0, each by itself, to work on them")

function(hearsay_add_library name)
  cmake_parse_arguments(ARG "TOGETHER;APART" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  list(TRANSFORM ARG_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_SOURCES})
  list(TRANSFORM ARG_SOURCES REPLACE "\\.(cpp|cu)$" ".hpp" OUTPUT_VARIABLE header_globs)
  file(GLOB headers CONFIGURE_DEPENDS ${header_globs})
  add_library(hearsay_${name} STATIC ${sources})
  add_library(hearsay::${name} ALIAS hearsay_${name})
  set_target_properties(hearsay_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(hearsay_${name} PUBLIC cxx_std_20)
  # Here headers include each other as "runtime/…"; installed, as "hearsay/runtime/…" (HearsayInstall.cmake).
  target_include_directories(hearsay_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_property(TARGET hearsay_${name} PROPERTY HEARSAY_HEADERS ${headers})
  target_link_libraries(hearsay_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  hearsay_compile_options(hearsay_${name})
  if("${ARG_PUBLIC}" MATCHES "hearsay::torch|hearsay_runtime")
    hearsay_precompile_torch(hearsay_${name})
    if(ARG_TOGETHER)
      set_target_properties(hearsay_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
    endif()
  elseif(NOT "${ARG_SOURCES}" MATCHES "\\.cu")
    hearsay_precompile(hearsay_${name})
    if(NOT ARG_APART)
      hearsay_compile_in_batches(hearsay_${name})
    endif()
  endif()
endfunction()

# Locals may then have the name of another file's constant: only those that hide another local are warned of.
set(HEARSAY_BATCH_OPTIONS)
if(HEARSAY_BATCH GREATER 1)
  set(HEARSAY_BATCH_OPTIONS -Wno-shadow -Wshadow=local)
endif()

# hearsay_compile_in_batches(TARGET [SIZE]): of HEARSAY_BATCH files, or of SIZE where each takes long.
function(hearsay_compile_in_batches target)
  if(HEARSAY_BATCH GREATER 1)
    set(size ${HEARSAY_BATCH} ${ARGN})
    list(GET size -1 size)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${HEARSAY_BATCH_OPTIONS}>")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  endif()
endfunction()

# The warnings, optimisation and sanitizers that all our targets are built with.
function(hearsay_compile_options target)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instead of CMake's -O3, at which GCC 12 warns of overflows in the standard library that are not there. Loops are
    # vectorised as at -O3.
    target_compile_options(${target} PRIVATE
                           "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O2;-fvect-cost-model=dynamic>")
  endif()
  if(HEARSAY_WERROR)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  if(HEARSAY_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${HEARSAY_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${HEARSAY_SANITIZE})
  endif()
endfunction()

# The headers that most of our files include and whose reading takes most of the time that such a file takes to compile:
# 2.6 s without them, 1.0 s with them. Files include what they use all the same, which
# tests/contract/standard_headers_test.py looks at. GCC 12 warns of overflows in precompiled standard headers that are
# not there, so these warnings are off.
set(HEARSAY_COMMON_HEADERS
    <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <filesystem> <fstream>
    <functional> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view> <thread>
    <unordered_map> <variant> <vector> <boost/graph/adjacency_list.hpp>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(HEARSAY_COMMON_OPTIONS -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()
set(HEARSAY_COMMON_DEFINITIONS _GLIBCXX_USE_CXX11_ABI=1)  # the default, but older LibTorchs' targets ask for it

# hearsay_add_precompiled(NAME HEADERS … [LIBRARIES …]): a library that is there for its precompiled header.
function(hearsay_add_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBRARIES" ${ARGN})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${name}.cpp CONTENT "// only for its header\n")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_include_directories(${name} SYSTEM PRIVATE ${Boost_INCLUDE_DIRS})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  hearsay_compile_options(${name})
endfunction()

# hearsay_precompile(TARGET): compiles the target's sources with the common headers precompiled.
function(hearsay_precompile target)
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
    return()
  endif()
  if(NOT TARGET hearsay_common)
    hearsay_add_precompiled(hearsay_common HEADERS ${HEARSAY_COMMON_HEADERS})
    target_compile_definitions(hearsay_common PRIVATE ${HEARSAY_COMMON_DEFINITIONS})
  endif()
  hearsay_match_precompiled(${target})
  target_compile_definitions(${target} PRIVATE ${HEARSAY_COMMON_DEFINITIONS})
  target_compile_options(${target} PRIVATE ${HEARSAY_COMMON_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM hearsay_common)
endfunction()

# hearsay_precompile_torch(TARGET): compiles those of the target's sources that include LibTorch with the one
# precompiled <torch/torch.h>, 13 s a file instead of 27 s, and the others as hearsay_precompile does.
function(hearsay_precompile_torch target)
  if(NOT TARGET hearsay_precompiled)
    hearsay_add_precompiled(hearsay_precompiled HEADERS <torch/torch.h> LIBRARIES hearsay::torch)
  endif()
  hearsay_match_precompiled(${target})
  target_precompile_headers(${target} REUSE_FROM hearsay_precompiled)
  hearsay_find_torch_headers(torch_headers)
  get_target_property(sources ${target} SOURCES)
  set(with_torch "")
  set(without_torch "")
  foreach(source IN LISTS sources)
    file(STRINGS ${source} torch REGEX "${torch_headers}")
    if(torch)
      list(APPEND with_torch ${source})
    else()
      list(APPEND without_torch ${source})
    endif()
  endforeach()
  hearsay_batch_sources(without_torch ${target})
  set_property(TARGET ${target} PROPERTY SOURCES ${with_torch} ${without_torch})
  if(TARGET hearsay_common AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND without_torch)
    get_target_property(folder hearsay_common BINARY_DIR)
    set(common ${folder}/CMakeFiles/hearsay_common.dir/cmake_pch.hxx)
    set(options ${HEARSAY_COMMON_OPTIONS} ${HEARSAY_BATCH_OPTIONS} -Winvalid-pch -include ${common})
    set_source_files_properties(${without_torch} PROPERTIES OBJECT_DEPENDS ${common}.gch
                                COMPILE_DEFINITIONS "${HEARSAY_COMMON_DEFINITIONS}" COMPILE_OPTIONS "${options}")
  endif()
  set_source_files_properties(${without_torch} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# In the variable `result`, what matches the lines that include LibTorch, by its own headers or by headers of ours.
function(hearsay_find_torch_headers result)
  get_property(pattern GLOBAL PROPERTY HEARSAY_TORCH_HEADERS)
  if(NOT pattern)
    file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/runtime/training/*.hpp
         ${PROJECT_SOURCE_DIR}/hearsay/*.hpp ${PROJECT_SOURCE_DIR}/apps/*.hpp
         ${PROJECT_SOURCE_DIR}/tests/runtime/training/*.hpp)
    set(pattern "#include <torch/[^v]")
    set(found "first")
    while(found)
      set(found "")
      foreach(header IN LISTS headers)
        file(STRINGS ${PROJECT_SOURCE_DIR}/${header} torch REGEX "${pattern}")
        if(torch)
          list(APPEND found ${header})
        endif()
      endforeach()
      list(REMOVE_ITEM headers ${found})
      foreach(header IN LISTS found)
        string(APPEND pattern "|#include \"${header}\"")
      endforeach()
    endwhile()
    set_property(GLOBAL PROPERTY HEARSAY_TORCH_HEADERS "${pattern}")
  endif()
  set(${result} "${pattern}" PARENT_SCOPE)
endfunction()

# Where files are compiled in batches, replaces those of the variable `sources` by files that include them.
function(hearsay_batch_sources sources target)
  if(NOT HEARSAY_BATCH GREATER 1)
    return()
  endif()
  set(batches "")
  set(left)
  foreach(source IN LISTS ${sources})
    get_filename_component(source ${source} ABSOLUTE)
    list(APPEND left ${source})
  endforeach()
  while(left)
    list(SUBLIST left 0 ${HEARSAY_BATCH} batch)
    list(REMOVE_ITEM left ${batch})
    list(LENGTH batches number)
    list(TRANSFORM batch REPLACE "(.+)" "#include \"\\1\"\n")
    string(CONCAT text ${batch})
    set(file ${PROJECT_BINARY_DIR}/generated/batches/${target}_${number}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND batches ${file})
  endwhile()
  set(${sources} "${batches}" PARENT_SCOPE)
endfunction()

# A precompiled header fits only the flags that it was made with.
function(hearsay_match_precompiled target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()
