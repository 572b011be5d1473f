#ifndef STRATA_TESTS_SIMDRIVER_RUNTIME_LIBRARY_H_
#define STRATA_TESTS_SIMDRIVER_RUNTIME_LIBRARY_H_

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "strata/platform/simdriver/runtime/registration.h"
#include "strata/platform/simdriver/sim_driver_info.h"
#include "strata/tests/simdriver/driver_library.h"

// The function `name` of the runtime, with the type that the header declares.
#define STRATA_RUNTIME_FUNCTION(runtime, name) \
  (runtime).Get<decltype(&::name)>(#name)
// The variant of `name` in which the null stream is the thread's own.
#define STRATA_RUNTIME_VARIANT(runtime, name, suffix) \
  (runtime).Get<decltype(&::name)>(#name "_" #suffix)

namespace strata {

// The stand-in runtime, loaded by its path. It loads the stand-in driver.
class RuntimeLibrary {
 public:
  RuntimeLibrary() : handle_(dlopen(STRATA_SIM_RUNTIME_LIBRARY, RTLD_NOW)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }

  // The function with the version of the library's name, or null.
  void* Find(const char* name) const {
    return dlvsym(handle_, name, "libcudart.so.13");
  }
  template <class Function>
  Function Get(const char* name) const {
    return reinterpret_cast<Function>(Find(name));
  }

  SimDriverInfo Info() const {
    SimDriverInfo info;
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSuccess;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(*this, cudaGetDriverEntryPointByVersion)(
                  kSimDriverInfoName, &function, CUDART_VERSION,
                  cudaEnableDefault, &result),
              cudaSuccess);
    EXPECT_EQ(reinterpret_cast<SimDriverInfoFunction>(function)(&info), 0);
    return info;
  }

 private:
  void* const handle_;
};

// Runs `body(const RuntimeLibrary&)` in a child of this process, as WithDriver.
template <class Body>
void WithRuntime(Body body) {
  WithDriver([&](const DriverLibrary&) { body(RuntimeLibrary()); });
}

}  // namespace strata

#endif  // STRATA_TESTS_SIMDRIVER_RUNTIME_LIBRARY_H_
