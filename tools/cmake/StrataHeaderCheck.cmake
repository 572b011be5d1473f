# The target strata_header_check compiles every public header alone, each with
# the include path of its own layer, and the C ABI's as C. It is not part of
# `all`.

add_custom_target(strata_header_check)

# strata_header_check(<layer> <folder> <GLOB|GLOB_RECURSE>): one source per header.
function(strata_header_check layer folder glob)
  string(MAKE_C_IDENTIFIER strata_${folder}_header_check target)
  file(${glob} headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  set(units)
  foreach(header IN LISTS headers)
    string(MAKE_C_IDENTIFIER ${header} unit)
    set(languages cc)
    if(header STREQUAL facade/strata.h)
      list(APPEND languages c)
    endif()
    foreach(language IN LISTS languages)
      set(path ${PROJECT_BINARY_DIR}/header_check/${unit}.${language})
      file(CONFIGURE OUTPUT ${path} CONTENT "#include \"strata/${header}\"\n")
      list(APPEND units ${path})
    endforeach()
  endforeach()
  if(NOT units)
    return()
  endif()
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${units})
  target_link_libraries(${target} PRIVATE strata_${layer}_api)
  strata_target_defaults(${target})
  target_compile_options(${target} PRIVATE -O0 -g0)
  add_dependencies(strata_header_check ${target})
endfunction()

# A platform that is not in the table has no headers to check: they may need
# what this build does not have.
strata_header_check(platform platform GLOB)
strata_read_table(platforms platform/devices.def STRATA_PLATFORM)
foreach(platform IN LISTS platforms)
  strata_header_check(platform platform/${platform} GLOB)
endforeach()
foreach(layer allocation strategy facade tools)
  if(TARGET strata_${layer}_api)
    strata_header_check(${layer} ${layer} GLOB_RECURSE)
  endif()
endforeach()
