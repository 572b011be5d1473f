# Install rules: the libraries, the headers under the paths they have in the
# tree, the command line, the CMake package and the pkg-config files.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

foreach(layer base platform allocation strategy facade tensor bindings)
  install(
    DIRECTORY ${layer}/
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/strata/${layer}
    FILES_MATCHING
    PATTERN "*.h"
    PATTERN "*.def"
    # Its headers need CUDA headers; users access it through the registry.
    PATTERN "cuda" EXCLUDE
    PATTERN "simdriver" EXCLUDE)
endforeach()

# The contract suite as sources: the project that tests a strategy compiles them
# with its own GoogleTest.
set(STRATA_CONTRACT_TESTS_FOLDER ${CMAKE_INSTALL_DATADIR}/strata/contract_tests)
foreach(source contract/contract_cases.h contract/contract_fixture.h contract/contract_test.cc
               contract/contract_threads_test.cc testing/layers/live_ranges.h
               testing/layers/pool_place.cc testing/layers/pool_place.h
               testing/layers/test_place.cc testing/layers/test_place.h)
  cmake_path(GET source PARENT_PATH folder)
  install(FILES tests/${source}
          DESTINATION ${STRATA_CONTRACT_TESTS_FOLDER}/strata/tests/${folder})
endforeach()

# <strata.h> for C programs: the C ABI without a folder, and at its earlier path.
configure_file(tools/cmake/strata.h.in ${PROJECT_BINARY_DIR}/package/strata.h @ONLY)
foreach(folder . strata/facade)
  install(FILES ${PROJECT_BINARY_DIR}/package/strata.h
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

install(TARGETS strata_static strata_shared strata_flags EXPORT StrataTargets)
if(TARGET strata_tool)
  install(TARGETS strata_tool)
endif()
if(TARGET strata_sim_driver)
  # In no library path: a program names the folder in LD_LIBRARY_PATH.
  install(TARGETS strata_sim_driver LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/strata/sim
                                            NAMELINK_SKIP)
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Strata)
install(EXPORT StrataTargets NAMESPACE strata:: DESTINATION ${package_folder})
configure_package_config_file(
  tools/cmake/StrataConfig.cmake.in ${PROJECT_BINARY_DIR}/package/StrataConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS STRATA_CONTRACT_TESTS_FOLDER)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/package/StrataConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/StrataConfig.cmake
              ${PROJECT_BINARY_DIR}/package/StrataConfigVersion.cmake
        DESTINATION ${package_folder})

# Paths relative to the .pc file, so that an installed tree can be moved.
file(RELATIVE_PATH STRATA_PC_PREFIX
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(name strata strata-flags)
  configure_file(tools/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/package/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package/${name}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
