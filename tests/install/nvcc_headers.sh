#!/usr/bin/env bash
# nvcc compiles every installed header without a warning. Without the flag for
# C++20, it reports one error that names the flag.
#
# usage: nvcc_headers.sh PREFIX FOLDER NVCC
set -euo pipefail
include=$1/include folder=$2 nvcc=$3

mkdir -p "$folder"
(cd "$include" && find strata -name '*.h' | sort | sed 's/.*/#include "&"/') >"$folder/headers.cu"
"$nvcc" -std=c++20 -Werror all-warnings -Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow \
  -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE -I "$include" -c -o "$folder/headers.o" "$folder/headers.cu"

echo '#include "strata/facade/allocator_facade.h"' >"$folder/cxx17.cu"
errors=$("$nvcc" -std=c++17 -I "$include" -c -o "$folder/cxx17.o" "$folder/cxx17.cu" 2>&1 |
  grep 'error:') || true
[[ $(wc -l <<<"$errors") == 2 && $errors == *'Strata needs C++20'* ]] || {
  echo "$errors"
  exit 1
}
