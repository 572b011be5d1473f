#!/usr/bin/env bash
# Builds a program against an installed tree by pkg-config and runs it.
#
# usage: pkg_config_program.sh PREFIX PROGRAM PACKAGE COMPILER ARGUMENT...
set -euo pipefail
prefix=$1 program=$2 package=$3
shift 3

# Only strata-flags requires other packages.
variable=PKG_CONFIG_LIBDIR
[[ $package == strata-flags ]] && variable=PKG_CONFIG_PATH
export "$variable=$(dirname "$(find "$prefix" -name "$package.pc")")"
read -ra flags <<<"$(pkg-config --cflags --libs "$package")"
"$@" "${flags[@]}" -o "$program"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir "$package") "$program"
