#!/usr/bin/env bash
# Builds a program that uses strata/bindings/adapters/cuda_mr.h, against an installed tree
# and the PyPI packages that tools/setup --full unpacked. Runs it on the
# simulated device. Skips with exit code 77 and a reason if a package is missing.
#
# usage: memory_resource.sh toolkit|cccl|rmm PREFIX PYPI_FOLDER CUDA_INCLUDE PROGRAM COMPILER ARGUMENT...
set -euo pipefail
kind=$1 prefix=$2 pypi=$3 cuda=$4 program=$5
shift 5

# unpacked <package>: prints the folder of its last version.
unpacked() {
  [[ ! -d $pypi ]] ||
    find "$pypi" -maxdepth 1 -name "$1-[0-9]*" ! -name '*.part' | sort -V | tail -n 1
}
skip() {
  echo "skipped: there is no $1 in $pypi; tools/setup --full unpacks it"
  exit 77
}

flags=()
case $kind in
  toolkit)
    flags=(-DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE -isystem "$cuda/cccl")
    ;;
  cccl)
    folder=$(unpacked nvidia-cuda-cccl)
    [[ -n $folder ]] || skip nvidia-cuda-cccl
    flags=(-isystem "$(find "$folder" -type d -path '*/include/cccl')")
    ;;
  rmm)
    rmm=$(unpacked librmm-cu13) logger=$(unpacked rapids-logger)
    [[ -n $rmm ]] || skip librmm-cu13
    [[ -n $logger ]] || skip rapids-logger
    rmm=$rmm/librmm logger=$logger/rapids_logger
    flags=(-isystem "$rmm/include" -isystem "$rmm/include/rapids" -isystem "$logger/include"
      -L"$rmm/lib64" -L"$logger/lib64" "-Wl,-rpath,$rmm/lib64:$logger/lib64" -lrmm -lrapids_logger)
    ;;
esac

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name strata.pc)")
export PKG_CONFIG_PATH
read -ra strata <<<"$(pkg-config --cflags --libs strata)"
"$@" "${flags[@]}" -isystem "$cuda" "${strata[@]}" -o "$program"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir strata) "$program"
