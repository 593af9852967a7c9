# cpack -G DEB: the Debian packages hearsay (the program), libhearsay-dev and python3-hearsay, of what was built.
# Libraries that they need are found by dpkg-shlibdeps (Debian: dpkg-dev). Configure with CMAKE_INSTALL_PREFIX=/usr, so
# that Debian's Python finds the package; scripts/check-packages builds and tries them.
set(CPACK_PACKAGE_NAME hearsay)
set(CPACK_PACKAGE_CONTACT "Hearsay's developers <hearsay@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)

set(CPACK_COMPONENTS_ALL dev)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libhearsay-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)  # static libraries only
string(JOIN ", " CPACK_DEBIAN_DEV_PACKAGE_DEPENDS libopenmpi-dev libboost-dev libeigen3-dev libyaml-cpp-dev
       nlohmann-json3-dev zlib1g-dev liblzma-dev libxxhash-dev libprotobuf-dev libpng-dev libturbojpeg0-dev libssl-dev)
if(HEARSAY_TORCH)
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libtorch-dev")
endif()
if(TARGET hearsay)
  list(APPEND CPACK_COMPONENTS_ALL program)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME hearsay)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS openmpi-bin)
endif()
if(TARGET hearsay_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-hearsay)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  math(EXPR next "${Python_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
      "python3 (>= 3.${Python_VERSION_MINOR}), python3 (<< 3.${next}), python3-numpy, openmpi-bin")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS
      "python3-torch, python3-mpi4py, python3-pandas, python3-matplotlib, python3-yaml")
endif()
include(CPack)
