#ifndef STRATA_TOOLS_BENCH_ROUND_LENGTH_H_
#define STRATA_TOOLS_BENCH_ROUND_LENGTH_H_

#include <chrono>
#include <cstddef>

#include "strata/tools/bench/subject.h"
#include "strata/tools/bench/workloads/script.h"

namespace strata::tools {

// The number of pairs in a round of about `round_time`, at most `most`: whole
// loops of the script if its parts differ, and at least one.
//
// Model: runs longer and longer rounds, until one takes more than half the
//   time, because the first ones may mostly measure growth of the heap, waking
//   threads, or the clock. Returns the better of two counts, since one may have
//   been interrupted.
// Cost: about four times round_time.
std::size_t PairsPerRound(BenchSubject& subject, const BenchScript& script,
                          std::chrono::nanoseconds round_time,
                          std::size_t most);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_ROUND_LENGTH_H_
