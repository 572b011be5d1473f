#ifndef STRATA_PLATFORM_SIMDRIVER_RUNTIME_CONTEXTS_H_
#define STRATA_PLATFORM_SIMDRIVER_RUNTIME_CONTEXTS_H_

#include <cuda.h>

namespace strata::simdriver::runtime {

// The device of the calling thread's current context. Without a context: the
// device that the thread chose, or 0. Creates no context.
int ThreadDevice();
// Chooses `device` for the calling thread and makes its primary context
// current.
CUresult ChooseThreadDevice(int device);

// Retains the primary context of `device` unless the runtime has done so.
CUresult RetainPrimary(int device, CUcontext* context);
// Releases it if the runtime retains it.
CUresult ReleasePrimary(int device);

}  // namespace strata::simdriver::runtime

#endif  // STRATA_PLATFORM_SIMDRIVER_RUNTIME_CONTEXTS_H_
