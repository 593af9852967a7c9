# Run by cmake --install: copies `headers`, which lie below `sources`, to include/hearsay/, and has them include each
# other by the names that they have there.
foreach(header IN LISTS headers)
  file(RELATIVE_PATH name ${sources} ${header})
  string(REGEX REPLACE "^hearsay/" "" name ${name})  # the faces: <hearsay/hearsay.hpp>
  file(READ ${header} text)
  string(REGEX REPLACE "#include \"(base|topology|trigger|sparsify|runtime|apps)/" "#include \"hearsay/\\1/"
         text "${text}")
  set(installed "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${include_dir}/hearsay/${name}")
  file(WRITE ${installed} "${text}")
  message(STATUS "Installing: ${installed}")
endforeach()
