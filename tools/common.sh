# shellcheck shell=bash
# Shared by the scripts in this folder; sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
log_folder=$root/build/log
jobs=$(nproc)

# Prints the comment at the top of the calling script, as its help text.
print_help() {
  sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
}

# fail <message>: prints one line and ends the script.
fail() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  exit 1
}

# log_of <name>: the log of a step.
log_of() {
  local name=${1//:/}
  echo "$log_folder/${name// /-}.log"
}

# run_logged <name> <command>...: runs the command with its output in a log and
# prints one line. If it fails, also prints the log's end, without passed tests.
run_logged() {
  local name=$1 start=$SECONDS log
  log=$(log_of "$name")
  shift
  mkdir -p "$log_folder"
  printf '%-28s ' "$name"
  if "$@" >"$log" 2>&1 </dev/null; then
    printf 'ok      %5d s\n' $((SECONDS - start))
  else
    printf 'FAILED  %5d s\n' $((SECONDS - start))
    grep -vE '^ *Start +[0-9]|Test +#.* Passed |^\[ RUN      |^\[       OK |[0-9] warnings? generated' "$log" | tail -n 80
    printf '(all of it: %s)\n' "$log"
    return 1
  fi
}

# configure_and_build <preset> <target>...: builds the targets of a preset.
configure_and_build() {
  local preset=$1
  shift
  (cd "$root" && cmake --preset "$preset") &&
    cmake --build "$root/build/$preset" --parallel "$jobs" --target "$@"
}

# build_fuzz_targets: builds the fuzz targets and their seed files.
build_fuzz_targets() {
  configure_and_build asan fuzz_targets fuzz_seeds
}

# fuzz_targets: the names of the targets built, one per line.
fuzz_targets() {
  find "$root/build/asan/bin" -name 'fuzz_*' ! -name fuzz_tests -type f -printf '%f\n' | sort
}

# run_fuzz_target <target> <seconds>: starts with the inputs in tests/data/fuzz
# or with generated ones. Adds new inputs to those of earlier runs. Stores an
# input that makes the target fail, and names it in the output.
run_fuzz_target() {
  local folder=$root/build/asan
  local kept=$root/tests/data/fuzz/${1#fuzz_strategy_} begin=()
  [[ -d $kept ]] && begin+=("$kept")
  [[ $1 == fuzz_strategy_* ]] || begin+=("$folder/fuzz_seeds")
  mkdir -p "$folder/corpus/$1" "$folder/broken"
  "$folder/bin/$1" -max_total_time="$2" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$folder/broken/$1-" "$folder/corpus/$1" "${begin[@]}"
}

# run_tidy product|tests: clang-tidy needs every file's compile command, and the
# tests' precompiled header of clang. A dozen files per call take a quarter of
# the time. Tests have their own checks.
run_tidy() {
  local folder=$root/build/tidy
  # With a configuration that it cannot read, clang-tidy succeeds and checks little.
  if (cd "$root/tests" && clang-tidy --dump-config 2>&1) | grep "Error parsing" ||
    (cd "$root" && clang-tidy --dump-config 2>&1) | grep "Error parsing"; then
    return 1
  fi
  cmake -S "$root" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 -DSTRATA_UNITY_LAYERS=ON &&
    cmake --build "$folder" --target tests/CMakeFiles/strata_testing.dir/cmake_pch.hxx.pch &&
    cp "$root/tests/.clang-tidy" "$folder/tests/" &&
    cd "$root" &&
    tidy_sources "$1" "$folder" | xargs -P "$jobs" -n 1 clang-tidy -p "$folder" --quiet
}

# tidy_sources product|tests <build folder>: the unity files, and the files
# outside of them.
tidy_sources() {
  local which=(grep -E '/tests/')
  [[ $1 == tests ]] || which=(grep -vE '/tests/')
  grep -o '"file": "[^"]*"' "$2/compile_commands.json" | cut -d'"' -f4 | sort -u |
    grep -E "/Unity/|^$root/(base|platform|allocation|strategy|facade|tensor|bindings|tools|tests|examples)/.*\.cc$" |
    "${which[@]}"
}
