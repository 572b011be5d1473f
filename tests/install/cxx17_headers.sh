#!/usr/bin/env bash
# A C++17 program that includes a header of Strata gets one clear error, and no
# further errors.
#
# usage: cxx17_headers.sh PREFIX COMPILER HEADER...
set -euo pipefail
include=$1/include compiler=$2
shift 2

for header in "$@"; do
  errors=$("$compiler" -std=c++17 -I"$include" -fsyntax-only -x c++ - \
    <<<"#include \"$header\"" 2>&1 | grep 'error:') || true
  # The second one is the last line of the compiler.
  if [[ $(wc -l <<<"$errors") != 2 || $errors != *'Strata needs C++20: compile with -std=c++20'* ]]; then
    echo "$header: $errors"
    exit 1
  fi
done
