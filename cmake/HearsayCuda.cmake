# HEARSAY_CUDA: the GPU's kernels, as the library hearsay_cuda. AUTO: where a CUDA toolkit is found; OFF: never, which
# is the default inside another project. A GPU is needed to run them, not to build them.
if(PROJECT_IS_TOP_LEVEL)
  set(HEARSAY_CUDA AUTO CACHE STRING "Build the CUDA kernels: AUTO (if there is a toolkit), ON or OFF")
else()
  set(HEARSAY_CUDA OFF CACHE STRING "Build the CUDA kernels: AUTO (if there is a toolkit), ON or OFF")
endif()
set_property(CACHE HEARSAY_CUDA PROPERTY STRINGS AUTO ON OFF)
# Not CMAKE_CUDA_ARCHITECTURES itself, which a CUDA build of LibTorch has set to something else by now.
set(HEARSAY_CUDA_ARCHITECTURES "80-real;90-real;90-virtual" CACHE STRING
    "GPUs to build for: A100; H100 and H200; the last for what comes after")

set(HEARSAY_HAS_CUDA OFF)
if(HEARSAY_CUDA STREQUAL "OFF" OR HEARSAY_SANITIZE OR HEARSAY_MPI STREQUAL "smpi")
  message(STATUS
      "CUDA kernels: not built (HEARSAY_CUDA is OFF, or this is a build with sanitizers or for the simulator)")
  return()
endif()
find_program(HEARSAY_NVCC nvcc PATHS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin)
if(HEARSAY_NVCC AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  set(ENV{CUDACXX} ${HEARSAY_NVCC})  # not CMAKE_CUDA_COMPILER: what is set there is not checked
endif()
set(CMAKE_CUDA_ARCHITECTURES ${HEARSAY_CUDA_ARCHITECTURES})
if(NOT CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(HEARSAY_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA kernels: not built, no working CUDA compiler was found")
    return()
  endif()
  message(FATAL_ERROR "HEARSAY_CUDA is ON, but no working CUDA compiler was found. Put nvcc on the PATH, set "
                      "CMAKE_CUDA_COMPILER to it, or set HEARSAY_CUDA to OFF.")
endif()
if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE_PROGRAM})
endif()
enable_language(CUDA)
# A CUDA build of LibTorch adds the architectures that it was built for. What the user set is cached and stays.
unset(CMAKE_CUDA_FLAGS)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
  if(HEARSAY_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA kernels: not built, nvcc ${CMAKE_CUDA_COMPILER_VERSION} has no C++20; CUDA 12 has")
    return()
  endif()
  message(FATAL_ERROR
      "nvcc ${CMAKE_CUDA_COMPILER_VERSION} has no C++20. Use CUDA 12 or later, or set HEARSAY_CUDA to OFF.")
endif()
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit REQUIRED)
set(HEARSAY_HAS_CUDA ON)
message(STATUS "CUDA kernels: built by nvcc ${CMAKE_CUDA_COMPILER_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}")

# The flags of all our CUDA sources. Nothing is fused into multiply-adds, so that results have the bits of the
# processor's; kernels wait for memory, not for arithmetic. --expt-relaxed-constexpr: constexpr functions, ours and the
# standard library's, run on the GPU too.
function(hearsay_cuda_options target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;--fmad=false;-Xcompiler=-Wall,-Wextra,-Wshadow>"
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${HEARSAY_WERROR}>>:-Werror=all-warnings>")
endfunction()
