#include "strata/platform/simdriver/process.h"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>

#include "strata/platform/simdriver/counters.h"
#include "strata/platform/simdriver/entries.h"

namespace strata::simdriver {
namespace {

std::atomic<Process*> g_process{nullptr};
std::atomic<bool> g_forked{false};
std::mutex g_start_mutex;

void NoteFork() { g_forked.store(true, std::memory_order_relaxed); }

// Null if an option is wrong.
Process* MakeProcess(CUresult* result) {
  try {
    const DriverOptions options = ReadDriverOptions();
    if (options.platform.sim_devices == 0) {
      *result = CUDA_ERROR_NO_DEVICE;
      return nullptr;
    }
    return new Process(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "strata simdriver: %s\n", error.what());
    *result = CUDA_ERROR_INVALID_VALUE;
    return nullptr;
  }
}

}  // namespace

CUresult StartProcess() {
  if (IsForkedChild()) return CUDA_ERROR_NOT_INITIALIZED;
  if (FindProcess() != nullptr) return CUDA_SUCCESS;
  std::lock_guard lock(g_start_mutex);
  if (FindProcess() != nullptr) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  Process* const made = MakeProcess(&result);
  if (made == nullptr) return result;
  pthread_atfork(nullptr, nullptr, &NoteFork);
  if (made->options.report) ReportAtExit();
  g_process.store(made, std::memory_order_release);
  return CUDA_SUCCESS;
}

Process* FindProcess() { return g_process.load(std::memory_order_acquire); }

bool IsForkedChild() { return g_forked.load(std::memory_order_relaxed); }

CUresult Ready() {
  return FindProcess() == nullptr || IsForkedChild()
             ? CUDA_ERROR_NOT_INITIALIZED
             : CUDA_SUCCESS;
}

CUresult Init(unsigned flags) {
  return flags == 0 ? StartProcess() : CUDA_ERROR_INVALID_VALUE;
}

CUresult DriverGetVersion(int* version) {
  if (IsForkedChild()) return CUDA_ERROR_NOT_INITIALIZED;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

}  // namespace strata::simdriver
