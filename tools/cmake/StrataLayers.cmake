# The layers, the tables they are built from, and their libraries.

set(STRATA_INCLUDE_ROOT ${PROJECT_BINARY_DIR}/include)

# strata_include_root(<folder>): links <build>/include/<folder>/strata/<folder> to
# the source folder, so that the include path can contain the headers of one
# folder without those of its neighbours.
function(strata_include_root folder)
  set(parent ${STRATA_INCLUDE_ROOT}/${folder}/strata)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${parent}/${folder} SYMBOLIC)
endfunction()

# strata_header_layer(<name> [DEPENDS <layer>...] [LIBRARIES <target>...]):
# defines strata_<name>_api, the usage requirements of the layer's headers.
function(strata_header_layer name)
  cmake_parse_arguments(arg "" "" "DEPENDS;LIBRARIES" ${ARGN})
  strata_include_root(${name})
  add_library(strata_${name}_api INTERFACE)
  target_include_directories(strata_${name}_api INTERFACE ${STRATA_INCLUDE_ROOT}/${name})
  list(TRANSFORM arg_DEPENDS REPLACE "(.+)" "strata_\\1_api" OUTPUT_VARIABLE below)
  target_link_libraries(strata_${name}_api INTERFACE ${below} ${arg_LIBRARIES})
endfunction()

# strata_layer(<name> [DEPENDS <layer>...] [SOURCES <file>...]
#              [LIBRARIES <target>...] [EXCLUDE <file>...] [SUBFOLDERS])
#
# Defines strata_<name>_api, the usage requirements of the layer's headers, and
# strata_<name>, its objects. The sources are the folder's *.cc, with SUBFOLDERS
# also those of its subfolders, without EXCLUDE (relative to the folder), and
# SOURCES.
function(strata_layer name)
  cmake_parse_arguments(arg SUBFOLDERS "" "DEPENDS;SOURCES;LIBRARIES;EXCLUDE" ${ARGN})
  strata_header_layer(${name} DEPENDS ${arg_DEPENDS} LIBRARIES ${arg_LIBRARIES})

  set(folder ${PROJECT_SOURCE_DIR}/${name})
  set(glob GLOB)
  if(arg_SUBFOLDERS)
    set(glob GLOB_RECURSE)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS ${folder}/*.cc)
  list(TRANSFORM arg_EXCLUDE PREPEND ${folder}/)
  list(REMOVE_ITEM sources ${arg_EXCLUDE})
  list(APPEND sources ${arg_SOURCES})
  add_library(strata_${name} OBJECT ${sources})
  target_link_libraries(strata_${name} PUBLIC strata_${name}_api)
  # Otherwise file by file, so that the build time of a file does not depend on its neighbours.
  set_target_properties(strata_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
                                                  UNITY_BUILD "${STRATA_UNITY_LAYERS}")
  strata_target_defaults(strata_${name})
  if(STRATA_UNITY_LAYERS)
    # Names of one file must not affect another.
    target_compile_options(strata_${name} PRIVATE -Wno-shadow)
  endif()
  strata_precompile(strata_${name})
  if(STRATA_FUZZ)
    # Counts the code that an input reaches; not needed in tests.
    target_compile_options(strata_${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# strata_hit_sources(<source>...): sources whose functions a hit runs. GCC reaches
# their thread-local memory by descriptors, which need no call in a program and
# which preserve the registers. On x86 the C library before 2.40 may overwrite
# vector registers, so the code uses none.
function(strata_hit_sources)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    return()
  endif()
  set_source_files_properties(
    ${ARGN} PROPERTIES COMPILE_OPTIONS
                       "$<$<CONFIG:Release>:-mtls-dialect=gnu2;-mgeneral-regs-only>"
                       SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# strata_read_table(<variable> <file> <macro>...): the first argument of every
# line `macro(argument, ...)` of a table, and of the tables that it includes. A
# change of a table triggers a new configuration.
function(strata_read_table variable file)
  set(names)
  set(tables ${PROJECT_SOURCE_DIR}/${file})
  file(STRINGS ${tables} includes REGEX "^#include \"strata/.*\\.def\"")
  list(TRANSFORM includes REPLACE "^#include \"strata/(.*)\"$" "${PROJECT_SOURCE_DIR}/\\1")
  list(APPEND tables ${includes})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tables})
  list(JOIN ARGN "|" macros)
  foreach(table IN LISTS tables)
    file(STRINGS ${table} lines REGEX "^(${macros})\\(")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^[A-Z_]+\\( *([a-z0-9_]+).*" "\\1" line "${line}")
      list(APPEND names ${line})
    endforeach()
  endforeach()
  set(${variable} ${names} PARENT_SCOPE)
endfunction()

# strata_platforms(<variable> <table>): the names in the table with an enabled
# build option STRATA_PLATFORM_<NAME>, or without such an option. The folders of
# other platforms are not built. The lines of the enabled ones are written to
# <build>/generated/strata/platform/built_devices.def.
function(strata_platforms variable table)
  strata_read_table(names ${table} STRATA_PLATFORM)
  file(STRINGS ${PROJECT_SOURCE_DIR}/${table} lines REGEX "^STRATA_PLATFORM\\(")
  set(built)
  set(text "// The lines of ${table} that this build keeps.\n")
  foreach(name line IN ZIP_LISTS names lines)
    string(TOUPPER STRATA_PLATFORM_${name} option)
    if(DEFINED ${option} AND NOT ${option})
      continue()
    endif()
    list(APPEND built ${name})
    string(APPEND text "${line}\n")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/strata/platform/built_devices.def
       CONTENT "${text}" @ONLY)
  set(${variable} ${built} PARENT_SCOPE)
endfunction()

# strata_platform_sources(<variable> <folder>...): the sources of these folders
# of platform/ and of their subfolders.
function(strata_platform_sources variable)
  set(sources)
  foreach(name IN LISTS ARGN)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/platform/${name}/*.cc)
    if(NOT found)
      message(FATAL_ERROR "platform/${name}/ has no *.cc")
    endif()
    list(APPEND sources ${found})
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# strata_check_table(<table> <folder> <macro>...): checks that every name in the
# table has its <name>_allocator.cc in the folder or in a subfolder. So a missing
# file is reported here and not as an undefined symbol by the linker.
function(strata_check_table table folder)
  strata_read_table(names ${table} ${ARGN})
  file(GLOB_RECURSE sources RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  foreach(name IN LISTS names)
    if(NOT "${sources}" MATCHES "/${name}_allocator\\.cc(;|$)")
      message(FATAL_ERROR "${table} names ${name}, but ${folder}/ has no ${name}_allocator.cc")
    endif()
  endforeach()
endfunction()

# strata_library(<layer>...): strata_static, strata_shared, strata::facade.
function(strata_library)
  set(layers ${ARGN})
  list(TRANSFORM layers REPLACE "(.+)" "$<TARGET_OBJECTS:strata_\\1>" OUTPUT_VARIABLE objects)
  set(roots ${layers})
  list(TRANSFORM roots REPLACE "(.+)" "$<BUILD_INTERFACE:${STRATA_INCLUDE_ROOT}/\\1>")
  foreach(kind static shared)
    string(TOUPPER ${kind} type)
    add_library(strata_${kind} ${type} ${objects})
    add_library(strata::${kind} ALIAS strata_${kind})
    set_target_properties(strata_${kind} PROPERTIES OUTPUT_NAME strata EXPORT_NAME ${kind})
    target_compile_features(strata_${kind} PUBLIC cxx_std_20)
    target_include_directories(strata_${kind} PUBLIC ${roots} $<INSTALL_INTERFACE:include>)
    target_link_libraries(strata_${kind} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
  endforeach()
  target_link_libraries(strata_static PUBLIC glog::glog)
  # A project with the shared library needs no CMake package of glog.
  target_link_libraries(strata_shared PRIVATE $<BUILD_INTERFACE:glog::glog>)
  set_target_properties(
    strata_static strata_shared PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                                           SOVERSION ${PROJECT_VERSION_MAJOR})
  if(CMAKE_SYSTEM_NAME STREQUAL Linux)
    set(map ${PROJECT_SOURCE_DIR}/tools/cmake/strata_shared.map)
    target_link_options(strata_shared PRIVATE -Wl,--version-script=${map})
    set_target_properties(strata_shared PROPERTIES LINK_DEPENDS ${map})
  endif()
  if(BUILD_SHARED_LIBS)
    add_library(strata::facade ALIAS strata_shared)
  else()
    add_library(strata::facade ALIAS strata_static)
  endif()
endfunction()

# strata_flags_library(<source>...): strata::flags. After installation,
# StrataConfig.cmake defines strata::facade, as the requested kind of library.
function(strata_flags_library)
  add_library(strata_flags STATIC ${ARGN})
  add_library(strata::flags ALIAS strata_flags)
  set_target_properties(strata_flags PROPERTIES EXPORT_NAME flags POSITION_INDEPENDENT_CODE ON
                                                UNITY_BUILD "${STRATA_UNITY_LAYERS}")
  target_link_libraries(strata_flags PUBLIC gflags $<BUILD_INTERFACE:strata_facade_api>)
  target_compile_features(strata_flags PUBLIC cxx_std_20)
  strata_target_defaults(strata_flags)
endfunction()

# strata_command_line(<source>): the `strata` executable.
function(strata_command_line source)
  add_executable(strata_tool ${source})
  set_target_properties(strata_tool PROPERTIES OUTPUT_NAME strata)
  target_link_libraries(strata_tool PRIVATE strata_flags strata_tools strata::facade)
  strata_target_defaults(strata_tool)
endfunction()

# strata_examples(<folder>): one program per source file, and one per subfolder.
function(strata_examples folder)
  strata_include_root(${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc
       ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    strata_example(example_${name} ${source})
  endforeach()
  file(GLOB mains CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*/main.cc)
  foreach(main IN LISTS mains)
    cmake_path(GET main PARENT_PATH path)
    cmake_path(GET path FILENAME name)
    file(GLOB sources CONFIGURE_DEPENDS ${path}/*.cc)
    file(GLOB kernels CONFIGURE_DEPENDS ${path}/*.cu)
    if(STRATA_PLATFORM_CUDA)
      # <kernels>_absent.cc is for builds without <kernels>.cu.
      list(TRANSFORM kernels REPLACE "\\.cu$" "_absent.cc" OUTPUT_VARIABLE absent)
      list(REMOVE_ITEM sources ${absent})
      strata_example(example_${name} ${sources})
      strata_cuda_sources(example_${name} ${STRATA_INCLUDE_ROOT}/${folder} ${kernels})
    else()
      strata_example(example_${name} ${sources})
    endif()
  endforeach()
endfunction()

# strata_example(<target> <source>...): a program with a test that runs it.
function(strata_example target)
  add_executable(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  if("${ARGN}" MATCHES "\\.c$")
    target_link_libraries(${target} PRIVATE strata::shared)
  else()
    target_link_libraries(${target} PRIVATE strata::flags strata::facade)
    target_include_directories(${target} PRIVATE ${STRATA_INCLUDE_ROOT}/examples)
  endif()
  strata_target_defaults(${target})
  set_property(GLOBAL APPEND PROPERTY STRATA_EXAMPLES ${target})
endfunction()
