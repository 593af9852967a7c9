# hearsay_add_library(NAME SOURCES <globs> [PUBLIC <libraries>] [PRIVATE <libraries>]): the static library hearsay_NAME
# (alias hearsay::NAME) of one folder, with the headers beside its sources. Globs are re-checked at every build, so a
# new algorithm file needs no CMake edit.
function(hearsay_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
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

# hearsay_precompile_torch(TARGET): compiles those of the target's sources that include LibTorch with the one precompiled
# <torch/torch.h>: 13 s a file instead of 27 s. The other sources would only lose by it.
function(hearsay_precompile_torch target)
  if(NOT TARGET hearsay_precompiled)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/precompiled.cpp CONTENT "// only for its header\n")
    add_library(hearsay_precompiled OBJECT ${PROJECT_BINARY_DIR}/generated/precompiled.cpp)
    set_target_properties(hearsay_precompiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_features(hearsay_precompiled PRIVATE cxx_std_20)
    target_link_libraries(hearsay_precompiled PRIVATE hearsay::torch)
    target_precompile_headers(hearsay_precompiled PRIVATE <torch/torch.h>)
    hearsay_compile_options(hearsay_precompiled)
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    target_compile_options(${target} PRIVATE -fPIC)  # a precompiled header fits only the flags that it was made with
  endif()
  target_precompile_headers(${target} REUSE_FROM hearsay_precompiled)
  set(includes_torch "#include [<\"](torch/[^v]|tests/runtime/training/|(hearsay/hearsay|runtime/training/(model/(model|batches|evaluator)|set_up))\\.hpp)")
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} torch REGEX "${includes_torch}")
    if(NOT torch)
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()
