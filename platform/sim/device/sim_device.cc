#include "strata/platform/sim/device/sim_device.h"

#include <algorithm>
#include <string>

#include "strata/platform/locks/spin_lock.h"
#include "strata/platform/sim/device/fatal.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/faults/cost_table.h"
#include "strata/platform/sim/streams/host_function_scope.h"

namespace strata::sim {
namespace {

std::uint64_t NewInstance() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Caps SimCaps(const PhysicalMemory& memory, SimData data) {
  Caps caps;
  caps.virtual_memory = true;
  caps.share_fd = true;
  caps.share_fabric = memory.fabric();
  caps.rdma = memory.rdma();
  caps.map_granularity_bytes = kFrameBytes;
  caps.mem_pools = true;
  caps.managed_memory = true;
  caps.pinned_memory = true;
  caps.capture = true;
  caps.graphs = true;
  caps.graph_mem_nodes = true;
  caps.user_objects = true;
  caps.peer_access = true;
  caps.simulated = true;
  caps.phantom_memory = data == SimData::kPhantom || data == SimData::kSmall;
  caps.alloc_alignment_bytes = kSliceBytes;
  return caps;
}

}  // namespace

SimDevice::SimDevice(SimPlatform* platform, int ordinal,
                     std::uint64_t memory_bytes, std::uint64_t fault_seed,
                     SimData data)
    : platform_(platform),
      ordinal_(ordinal),
      instance_(NewInstance()),
      caps_(SimCaps(platform->physical_memory(), data)),
      faults_(ordinal, fault_seed),
      capacity_(ordinal),
      mutex_(platform->mutex()),
      memory_(ordinal, memory_bytes, data, &platform->host_views()),
      pools_(ordinal, &memory_),
      graph_memory_(ordinal, &memory_),
      scheduler_(platform->scheduler()),
      streams_(ordinal),
      events_(ordinal) {
  scheduler_.AddStream(LegacyStream(), StreamKind::kLegacy);
  platform->physical_memory().AddDevice(&memory_);
  platform->address_space().Add(&pools_);
  platform->address_space().Add(&graph_memory_);
}

SimDevice::~SimDevice() = default;

// No lock is held while the observers run, except HoldOrder's.
template <class Effect>
Status SimDevice::Run(DeviceCall name, CallRecord operands,
                      const Stream* stream, Effect effect) {
  Call call{operands};
  call.call = name;
  if (stream != nullptr) call.stream_uid = stream->uid;
  Enter(name);
  const auto order = HoldOrder();
  call.status = Refusal(call, stream);
  if (call.status == Status::kSuccess) {
    call.status = effect(&call);
    // "Not ready" is a result, which costs time too; a refusal costs none.
    if (call.status == Status::kSuccess || call.status == Status::kNotReady) {
      PassTime(CallCostNs(name, call.charged_bytes.value_or(
                                    static_cast<std::size_t>(call.bytes))));
    }
  }
  Observe(call);
  return call.status;
}

#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) \
  STRATA_ENTRY_POINT(SimDevice, method, parameters, arguments, operands, )
#define STRATA_DEVICE_NODES_CALL(method, name, parameters, arguments,    \
                                 operands)                               \
  STRATA_ENTRY_POINT(SimDevice, method, parameters, arguments, operands, \
                     NoteDependencies(dependencies, count))
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL

Status SimDevice::MemcpyAsync(DevicePtr target, DevicePtr source,
                              std::size_t bytes, Stream stream,
                              ReadCounter* reads) {
  return Run(DeviceCall::kMemcpyAsync, OperandsOf(target, bytes, source),
             &stream, [&](Call* seen) {
               return DoMemcpyAsync(seen, target, source, bytes, stream, reads);
             });
}

Status SimDevice::DoMemGetInfo(Call*, std::size_t* free_bytes,
                               std::size_t* total_bytes) {
  if (free_bytes == nullptr || total_bytes == nullptr) {
    return Status::kInvalidValue;
  }
  std::lock_guard lock(mutex_);
  platform_->physical_memory().FreeClosed();
  *free_bytes = memory_.free_bytes();
  *total_bytes = memory_.total_bytes();
  return Status::kSuccess;
}

Status SimDevice::DoSynchronize(Call*) {
  SimLock lock(mutex_);
  scheduler_.AwaitDevice(ordinal_, &lock);
  pools_.OnSynchronize(scheduler_, [this](const StreamPoint& point) {
    return point.device == ordinal_ && scheduler_.IsDone(point);
  });
  return sticky_error();
}

Status SimDevice::DoEnablePeerAccess(Call*, int peer) {
  if (peer < 0 || peer >= platform_->device_count() || peer == ordinal_) {
    return Status::kInvalidDevice;
  }
  std::lock_guard lock(mutex_);
  return peers_.insert(peer).second ? Status::kSuccess
                                    : Status::kPeerAccessAlreadyEnabled;
}

Status SimDevice::DoCanAccessPeer(Call*, int peer, bool* can) {
  if (can == nullptr) return Status::kInvalidValue;
  if (peer < 0 || peer >= platform_->device_count()) {
    return Status::kInvalidDevice;
  }
  *can = peer != ordinal_;
  return Status::kSuccess;
}

SimLeaks SimDevice::Leaks() const {
  SimLeaks leaks;
  {
    std::lock_guard lock(mutex_);
    leaks.allocations = memory_.live_count();
    leaks.allocation_bytes = memory_.live_bytes();
    leaks.pool_blocks = pools_.live_count();
    leaks.pool_bytes = pools_.live_bytes();
    leaks.pools = pools_.handle_count();
    leaks.streams = streams_.live_count();
    leaks.events = events_.live_count();
    leaks.graph_allocations = graph_memory_.live_count();
    leaks.graph_allocation_bytes = graph_memory_.live_bytes();
    leaks.captures = platform_->captures().CountOf(ordinal_);
    leaks.graphs = platform_->graphs().graph_count(ordinal_);
    leaks.graph_execs = platform_->graphs().exec_count(ordinal_);
    leaks.user_objects = platform_->user_objects().live_count(ordinal_);
    platform_->physical_memory().FreeClosed();
    platform_->physical_memory().AddLeaks(ordinal_, &leaks);
    platform_->virtual_memory().AddLeaks(ordinal_, &leaks);
  }
  platform_->host_ranges().AddLeaks(ordinal_, &leaks);
  return leaks;
}

void SimDevice::Enter(DeviceCall call) {
  if (HeldLocks() != 0) {
    SimFatal(std::string(DeviceCallName(call)) + " called with " +
             std::to_string(HeldLocks()) + " lock(s) of Strata held");
  }
  CountCall(call);
  UserObjectTable& objects = platform_->user_objects();
  if (objects.has_due() && !HostFunctionScope::Active()) {
    objects.RunDestructors(&mutex_);
  }
  capacity_.Next(call, [this](const CapacityStep& step) { Apply(step); });
}

void SimDevice::Apply(const CapacityStep& step) {
  SimLock lock(mutex_);
  memory_.TakeExternal(step.take_bytes);
  memory_.GiveExternal(step.give_bytes);
}

std::unique_lock<std::recursive_mutex> SimDevice::HoldOrder() {
  check::HazardMonitor* monitor = platform_->hazard_monitor();
  return monitor != nullptr ? monitor->Hold()
                            : std::unique_lock<std::recursive_mutex>();
}

Status SimDevice::Refusal(const CallRecord& call, const Stream* stream) {
  if (HostFunctionScope::Active()) return Status::kNotPermitted;
  if (sticky_error() != Status::kSuccess) return sticky_error();
  const FaultEffect effect =
      faults_.Next(call.call, static_cast<std::size_t>(call.bytes));
  if (effect.delay_ns != 0) PassTime(effect.delay_ns);
  if (effect.sticky) NoteOutcome(effect.status);
  if (effect.invalidate) {
    std::lock_guard lock(mutex_);
    platform_->captures().InvalidateOn(ordinal_);
  }
  if (effect.status != Status::kSuccess) return effect.status;
  CaptureSet::Subject subject;
  // Only these two calls accept streams of other devices. For the other calls,
  // captures do not check such a stream.
  const bool is_checked =
      stream != nullptr && (stream->device == ordinal_ ||
                            call.call == DeviceCall::kMallocFromPoolAsync ||
                            call.call == DeviceCall::kFreeAsync);
  subject.stream.uid = call.stream_uid;
  subject.stream.device = is_checked ? stream->device : -1;
  subject.event.value = reinterpret_cast<void*>(call.ptr);
  return CheckCaptures(CaptureRuleOf(call.call), subject);
}

Status SimDevice::CheckCaptures(const CaptureRule& rule,
                                CaptureSet::Subject subject) {
  CaptureSet& captures = platform_->captures();
  if (!captures.watches()) return Status::kSuccess;
  subject.device = ordinal_;
  subject.thread = CallingThreadNumber();
  std::lock_guard lock(mutex_);
  return captures.Check(rule, subject);
}

void SimDevice::PassTime(std::uint64_t ns) {
  modelled_ns_.fetch_add(ns, std::memory_order_relaxed);
  if (!scheduler_.moves_after_calls()) return;
  SimLock lock(mutex_);
  scheduler_.AfterCall(ns, &lock);
}

std::uint64_t SimDevice::NowNs() const {
  return std::max(modelled_ns(), scheduler_.NowNs());
}

void SimDevice::NoteOutcome(Status status) {
  if (status != Status::kSuccess) {
    sticky_error_.store(status, std::memory_order_release);
  }
}

bool SimDevice::Step(const Stream& stream) {
  SimLock lock(mutex_);
  return streams_.Accepts(stream) && scheduler_.Step(stream, &lock);
}

void SimDevice::StepAll() {
  SimLock lock(mutex_);
  scheduler_.AwaitDevice(ordinal_, &lock);
}

std::uint64_t SimDevice::PendingCount() const {
  SimLock lock(mutex_);
  return scheduler_.PendingCount(ordinal_);
}

}  // namespace strata::sim
