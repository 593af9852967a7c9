# TensorBoard's event files need Protobuf. HEARSAY_EVENTS_SOURCES: the folder of runtime/report/events that goes with
# what is installed. Without Protobuf `report.tensorboard` is refused when a configuration is read; all else works.
if(TORCH_INSTALL_PREFIX AND NOT TORCH_INSTALL_PREFIX STREQUAL "/usr")
  set(CMAKE_IGNORE_PREFIX_PATH ${TORCH_INSTALL_PREFIX})  # PyTorch has headers and a compiler of other versions with it
endif()
find_package(Protobuf QUIET)
unset(CMAKE_IGNORE_PREFIX_PATH)
if(TARGET protobuf::libprotobuf-lite AND TARGET protobuf::protoc)
  set(HEARSAY_EVENTS_SOURCES protobuf)
else()
  set(HEARSAY_EVENTS_SOURCES none)
  message(STATUS "Protobuf was not found (Debian: libprotobuf-dev protobuf-compiler): no TensorBoard event files")
endif()

set(event_sources ${PROJECT_BINARY_DIR}/generated/events)

# hearsay_link_events(TARGET): compiles event.proto into the target.
function(hearsay_link_events target)
  if(HEARSAY_EVENTS_SOURCES STREQUAL "none")
    return()
  endif()
  set(proto ${PROJECT_SOURCE_DIR}/runtime/report/events/event.proto)
  file(MAKE_DIRECTORY ${event_sources})
  add_custom_command(OUTPUT ${event_sources}/event.pb.cc ${event_sources}/event.pb.h
                     COMMAND protobuf::protoc --proto_path ${PROJECT_SOURCE_DIR}/runtime/report/events
                             --cpp_out ${event_sources} ${proto}
                     DEPENDS ${proto} VERBATIM)
  target_sources(${target} PRIVATE ${event_sources}/event.pb.cc ${event_sources}/event.pb.h)
  set_source_files_properties(${event_sources}/event.pb.cc PROPERTIES COMPILE_OPTIONS -w)  # not ours to mend
  target_include_directories(${target} SYSTEM PRIVATE ${event_sources})
  target_link_libraries(${target} PRIVATE protobuf::libprotobuf-lite)
endfunction()

# hearsay_read_events(TARGET): the target includes <event.pb.h> where HEARSAY_EVENTS is defined.
function(hearsay_read_events target)
  if(HEARSAY_EVENTS_SOURCES STREQUAL "protobuf")
    target_include_directories(${target} SYSTEM PRIVATE ${event_sources})
    target_compile_definitions(${target} PRIVATE HEARSAY_EVENTS)
    target_link_libraries(${target} PRIVATE protobuf::libprotobuf-lite)
  endif()
endfunction()
