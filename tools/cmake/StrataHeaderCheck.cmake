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
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${target} PRIVATE strata_${layer}_api)
  strata_target_defaults(${target})
  target_compile_options(${target} PRIVATE -O0 -g0)
  add_dependencies(strata_header_check ${target})
endfunction()

# The headers of a platform that is not built may need missing libraries.
strata_header_check(platform platform GLOB)
foreach(platform IN LISTS STRATA_PLATFORMS)
  strata_header_check(platform platform/${platform} GLOB)
endforeach()
if(STRATA_PLATFORM_CUDA)
  target_link_libraries(strata_platform_cuda_header_check PRIVATE CUDA::toolkit)
  strata_header_check(platform platform/simdriver GLOB)
  target_link_libraries(strata_platform_simdriver_header_check PRIVATE CUDA::toolkit)
  target_compile_definitions(strata_platform_simdriver_header_check
                             PRIVATE __CUDA_API_VERSION_INTERNAL)
endif()
foreach(layer allocation strategy facade tensor tools)
  if(TARGET strata_${layer}_api)
    strata_header_check(${layer} ${layer} GLOB_RECURSE)
  endif()
endforeach()
