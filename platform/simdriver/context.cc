#include "strata/platform/simdriver/context.h"

#include <array>
#include <cstddef>

#include "strata/platform/sim/memory/device_memory.h"
#include "strata/platform/simdriver/attributes.h"
#include "strata/platform/simdriver/host_reads.h"

namespace strata::simdriver {
namespace {

std::array<Context, sim::kMaxSimDevices> g_contexts;

// The contexts that a thread pushed; the last one is current. It has no
// destructor, so that destructors of other thread-locals may call the driver.
struct ContextStack {
  static constexpr std::size_t kMost = 16;

  bool empty() const { return count == 0; }
  Context* back() const { return contexts[count - 1]; }
  bool Push(Context* context) {
    if (count == kMost) return false;
    contexts[count++] = context;
    return true;
  }
  void Pop() { --count; }

  std::array<Context*, kMost> contexts{};
  std::size_t count = 0;
};

ContextStack& Stack() {
  thread_local constinit ContextStack stack;
  return stack;
}

CUresult CheckContext(CUcontext handle) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  return FindContext(handle) != nullptr ? CUDA_SUCCESS
                                        : CUDA_ERROR_INVALID_CONTEXT;
}

// CUDA_SUCCESS and the current context, if there is one and it has not ended.
CUresult LiveContext(Context** context) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  *context = CurrentContext();
  if (*context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return (*context)->retained.load(std::memory_order_acquire) > 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace

Context* PrimaryContext(int ordinal) {
  return &g_contexts[static_cast<std::size_t>(ordinal)];
}

int OrdinalOf(const Context& context) {
  return static_cast<int>(&context - g_contexts.data());
}

Context* FindContext(CUcontext handle) {
  auto* const context = reinterpret_cast<Context*>(handle);
  const int devices = FindProcess()->platform.device_count();
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    if (context == &g_contexts[static_cast<std::size_t>(ordinal)]) {
      return context;
    }
  }
  return nullptr;
}

Context* CurrentContext() {
  const ContextStack& stack = Stack();
  return stack.empty() ? nullptr : stack.back();
}

CUresult CurrentDevice(SimDevice** device) {
  Context* context = nullptr;
  const CUresult result = LiveContext(&context);
  if (result != CUDA_SUCCESS) return result;
  *device = &FindProcess()->platform.sim_device(OrdinalOf(*context));
  return CUDA_SUCCESS;
}

CUresult CheckOrdinal(CUdevice device) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  return device >= 0 && device < FindProcess()->platform.device_count()
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_DEVICE;
}

CUresult DevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return PutIf(CheckOrdinal(device), context, [&] {
    PrimaryContext(device)->retained.fetch_add(1, std::memory_order_acq_rel);
    return HandleOf(PrimaryContext(device));
  });
}

CUresult DevicePrimaryCtxRelease(CUdevice device) {
  const CUresult result = CheckOrdinal(device);
  if (result != CUDA_SUCCESS) return result;
  std::atomic<int>& retained = PrimaryContext(device)->retained;
  int count = retained.load(std::memory_order_relaxed);
  do {
    if (count == 0) return CUDA_ERROR_INVALID_CONTEXT;
  } while (!retained.compare_exchange_weak(count, count - 1,
                                           std::memory_order_acq_rel));
  return CUDA_SUCCESS;
}

CUresult DevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  const CUresult result = CheckOrdinal(device);
  if (result != CUDA_SUCCESS) return result;
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  PrimaryContext(device)->flags.store(flags, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult DevicePrimaryCtxGetState(CUdevice device, unsigned* flags,
                                  int* active) {
  const CUresult result = CheckOrdinal(device);
  if (result != CUDA_SUCCESS) return result;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context& context = *PrimaryContext(device);
  *flags = context.flags.load(std::memory_order_relaxed);
  *active = context.retained.load(std::memory_order_relaxed) > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult CtxGetCurrent(CUcontext* context) {
  return PutIf(Ready(), context, [] { return HandleOf(CurrentContext()); });
}

CUresult CtxSetCurrent(CUcontext context) {
  CUresult result = Ready();
  if (result == CUDA_SUCCESS && context != nullptr) {
    result = CheckContext(context);
  }
  if (result != CUDA_SUCCESS) return result;
  if (!Stack().empty()) Stack().Pop();
  if (context != nullptr) Stack().Push(FindContext(context));
  return CUDA_SUCCESS;
}

CUresult CtxPushCurrent(CUcontext context) {
  const CUresult result = CheckContext(context);
  if (result != CUDA_SUCCESS) return result;
  return Stack().Push(FindContext(context)) ? CUDA_SUCCESS
                                            : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CtxPopCurrent(CUcontext* context) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  if (Stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = HandleOf(Stack().back());
  Stack().Pop();
  return CUDA_SUCCESS;
}

CUresult CtxGetDevice(CUdevice* device) {
  Context* context = nullptr;
  return PutIf(LiveContext(&context), device,
               [&] { return OrdinalOf(*context); });
}

CUresult CtxGetFlags(unsigned* flags) {
  Context* context = nullptr;
  return PutIf(LiveContext(&context), flags,
               [&] { return context->flags.load(std::memory_order_relaxed); });
}

CUresult CtxGetId(CUcontext context, unsigned long long* id) {  // NOLINT
  CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  Context* const found =
      context != nullptr ? FindContext(context) : CurrentContext();
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = static_cast<unsigned>(OrdinalOf(*found)) + 1u;
  return CUDA_SUCCESS;
}

CUresult CtxGetApiVersion(CUcontext context, unsigned* version) {
  const CUresult result = context != nullptr ? CheckContext(context) : Ready();
  if (result != CUDA_SUCCESS) return result;
  if (context == nullptr && CurrentContext() == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 3020;  // of every context since CUDA 3.2
  return CUDA_SUCCESS;
}

CUresult CtxSynchronize() {
  return OnCurrentDevice([](SimDevice& device) {
    const Status status = device.Synchronize();
    Reads().AfterWait();
    return status;
  });
}

CUresult CtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckContext(peer);
  if (result != CUDA_SUCCESS) return result;
  return OnCurrentDevice([&](SimDevice& device) {
    return device.EnablePeerAccess(OrdinalOf(*FindContext(peer)));
  });
}

CUresult CtxGetStreamPriorityRange(int* least, int* greatest) {
  return OnCurrentDevice([&](SimDevice&) {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return Status::kSuccess;
  });
}

}  // namespace strata::simdriver
