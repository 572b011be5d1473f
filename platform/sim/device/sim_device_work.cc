// Work with known accesses, in place of kernels.

#include <algorithm>
#include <array>
#include <string>

#include "strata/platform/sim/device/fatal.h"
#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/memory/byte_effects.h"
#include "strata/platform/sim/streams/host_function_scope.h"

namespace strata::sim {
namespace {

// Time of a kernel launch; an estimate, as cost_table.cc says.
constexpr std::uint64_t kLaunchNs = 2'500;

using Ranges = std::array<WorkRange, kMaxWorkRanges>;

bool IsEmpty(const WorkRange& range) {
  return range.ptr == 0 || range.bytes == 0;
}

}  // namespace

// `submit(capture, seen, lock)` submits the work. If `capture` is not null, it
// adds a node to it instead.
template <class Body>
Status SimDevice::RunLaunch(const Stream& stream, const WorkRange* ranges,
                            std::size_t count, Body submit) {
  if (HostFunctionScope::Active()) return Status::kNotPermitted;
  if (sticky_error() != Status::kSuccess) return sticky_error();
  const auto order = HoldOrder();
  // Captures do not check a stream of another device.
  if (stream.device != ordinal_) return Status::kInvalidResourceHandle;
  // The rule of all launches (capture_rules.def).
  const Status refusal = CheckCaptures(CaptureRuleOf(DeviceCall::kMemsetAsync),
                                       {stream, {}, 0, 0});
  if (refusal != Status::kSuccess) return refusal;
  CallRecord seen;
  {
    SimLock lock(mutex_);
    if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
    const Status submitted = submit(CaptureOf(stream), &seen, &lock);
    if (submitted != Status::kSuccess) return submitted;
  }
  PassTime(kLaunchNs);
  NoteUses(*this, stream, ranges, count, seen.node);
  return Status::kSuccess;
}

Status SimDevice::Enqueue(Stream stream, const WorkRange* ranges,
                          std::size_t count, std::uint64_t busy_ns,
                          std::uint64_t pattern) {
  if (!IsValidWork(ranges, count)) return Status::kInvalidValue;
  Ranges held;
  std::copy_n(ranges, count, held.begin());
  return RunLaunch(stream, ranges, count,
                   [&](SimCapture* capture, CallRecord* seen, SimLock* lock) {
                     if (capture != nullptr) {
                       return AddNode(capture, stream, busy_ns,
                                      WorkAction{held, count, pattern}, seen);
                     }
                     const auto work = [=, this] {
                       return ExecuteWork(held.data(), count, pattern);
                     };
                     Submit(stream, busy_ns, work, lock);
                     return Status::kSuccess;
                   });
}

Status SimDevice::Launch(Stream stream, const WorkRange* ranges,
                         std::size_t count, HostKernel kernel, void* argument) {
  if (kernel == nullptr || count > kMaxWorkRanges ||
      (ranges == nullptr && count != 0) ||
      std::any_of(ranges, ranges + count, IsEmpty)) {
    return Status::kInvalidValue;
  }
  KernelAction action;
  std::copy_n(ranges, count, action.ranges.begin());
  action.count = count;
  action.kernel = kernel;
  action.argument = argument;
  return RunLaunch(stream, ranges, count,
                   [&](SimCapture* capture, CallRecord* seen, SimLock* lock) {
                     if (capture != nullptr) {
                       return AddNode(capture, stream, 0, action, seen);
                     }
                     const auto run = [this, action](SimLock* held) {
                       if (sticky_error() != Status::kSuccess) return;  // S11
                       RunKernel(action, held);
                     };
                     scheduler_.SubmitUnlocked(stream, 0, run, lock);
                     return Status::kSuccess;
                   });
}

void SimDevice::ForgetWritten(const KernelAction& kernel) {
  for (std::size_t i = 0; i < kernel.count; ++i) {
    const WorkRange& range = kernel.ranges[i];
    if (range.write) {
      ForgetBytes(platform_->address_space(), range.ptr, range.bytes);
    }
  }
}

void SimDevice::RunKernel(const KernelAction& kernel, SimLock* lock) {
  if (!MayWork(kernel.ranges.data(), kernel.count)) {
    NoteOutcome(Status::kIllegalAddress);
    return;
  }
  std::array<void*, kMaxWorkRanges> views;
  for (std::size_t i = 0; i < kernel.count; ++i) {
    views[i] = ViewOf(kernel.ranges[i].ptr, kernel.ranges[i].bytes);
    if (views[i] != nullptr) continue;
    if (caps_.phantom_memory) {
      ForgetWritten(kernel);
      return;
    }
    SimFatal("the host has no mappings left to show a kernel " +
             std::to_string(kernel.ranges[i].bytes) + " bytes in " +
             "scattered frames (vm.max_map_count)");
  }
  lock->unlock();
  {
    HostFunctionScope scope;
    kernel.kernel(kernel.argument, views.data());
  }
  lock->lock();
}

}  // namespace strata::sim
