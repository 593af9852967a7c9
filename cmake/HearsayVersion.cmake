# hearsay_version.hpp: the version, and the revision that git knows at build time (not at configuration time).
set(version_command ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
    -DOUTPUT=${PROJECT_BINARY_DIR}/generated/hearsay_version.hpp -P ${CMAKE_CURRENT_LIST_DIR}/write_version.cmake)
execute_process(COMMAND ${version_command} COMMAND_ERROR_IS_FATAL ANY)
add_custom_target(hearsay_version COMMAND ${version_command} BYPRODUCTS
    ${PROJECT_BINARY_DIR}/generated/hearsay_version.hpp
                  COMMENT "Asking git for the revision" VERBATIM)
