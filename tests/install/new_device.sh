#!/usr/bin/env bash
# Proves that a new device is one folder and one line: adds the toy platform of
# the tests to a copy of the sources, builds the layers up to platform, and looks the
# platform up in the registry.
#
# usage: new_device.sh <source folder> <scratch folder> <C++ compiler>
set -euo pipefail

source=$1
scratch=$2
compiler=$3

rm -rf "$scratch"
mkdir -p "$scratch/include/strata"
cp -r "$source/base" "$source/platform" "$scratch/include/strata"
cd "$scratch/include/strata/platform"

# CUDA needs more than a compiler, so its build option is off here.
rm -rf cuda simdriver
sed -i '/^STRATA_PLATFORM(cuda,/d' devices.def

# The folder …
mkdir toy
for file in toy_platform.h toy_platform.cc; do
  sed 's,strata/tests/testing/devices/,strata/platform/toy/,' \
    "$source/tests/testing/devices/$file" >"toy/$file"
done
# … and the line.
echo 'STRATA_PLATFORM(toy, MakeToyPlatform)' >>devices.def
# As CMake does: only the lines with an enabled build option.
cp devices.def built_devices.def

cat >"$scratch/main.cc" <<'PROGRAM'
#include <cstdio>

#include "strata/platform/device.h"
#include "strata/platform/registry.h"

int main() {
  for (const std::string& name : strata::PlatformNames()) {
    std::puts(name.c_str());
  }
  strata::PlatformOptions options;
  options.platform = "toy";
  const auto platform = strata::MakePlatform(options);
  strata::Device& device = platform->device(0);
  strata::DevicePtr ptr = 0;
  return device.MemAlloc(&ptr, 1024) == strata::Status::kSuccess &&
                 device.MemFree(ptr) == strata::Status::kSuccess
             ? 0
             : 1;
}
PROGRAM

cd "$scratch"
# One source per folder, because most of the time goes into the headers.
find include -name '*.cc' | sort | while read -r file; do
  echo "#include \"$file\"" >>"all_$(dirname "$file" | tr / _).cc"
done
find . -maxdepth 1 -name 'all_*.cc' -print0 |
  xargs -0 -P "$(nproc)" -I{} "$compiler" -std=c++20 -O0 -I. -Iinclude -c {}
"$compiler" -std=c++20 -Iinclude main.cc ./*.o -o program -pthread -lglog
./program | grep -qx toy
./program | grep -qx sim
