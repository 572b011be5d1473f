#ifndef STRATA_TOOLS_BENCH_CORES_H_
#define STRATA_TOOLS_BENCH_CORES_H_

#include <vector>

namespace strata {

// The cores that the calling thread may use, the last first: the first one
// serves most interrupts. Empty if the system does not tell.
std::vector<int> AllowedCores();

// Keeps the calling thread, and those that it starts, on one core. Does nothing
// if the system refuses.
void PinThread(int core);

}  // namespace strata

#endif  // STRATA_TOOLS_BENCH_CORES_H_
