# The stand-in driver: libexec/strata/sim/libcuda.so.1, and the tables that it
# is built from. It needs the headers of the CUDA toolkit.

# strata_sim_read_rows(<variable> <table>): "<symbol>/<version>/<variant>" for
# each function in the table; <variable>_EXPORTS: the names that are exported.
function(strata_sim_read_rows variable table)
  set(rows)
  set(exports)
  file(READ ${table} text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "[ \n]+" "" text "${text}")
  string(REGEX MATCHALL "STRATA_SIM_(STREAM_)?ENTRY\\([^)]*\\)" entries "${text}")
  foreach(entry IN LISTS entries)
    string(REGEX REPLACE ".*\\((.*)\\)" "\\1" fields "${entry}")
    string(REPLACE "," ";" fields "${fields}")
    list(GET fields 0 symbol)
    list(GET fields 1 version)
    list(GET fields 2 exported)
    list(APPEND rows ${symbol}/${version}/kLegacy)
    list(APPEND exports ${exported})
    if(entry MATCHES "STREAM_ENTRY")
      list(GET fields 3 thread_version)
      list(GET fields 4 suffix)
      list(APPEND rows ${symbol}/${thread_version}/kPerThread)
      list(APPEND exports ${exported}_${suffix})
    endif()
  endforeach()
  set(${variable} ${rows} PARENT_SCOPE)
  set(${variable}_EXPORTS ${exports} PARENT_SCOPE)
endfunction()

# strata_sim_unimplemented(<table> <headers> <output>): the functions of the
# headers that the table lacks.
function(strata_sim_unimplemented table headers output)
  strata_sim_read_rows(rows ${table})
  file(READ ${headers}/cudaTypedefs.h text)
  string(REGEX MATCHALL "PFN_cu[A-Za-z0-9]+_v[0-9]+(_pts[dz])?\\)" types "${text}")
  set(missing)
  set(names)
  foreach(type IN LISTS types)
    string(REGEX REPLACE "PFN_([A-Za-z0-9]+)_v([0-9]+).*" "\\1" symbol "${type}")
    string(REGEX REPLACE "PFN_([A-Za-z0-9]+)_v([0-9]+).*" "\\2" version "${type}")
    set(variant kLegacy)
    if(type MATCHES "_pts[dz]\\)")
      set(variant kPerThread)
    endif()
    if(NOT ${symbol}/${version}/${variant} IN_LIST rows)
      list(APPEND missing "${symbol}, ${version}, ${variant}")
      list(APPEND names ${symbol})
    endif()
  endforeach()
  # Declared names, and those that macros stand for, also by suffix.
  file(READ ${headers}/cuda.h text)
  string(REGEX MATCHALL "CUDAAPI cu[A-Za-z0-9_]+\\(" declared "${text}")
  list(TRANSFORM declared REPLACE "CUDAAPI (.*)\\(" "\\1")
  string(REGEX MATCHALL "#define cu[A-Z][A-Za-z0-9]* +(__CUDA_API_PT(DS|SZ)\\()?cu[A-Za-z0-9_]+"
                        macros "${text}")
  foreach(macro IN LISTS macros)
    string(REGEX REPLACE ".*[ (](cu[A-Za-z0-9_]+)$" "\\1" exported "${macro}")
    list(APPEND declared ${exported})
    if(macro MATCHES "__CUDA_API_PTDS")
      list(APPEND declared ${exported}_ptds)
    elseif(macro MATCHES "__CUDA_API_PTSZ")
      list(APPEND declared ${exported}_ptsz)
    endif()
  endforeach()
  list(APPEND declared ${names})
  list(REMOVE_DUPLICATES declared)
  list(REMOVE_ITEM declared ${rows_EXPORTS} cuGetProcAddress_v2_ptsz)
  list(REMOVE_DUPLICATES missing)
  list(REMOVE_DUPLICATES names)
  set(content "// Made of cuda.h and cudaTypedefs.h by tools/cmake/StrataSimDriver.cmake.\n")
  set(macros STRATA_SIM_UNIMPLEMENTED_NAME STRATA_SIM_UNIMPLEMENTED STRATA_SIM_UNIMPLEMENTED_EXPORT)
  foreach(macro IN LISTS macros)
    string(APPEND content "#ifndef ${macro}\n#define ${macro}(...)\n#endif\n")
  endforeach()
  foreach(name IN LISTS names)
    string(APPEND content "STRATA_SIM_UNIMPLEMENTED_NAME(${name})\n")
  endforeach()
  foreach(row IN LISTS missing)
    string(APPEND content "STRATA_SIM_UNIMPLEMENTED(${row})\n")
  endforeach()
  foreach(name IN LISTS declared)
    string(APPEND content "STRATA_SIM_UNIMPLEMENTED_EXPORT(${name})\n")
  endforeach()
  foreach(macro IN LISTS macros)
    string(APPEND content "#undef ${macro}\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT "${content}" @ONLY)
endfunction()

# strata_sim_results(<headers> <output>): the results that the driver names.
function(strata_sim_results headers output)
  file(READ ${headers}/cuda.h text)
  string(REGEX MATCHALL "\n +CUDA_(SUCCESS|ERROR_[A-Z0-9_]+) +=" results "${text}")
  set(content "// Made of cuda.h by tools/cmake/StrataSimDriver.cmake.\n")
  foreach(result IN LISTS results)
    string(REGEX REPLACE "[ \n=]" "" result "${result}")
    string(APPEND content "STRATA_SIM_RESULT(${result})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT "${content}" @ONLY)
endfunction()

# strata_sim_driver(): the library.
function(strata_sim_driver)
  set(folder ${PROJECT_SOURCE_DIR}/platform/simdriver)
  set(generated ${PROJECT_BINARY_DIR}/generated/strata/platform/simdriver)
  list(GET CUDAToolkit_INCLUDE_DIRS 0 headers)
  strata_sim_unimplemented(${folder}/driver_entries.def ${headers} ${generated}/unimplemented.def)
  strata_sim_results(${headers} ${generated}/results.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/driver_entries.def)

  # The part of the platform that it needs comes from an archive: the program
  # may have the rest, which is another library to this one.
  add_library(strata_sim_parts STATIC $<TARGET_OBJECTS:strata_platform>)
  set_target_properties(strata_sim_parts PROPERTIES LINKER_LANGUAGE CXX)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc)
  add_library(strata_sim_driver SHARED ${sources})
  strata_target_defaults(strata_sim_driver)
  target_include_directories(strata_sim_driver PRIVATE ${PROJECT_BINARY_DIR}/generated)
  target_include_directories(strata_sim_driver SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  # For the types of older versions of functions.
  target_compile_definitions(strata_sim_driver PRIVATE __CUDA_API_VERSION_INTERNAL)
  target_link_libraries(strata_sim_driver PRIVATE strata_platform_api strata_sim_parts)
  target_link_options(
    strata_sim_driver PRIVATE -Wl,--version-script=${folder}/exports.map -Wl,--no-undefined
                              -Wl,--gc-sections)
  set_target_properties(
    strata_sim_driver
    PROPERTIES OUTPUT_NAME cuda SOVERSION 1 UNITY_BUILD OFF CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS ${folder}/exports.map
               LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/libexec/strata/sim)
endfunction()

# strata_sim_helper(<target> <file name> <exports> <source>...): a library beside the
# driver that has some functions of a stand-in library, or of the loader's audit.
function(strata_sim_helper target name exports)
  set(map ${PROJECT_BINARY_DIR}/generated/${target}.map)
  file(CONFIGURE OUTPUT ${map} CONTENT "{ global: ${exports}; local: *; };\n" @ONLY)
  add_library(${target} MODULE ${ARGN})
  strata_target_defaults(${target})
  target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,--no-undefined -Wl,--as-needed
                                        -Wl,--gc-sections)
  set_target_properties(
    ${target}
    PROPERTIES OUTPUT_NAME ${name} UNITY_BUILD OFF LINK_DEPENDS ${map}
               LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/libexec/strata/sim/helpers)
endfunction()

# strata_sim_libraries(): what the stand-ins of the math libraries need from a compiler.
function(strata_sim_libraries)
  set(folder ${PROJECT_SOURCE_DIR}/platform/simdriver/libraries)
  strata_sim_helper(strata_sim_audit strata_sim_audit "la_*" ${folder}/audit.cc)
  strata_sim_helper(strata_sim_nccl strata_sim_nccl "nccl*" ${folder}/nccl.cc)
  strata_sim_helper(strata_sim_cudnn strata_sim_cudnn "cudnn*" ${folder}/cudnn.cc)
  strata_sim_helper(strata_sim_nvml strata_sim_nvml "nvml*" ${folder}/nvml.cc
                    ${folder}/../driver_options.cc)
  target_link_libraries(strata_sim_nvml PRIVATE strata_platform_api strata_sim_parts ${CMAKE_DL_LIBS})
endfunction()
