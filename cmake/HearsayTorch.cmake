# LibTorch as the target hearsay::torch. Used by Hearsay's own build and, installed, by hearsayConfig.cmake.
# Debian's libtorch-dev is found by itself; for another LibTorch set CMAKE_PREFIX_PATH to its folder (and, for a CUDA
# build of it, CMAKE_CUDA_COMPILER). Its headers are system headers: they do not pass our warnings.
if(NOT DEFINED TORCH_CUDA_ARCH_LIST AND NOT DEFINED ENV{TORCH_CUDA_ARCH_LIST})
  set(TORCH_CUDA_ARCH_LIST 9.0)  # for flags that we do not use; without it LibTorch looks for the GPUs of this machine
endif()
find_package(Torch REQUIRED)
if(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
  message(FATAL_ERROR "The LibTorch in ${Torch_DIR} is built for the C++ ABI from before 2011, which yaml-cpp and all "
                      "other libraries here are not. Use the download that has 'cxx11-abi' in its name.")
endif()
if(NOT TARGET hearsay::torch)
  add_library(hearsay::torch INTERFACE IMPORTED)
  if(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
    set_target_properties(hearsay::torch PROPERTIES IMPORTED_GLOBAL ON)
  endif()
  target_link_libraries(hearsay::torch INTERFACE ${TORCH_LIBRARIES})
  target_include_directories(hearsay::torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
endif()
