#ifndef STRATA_TOOLS_BENCH_ROUND_LENGTH_H_
#define STRATA_TOOLS_BENCH_ROUND_LENGTH_H_

#include <chrono>
#include <cstddef>

#include "strata/tools/bench/script.h"
#include "strata/tools/bench/subject.h"

namespace strata {

// How many pairs a round of about `round_time` has, at most `most`: whole loops
// of the script if its parts differ, and at least one.
//
// Model: runs rounds that get longer, until one takes more than half the time:
//   the first ones may be mostly growth of the heap, threads that wake, or the
//   clock. The better of two counts, since one may have been interrupted.
// Cost: about four times round_time.
std::size_t PairsPerRound(BenchSubject& subject, const BenchScript& script,
                          std::chrono::nanoseconds round_time,
                          std::size_t most);

}  // namespace strata

#endif  // STRATA_TOOLS_BENCH_ROUND_LENGTH_H_
