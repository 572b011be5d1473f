#ifndef STRATA_FACADE_USAGE_LOG_H_
#define STRATA_FACADE_USAGE_LOG_H_

#include <string>

#include "strata/allocation/stats.h"
#include "strata/platform/place.h"

namespace strata {

// "device:0: peak reserved 34.0 MiB, peak in use 20.5 MiB", or in bytes. The
// text "at most" precedes a peak that is a bound.
std::string UsageLine(Place place, const Stats& stats, bool in_mebibytes);

}  // namespace strata

#endif  // STRATA_FACADE_USAGE_LOG_H_
