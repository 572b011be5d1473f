#ifndef STRATA_TOOLS_BENCH_CORES_H_
#define STRATA_TOOLS_BENCH_CORES_H_

#include <vector>

namespace strata::tools {

// The cores that the calling thread may use, the last one first: the first core
// serves most interrupts. Empty if the system does not report them.
std::vector<int> AllowedCores();

// Binds the calling thread, and the threads that it starts, to one core. Does
// nothing if the system refuses.
void PinThread(int core);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_CORES_H_
