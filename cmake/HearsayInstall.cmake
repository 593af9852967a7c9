# cmake --install: libraries, headers below include/hearsay/, the program, the Python package (python/CMakeLists.txt),
# and what find_package(hearsay) reads. Components: program, dev, python.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hearsay)

set(libraries hearsay_base hearsay_topology hearsay_trigger hearsay_sparsify hearsay_core hearsay_cuda hearsay_datasets)
if(HEARSAY_TORCH)
  list(APPEND libraries hearsay_runtime)
endif()
install(TARGETS ${libraries} EXPORT hearsayTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
# Installed headers include each other as "hearsay/runtime/…": a user's include path gets no folder `runtime` of ours.
file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/hearsay/*.hpp)
foreach(library IN LISTS libraries)
  get_target_property(beside ${library} HEARSAY_HEADERS)
  if(beside)
    list(APPEND headers ${beside})
  endif()
endforeach()
install(CODE "set(sources \"${PROJECT_SOURCE_DIR}\")
set(headers \"${headers}\")
set(include_dir \"${CMAKE_INSTALL_INCLUDEDIR}\")" COMPONENT dev)
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake COMPONENT dev)
install(EXPORT hearsayTargets NAMESPACE hearsay:: DESTINATION ${package_dir} COMPONENT dev)
if(TARGET hearsay)
  install(TARGETS hearsay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()

configure_package_config_file(cmake/hearsayConfig.cmake.in ${PROJECT_BINARY_DIR}/hearsayConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hearsayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hearsayConfig.cmake ${PROJECT_BINARY_DIR}/hearsayConfigVersion.cmake
              cmake/HearsayTorch.cmake
        DESTINATION ${package_dir} COMPONENT dev)
if(PROJECT_IS_TOP_LEVEL)
  include(HearsayPackages)
endif()
