# Compile options of every target of this project.

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

  # ccache's manual requires this sloppiness for precompiled headers.
  find_program(STRATA_CCACHE ccache)
  if(STRATA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER
        env CCACHE_SLOPPINESS=pch_defines,time_macros ${STRATA_CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()

  if(STRATA_SANITIZE)
    add_compile_options(-fsanitize=${STRATA_SANITIZE} -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${STRATA_SANITIZE})
  endif()

  if(STRATA_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "STRATA_FUZZ needs clang, for its libFuzzer")
  endif()
endif()

# strata_target_defaults(<target>): language level and warnings.
function(strata_target_defaults target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF C_STANDARD 11 C_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow
                                           $<$<BOOL:${STRATA_WERROR}>:-Werror>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Disables speculative devirtualization: the definition that a file sees of a
    # virtual function is mostly overridden, and the check costs every hit a comparison.
    target_compile_options(${target} PRIVATE
                           $<$<COMPILE_LANGUAGE:CXX>:-fno-devirtualize-speculatively>)
    # The C library never unloads a library with unique symbols.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Reports overlap inside std::string::operator+ (GCC bug 105651).
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
endfunction()

# strata_precompile(<target>): with STRATA_PRECOMPILE, compiles the standard headers
# of most files once. Builds without it detect missing includes.
function(strata_precompile target)
  if(NOT STRATA_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(
    ${target} PRIVATE <algorithm> <array> <atomic> <functional> <map> <memory> <mutex> <optional>
    <stdexcept> <string> <thread> <unordered_map> <utility> <vector>)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # A time stamp in the precompiled header would defeat ccache.
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
