# Tests of the rules of the tree and of the scripts in tools/. tests/CMakeLists.txt includes this.

# Checks the rules of the tree, and the usage text of every script.
add_test(NAME lint.tree COMMAND ${PROJECT_SOURCE_DIR}/tools/lint)
file(CONFIGURE OUTPUT lint/facade/bad.h
     CONTENT "#ifndef BAD_H\n#define BAD_H\n#include \"../size.h\"\n// TODO: more\n#include <cuda.h>\n#include <glog/logging.h>\n#endif\n")
file(CONFIGURE OUTPUT lint/facade/leaf.h
     CONTENT "#ifndef STRATA_FACADE_LEAF_H_\n#define STRATA_FACADE_LEAF_H_\n#include <vector>\n#endif\n")
file(CONFIGURE OUTPUT lint/tests/facade/some_test.cc CONTENT "TEST(SomeTest,\n     IsThere) {}\n")
file(CONFIGURE OUTPUT lint/docs/known_faults.md
     CONTENT "<<<<<<< HEAD\n| `SomeTest.IsThere` |\n| `SomeTest.IsGone` |\n[a](known_faults.md) [b](gone.md#there)\n")
file(CONFIGURE OUTPUT lint/docs/references/some.md CONTENT "| R2 |\n| `§3.4` |\n| `§3.4-1` |\n| `§3.4-3` |\n")
file(CONFIGURE OUTPUT lint/facade/citing.cc
     CONTENT "// R2; some.md §3.4 rules 1 to\n// 3, R2, §3.5.\nTEST(SomeTest, RuleR9IsThere) {}\n")
file(CONFIGURE OUTPUT lint/facade/words.cc
     CONTENT "// What he does with what is his.\n// Nobody knows what.\nint x;  // Of what?\n")
file(CONFIGURE OUTPUT lint/tools/language_budget.json
     CONTENT "{\"subjects_since\": \"HEAD\", \"counts\": {\"facade comments he\": 2, \"facade comments what\": 3}}")
foreach(number RANGE 25)
  file(CONFIGURE OUTPUT lint/tensor/full/file${number}.cc CONTENT "int x${number};\n")
endforeach()
string(REPEAT "A line.\n" 61 page)
file(CONFIGURE OUTPUT lint/tensor/README.md CONTENT "${page}")
add_test(NAME lint.finds_faults COMMAND ${PROJECT_SOURCE_DIR}/tools/lint
                                        ${CMAKE_CURRENT_BINARY_DIR}/lint)
set_tests_properties(
  lint.finds_faults
  PROPERTIES PASS_REGULAR_EXPRESSION
             "bad.h:1: the include guard.*bad.h:3: an include.*bad.h:4: a TODO.*bad.h:5: headers of CUDA.*bad.h:6: glog is for.*leaf.h:1: a header without others.*.md:1: a merge left its marks[^\n]*\n[^\n]*.md:4: there is no file gone.md\n.*.md:3: there is no test SomeTest.IsGone.*citing.cc:1: docs/references/some.md has no row for §3.4-2.*citing.cc:1: [^\n]*§3.5.*citing.cc:3: no file of docs/references has a row for R9.*tensor/README.md: 61 lines.*tensor/full: 26 code files.*budget.json: facade comments what: 4, the budget is 3.*facade comments headless: 2, the budget is 0\n$")
foreach(script setup check demo soak lint hot_gate measure gpu_bundle gpu_check
               sim_run check_pytorch)
  add_test(NAME scripts.${script}_has_help COMMAND ${PROJECT_SOURCE_DIR}/tools/${script} --help)
  set_tests_properties(scripts.${script}_has_help PROPERTIES PASS_REGULAR_EXPRESSION
                                                            "usage: tools/${script}")
endforeach()

add_test(NAME scripts.mutants_fit COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/mutants/run --check)
add_test(NAME scripts.gpu_check COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tools/gpu_check_test.py
                                        ${PROJECT_SOURCE_DIR}/tools/gpu_check)
add_test(NAME scripts.check_pytorch
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tools/check_pytorch_test.py
                 ${PROJECT_SOURCE_DIR}/tools/check_pytorch)
# A page of measurements, from a short run.
if(TARGET strata_tool)
  add_test(
    NAME scripts.measure
    COMMAND
      sh -c
      [["$0" "--strata=$1" "--output=$2" --rounds=1 --workloads=pair --allocators=null --strategies=direct --traces=tests/data/traces/resnet50_train.csv.gz && cat "$2"/*.md]]
      ${PROJECT_SOURCE_DIR}/tools/measure $<TARGET_FILE:strata_tool>
      ${CMAKE_CURRENT_BINARY_DIR}/measurements)
  set_tests_properties(
    scripts.measure PROPERTIES PASS_REGULAR_EXPRESSION
                               "`pair` . [0-9.]+ . [0-9.]+ .*`direct` . 1.069 / 1.069 ." TIMEOUT 120)
endif()
add_test(NAME scripts.hot_gate COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tools/hot_gate_test.py
                                       ${PROJECT_SOURCE_DIR}/tools/hot_gate)
