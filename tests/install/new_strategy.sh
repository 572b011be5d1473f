#!/usr/bin/env bash
# Adds a toy strategy with an option to a copy of the sources, as one folder and one line.
# Compiles it with the files that read the tables, and finds its factory in the registry
# and its option in the table of options. The build is not configured.
#
# usage: new_strategy.sh <source folder> <scratch folder> <C++ compiler>
set -euo pipefail

source=$1
scratch=$2
compiler=$3

rm -rf "$scratch"
mkdir -p "$scratch/include/strata"
for layer in base platform allocation strategy facade; do
  cp -r "$source/$layer" "$scratch/include/strata"
done
cd "$scratch/include/strata"

# The folder …
mkdir strategy/toy
for suffix in h cc; do
  sed 's/direct/toy/g; s/Direct/Toy/g; s/DIRECT/TOY/g' \
    "strategy/direct/direct_allocator.$suffix" >"strategy/toy/toy_allocator.$suffix"
done
cat >strategy/toy/options.def <<'TABLE'
STRATA_OWN_OPTION(Uint64, toy_pieces, toy_pieces, 3, "Pieces of the toy.")
TABLE
cat >strategy/toy/options.h <<'HEADER'
#ifndef STRATA_STRATEGY_TOY_OPTIONS_H_
#define STRATA_STRATEGY_TOY_OPTIONS_H_

#include "strata/allocation/option_fields.h"

namespace strata {

struct ToyOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/strategy/toy/options.def"
#undef STRATA_OWN_OPTION
};

}  // namespace strata

#endif  // STRATA_STRATEGY_TOY_OPTIONS_H_
HEADER
sed 's/PoolAllocator/ToyAllocator/; s/PoolOptions/ToyOptions/; s/pool/toy/' \
  strategy/pool/strategy.def >strategy/toy/strategy.def
# … and the line.
sed -i 's,^#include "strata/strategy/pool/strategy.def",&\n#include "strata/strategy/toy/strategy.def",' \
  strategy/strategies.def

cd "$scratch"
# The strategy, and the files that read the tables.
for file in strategy/toy/toy_allocator strategy/registry facade/options; do
  "$compiler" -std=c++20 -O0 -Iinclude -c "include/strata/$file.cc"
done
nm toy_allocator.o | grep ' T .*MakeToyAllocator'
nm registry.o | grep ' U .*MakeToyAllocator'
grep toy_pieces options.o
