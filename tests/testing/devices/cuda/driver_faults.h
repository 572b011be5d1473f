#ifndef STRATA_TESTS_TESTING_DEVICES_CUDA_DRIVER_FAULTS_H_
#define STRATA_TESTS_TESTING_DEVICES_CUDA_DRIVER_FAULTS_H_

#include <cstdint>
#include <string>

#include "strata/platform/cuda/cuda_driver.h"

namespace strata {

// Makes chosen calls of a driver fail before they reach it.
//
// Model: counts the calls of a thread through the table of FaultyCudaDriver(),
//   without those of host functions. The failure is CUDA_ERROR_OUT_OF_MEMORY
//   for calls that allocate, and CUDA_ERROR_UNKNOWN for the others. Calls that
//   release something are remembered if they fail, so that the driver can get
//   them later.
// Threads: any; the driver's functions take no object, so each thread has one
//   state.
class DriverFaults {
 public:
  // Calls that the CUDA platform makes around each call of a device. It works
  // although they fail.
  enum class ContextCall { kNone, kGetCurrent, kPopCurrent };

  // The `nth` call from now on fails; 0: none.
  static void Arm(std::uint64_t nth);
  // All calls of `failing` fail, and the `nth` other call.
  static void Arm(std::uint64_t nth, ContextCall failing);
  // No later call fails. Returns true if the `nth` call has failed since Arm().
  static bool Disarm();
  // Calls since Arm().
  static std::uint64_t calls();
  // The function that failed last, or "".
  static std::string failed();
  // Makes the calls that released something and failed.
  static void MakeUpReleases();
  // Restores the context and the capture mode of the thread if a call failed to
  // do that.
  static void MakeUpThread();
  // Discards the recorded failures, except missed CtxPopCurrent calls.
  static void Forget();
};

// The driver of this machine, behind DriverFaults.
//
// Errors: as LoadCudaDriver.
cuda::CudaDriver FaultyCudaDriver();

// The state of the stand-in driver that a failed call must not change: objects
// that exist, memory in use, and the capture mode and context of the thread.
std::string StateOfSimDriver();

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_CUDA_DRIVER_FAULTS_H_
