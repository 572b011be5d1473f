# The stand-ins of the math libraries: the parts that need a compiler. The rest is written by
# platform/simdriver/libraries/make_libraries.py for the program that is run.

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
  target_link_libraries(strata_sim_nccl PRIVATE strata_platform_api ${CMAKE_DL_LIBS})
  strata_sim_helper(strata_sim_kernel strata_sim_kernel "strataSimNoteKernel" ${folder}/kernel.cc)
  target_link_libraries(strata_sim_kernel PRIVATE ${CMAKE_DL_LIBS})
  strata_sim_helper(strata_sim_cudnn strata_sim_cudnn "cudnn*" ${folder}/cudnn.cc)
  strata_sim_helper(strata_sim_nvml strata_sim_nvml "nvml*" ${folder}/nvml.cc
                    ${folder}/../driver_options.cc)
  target_link_libraries(strata_sim_nvml PRIVATE strata_platform_api strata_sim_parts ${CMAKE_DL_LIBS})

  # All that runs a program without a GPU.
  add_custom_target(strata_sim)
  foreach(part IN ITEMS driver runtime audit nccl kernel cudnn nvml)
    if(TARGET strata_sim_${part})
      add_dependencies(strata_sim strata_sim_${part})
    endif()
  endforeach()
endfunction()
