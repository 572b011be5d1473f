#include "strata/tests/testing/devices/cuda/driver_faults.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {
namespace {

enum DriverFunction : std::size_t {
#define STRATA_CUDA_FUNCTION(member, symbol, version) k##member,
#define STRATA_CUDA_NEWER_FUNCTION STRATA_CUDA_FUNCTION
#include "strata/platform/cuda/driver_functions.def"
#undef STRATA_CUDA_NEWER_FUNCTION
#undef STRATA_CUDA_FUNCTION
  kFunctions
};

constexpr std::string_view kFunctionNames[] = {
#define STRATA_CUDA_FUNCTION(member, symbol, version) #member,
#define STRATA_CUDA_NEWER_FUNCTION STRATA_CUDA_FUNCTION
#include "strata/platform/cuda/driver_functions.def"
#undef STRATA_CUDA_NEWER_FUNCTION
#undef STRATA_CUDA_FUNCTION
};

using ContextCall = DriverFaults::ContextCall;

struct FaultState {
  std::uint64_t calls = 0;
  std::uint64_t nth = 0;       // 0: no call fails
  bool counts_context = true;  // its calls, too
  ContextCall failing = ContextCall::kNone;
  bool has_failed = false;
  int depth = 0;  // calls of the driver that are running
  std::string_view failed;
  std::vector<std::function<void()>> missed;
  int missed_pops = 0;
  bool misses_mode = false;  // the capture mode was not restored
};

FaultState& ThreadFaults() {
  thread_local FaultState state;
  return state;
}

cuda::CudaDriver& RealDriver() {
  static cuda::CudaDriver driver;
  return driver;
}

constexpr bool Allocates(std::size_t index) {
  return index == kMemAlloc || index == kMemHostAlloc ||
         index == kMemAllocManaged || index == kMemCreate ||
         index == kMemAllocFromPoolAsync || index == kDevicePrimaryCtxRetain;
}

constexpr bool Releases(std::size_t index) {
  constexpr std::array kReleases = {
      kMemFree,        kMemFreeHost,       kMemHostUnregister,
      kMemFreeAsync,   kMemRelease,        kMemUnmap,
      kMemAddressFree, kMemPoolDestroy,    kEventDestroy,
      kStreamDestroy,  kGraphDestroy,      kGraphExecDestroy,
      kModuleUnload,   kUserObjectRelease, kDevicePrimaryCtxRelease};
  for (const std::size_t release : kReleases) {
    if (release == index) return true;
  }
  return false;
}

ContextCall ContextCallOf(std::size_t index) {
  if (index == kCtxGetCurrent) return ContextCall::kGetCurrent;
  if (index == kCtxPopCurrent) return ContextCall::kPopCurrent;
  return ContextCall::kNone;
}

// Counts the call. Returns true if it has to fail.
bool IsNext(std::size_t index) {
  FaultState& faults = ThreadFaults();
  if (faults.depth > 0) return false;
  const ContextCall call = ContextCallOf(index);
  if (call != ContextCall::kNone && !faults.counts_context) {
    return call == faults.failing;
  }
  if (++faults.calls != faults.nth) return false;
  faults.has_failed = true;
  faults.failed = kFunctionNames[index];
  return true;
}

template <std::size_t kIndex, auto kMember, class Function>
struct Faulty;

template <std::size_t kIndex, auto kMember, class... Parameters>
struct Faulty<kIndex, kMember, CUresult (*)(Parameters...)> {
  static CUresult Call(Parameters... arguments) {
    FaultState& faults = ThreadFaults();
    if (!IsNext(kIndex)) {
      ++faults.depth;
      const CUresult result = (RealDriver().*kMember)(arguments...);
      --faults.depth;
      return result;
    }
    if constexpr (kIndex == kCtxPopCurrent) {
      ++faults.missed_pops;
    } else if constexpr (kIndex == kThreadExchangeStreamCaptureMode) {
      // A call for this mode, the mode of every new thread, restores it.
      faults.misses_mode =
          ((*arguments == CU_STREAM_CAPTURE_MODE_GLOBAL) && ...);
    } else if constexpr (Releases(kIndex)) {
      faults.missed.push_back([=] {
        (RealDriver().*kMember)(arguments...);
        // Callers leave the addresses of a mapping that stays. The driver
        // refuses this if they did not.
        if constexpr (kIndex == kMemUnmap) {
          RealDriver().MemAddressFree(arguments...);
        }
      });
    }
    return Allocates(kIndex) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
  }
};

}  // namespace

void DriverFaults::Arm(std::uint64_t nth) {
  FaultState& faults = ThreadFaults();
  faults.calls = 0;
  faults.nth = nth;
  faults.counts_context = true;
  faults.has_failed = false;
}

void DriverFaults::Arm(std::uint64_t nth, ContextCall failing) {
  Arm(nth);
  ThreadFaults().counts_context = false;
  ThreadFaults().failing = failing;
}

bool DriverFaults::Disarm() {
  ThreadFaults().nth = 0;
  ThreadFaults().failing = ContextCall::kNone;
  return std::exchange(ThreadFaults().has_failed, false);
}

std::uint64_t DriverFaults::calls() { return ThreadFaults().calls; }

std::string DriverFaults::failed() {
  return std::string(ThreadFaults().failed);
}

void DriverFaults::MakeUpReleases() {
  const auto missed = std::exchange(ThreadFaults().missed, {});
  for (const std::function<void()>& call : missed) call();
}

void DriverFaults::MakeUpThread() {
  for (; ThreadFaults().missed_pops > 0; --ThreadFaults().missed_pops) {
    CUcontext popped = nullptr;
    RealDriver().CtxPopCurrent(&popped);
  }
  if (!std::exchange(ThreadFaults().misses_mode, false)) return;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  RealDriver().ThreadExchangeStreamCaptureMode(&mode);
}

void DriverFaults::Forget() {
  ThreadFaults().missed.clear();
  ThreadFaults().misses_mode = false;
}

cuda::CudaDriver FaultyCudaDriver() {
  static const cuda::CudaDriver faulty = [] {
    cuda::CudaDriver driver = cuda::LoadCudaDriver();
    RealDriver() = driver;
#define STRATA_CUDA_FUNCTION(member, symbol, version)             \
  if (driver.member != nullptr) {                                 \
    driver.member = &Faulty<k##member, &cuda::CudaDriver::member, \
                            decltype(driver.member)>::Call;       \
  }
#define STRATA_CUDA_NEWER_FUNCTION STRATA_CUDA_FUNCTION
#include "strata/platform/cuda/driver_functions.def"
#undef STRATA_CUDA_NEWER_FUNCTION
#undef STRATA_CUDA_FUNCTION
    return driver;
  }();
  return faulty;
}

std::string StateOfSimDriver() {
  static const auto describe = reinterpret_cast<SimDriverStateFunction>(dlsym(
      dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), kSimDriverStateName));
  constexpr std::size_t kMostBytes = std::size_t{1} << 24;
  for (std::size_t bytes = 4096; describe != nullptr && bytes <= kMostBytes;
       bytes *= 2) {
    std::string text(bytes, '\0');
    if (describe(text.data(), text.size()) != 0) continue;
    text.resize(text.find('\0'));
    return text;
  }
  ADD_FAILURE() << "the driver does not describe its state";
  return "";
}

}  // namespace strata
