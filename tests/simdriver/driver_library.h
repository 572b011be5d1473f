#ifndef STRATA_TESTS_SIMDRIVER_DRIVER_LIBRARY_H_
#define STRATA_TESTS_SIMDRIVER_DRIVER_LIBRARY_H_

#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

// The function `symbol` of the driver, as PFN_<symbol>_v<version>.
#define STRATA_DRIVER_FUNCTION(library, symbol, version) \
  (library).Get<PFN_##symbol##_v##version>(#symbol, version)

namespace strata {

inline constexpr std::size_t kMebibyte = std::size_t{1} << 20;

// The stand-in driver, loaded by its path.
class DriverLibrary {
 public:
  DriverLibrary() : handle_(dlopen(STRATA_SIM_DRIVER_LIBRARY, RTLD_NOW)) {
    lookup_ = reinterpret_cast<PFN_cuGetProcAddress_v12000>(
        dlsym(handle_, "cuGetProcAddress_v2"));
  }

  // The exported function of this name, or null.
  void* Exported(const char* name) const { return dlsym(handle_, name); }
  CUresult Look(const char* symbol, void** function, int version,
                cuuint64_t flags,
                CUdriverProcAddressQueryResult* result) const {
    return lookup_(symbol, function, version, flags, result);
  }
  // Null if the lookup finds none.
  void* Find(const char* symbol, int version, cuuint64_t flags = 0) const {
    void* function = nullptr;
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
    lookup_(symbol, &function, version, flags, &result);
    return function;
  }
  template <class Function>
  Function Get(const char* symbol, int version, cuuint64_t flags = 0) const {
    return reinterpret_cast<Function>(Find(symbol, version, flags));
  }

  CUresult Init() const {
    return STRATA_DRIVER_FUNCTION(*this, cuInit, 2000)(0);
  }
  // cuInit, and the primary context of `device` as the current one.
  CUresult Start(CUdevice device = 0) const {
    CUresult result = Init();
    if (result != CUDA_SUCCESS) return result;
    CUcontext context = nullptr;
    result = STRATA_DRIVER_FUNCTION(*this, cuDevicePrimaryCtxRetain, 7000)(
        &context, device);
    if (result != CUDA_SUCCESS) return result;
    return STRATA_DRIVER_FUNCTION(*this, cuCtxSetCurrent, 4000)(context);
  }

 private:
  void* const handle_;
  PFN_cuGetProcAddress_v12000 lookup_ = nullptr;
};

// Runs `body(const DriverLibrary&)` in a child of this process, in which
// nothing of the driver was loaded before; the child's failures are printed,
// and fail this test. `options` and `visible` are STRATA_SIM_DRIVER and
// CUDA_VISIBLE_DEVICES; null: not set.
template <class Body>
void WithDriver(const char* options, const char* visible, Body body) {
  const auto set = [](const char* name, const char* value) {
    if (value != nullptr) {
      setenv(name, value, 1);
    } else {
      unsetenv(name);
    }
  };
  std::fflush(nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    set("STRATA_SIM_DRIVER", options);
    set("CUDA_VISIBLE_DEVICES", visible);
    body(DriverLibrary());
    std::fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "in the child: status " << status;
}

template <class Body>
void WithDriver(Body body) {
  WithDriver("devices=2 memory=256MiB data=backed progress=lazy", nullptr,
             body);
}

}  // namespace strata

#endif  // STRATA_TESTS_SIMDRIVER_DRIVER_LIBRARY_H_
