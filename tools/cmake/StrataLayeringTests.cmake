# Proves that a folder cannot include the headers of the one above it, with the
# include path its own sources are compiled with.

function(strata_layering_test name layer folder)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR}/${folder}
       ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  # These need headers of others.
  list(FILTER headers EXCLUDE REGEX "^adapters/")
  list(GET headers 0 header)
  set(probe ${CMAKE_CURRENT_BINARY_DIR}/layering/${name}.cc)
  file(CONFIGURE OUTPUT ${probe} CONTENT "#include \"strata/${folder}/${header}\"\n")
  set(roots $<TARGET_PROPERTY:strata_${layer},INCLUDE_DIRECTORIES>)
  add_test(
    NAME layering.${name}
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only "-I$<JOIN:${roots},;-I>" ${probe}
    COMMAND_EXPAND_LISTS)
  set_tests_properties(layering.${name} PROPERTIES LABELS layering)
  if(ARGN)
    set_tests_properties(
      layering.${name} PROPERTIES PASS_REGULAR_EXPRESSION
                                  "strata/${folder}/${header}('|: No such) file")
  endif()
endfunction()

strata_layering_test(tensor_cannot_include_bindings tensor bindings FAILS)
strata_layering_test(bindings_cannot_include_tensor bindings tensor FAILS)

set(lower base)
foreach(upper ${layers})
  if(upper STREQUAL lower)
    continue()
  endif()
  if(upper STREQUAL bindings)
    # Beside tensor.
    set(lower facade)
  endif()
  strata_layering_test(${upper}_includes_${lower} ${upper} ${lower})
  strata_layering_test(${lower}_cannot_include_${upper} ${lower} ${upper} FAILS)
  set(lower ${upper})
endforeach()
