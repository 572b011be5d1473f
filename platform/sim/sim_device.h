#ifndef STRATA_PLATFORM_SIM_SIM_DEVICE_H_
#define STRATA_PLATFORM_SIM_SIM_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

#include "strata/platform/call_record.h"
#include "strata/platform/device.h"
#include "strata/platform/sim/device_memory.h"
#include "strata/platform/sim/event_table.h"
#include "strata/platform/sim/fault_injector.h"
#include "strata/platform/sim/sim_leaks.h"
#include "strata/platform/sim/stream_table.h"

namespace strata {

class SimPlatform;

// A device that exists only on the host: addresses, accounting and rules are
// those of a GPU; nothing is computed.
//
// Model: memory is phantom: addresses that nothing on the host maps, so a
//   device of any size costs only its bookkeeping, and bytes written to it are
//   gone. Work is complete when its call returns (the inline policy). Free
//   memory moves in frames of 2 MiB, and an allocation fails exactly when no
//   frame is left for it (device_memory.h).
// Errors: stricter than a driver: a stream used after its destruction, or with
//   a recycled handle, is kInvalidResourceHandle. A call made by a function of
//   LaunchHostFunc is kNotPermitted. A call made with a Strata lock held
//   aborts the process.
// Threads: any thread; each call takes effect at once.
// Cost: under a microsecond; none grows with the number of live allocations
//   faster than the depth of a tree.
// Source: cuda_semantics.md §1, §6.1-6.4.
class SimDevice final : public Device {
 public:
  // `memory_bytes` is at least a frame and at most kMaxDeviceMemoryBytes.
  SimDevice(SimPlatform* platform, int ordinal, std::uint64_t memory_bytes,
            std::uint64_t fault_seed);
  ~SimDevice() override;

  int ordinal() const override { return ordinal_; }
  const Caps& caps() const override { return caps_; }

  Status MemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) override;
  Status Synchronize() override;

  Status StreamCreate(Stream* stream, unsigned flags) override;
  Status StreamDestroy(Stream stream) override;
  Stream LegacyStream() override;
  Stream PerThreadStream() override;
  Status WrapStream(void* handle, Stream* stream) override;
  Status StreamSynchronize(Stream stream) override;
  Status StreamQuery(Stream stream) override;
  Status StreamWaitEvent(Stream stream, Event event, unsigned flags) override;
  // Runs `function` before it returns.
  Status LaunchHostFunc(Stream stream, HostFunction function,
                        void* argument) override;

  Status EventCreate(Event* event, unsigned flags) override;
  Status EventDestroy(Event event) override;
  Status EventRecord(Event event, Stream stream, unsigned flags) override;
  Status EventQuery(Event event) override;
  Status EventSynchronize(Event event) override;

  // No bytes: kSuccess and a null address.
  Status MemAlloc(DevicePtr* ptr, std::size_t bytes) override;
  // Takes the start of an allocation of this device, managed memory or 0.
  Status MemFree(DevicePtr ptr) override;
  Status MallocHost(void** ptr, std::size_t bytes, unsigned flags) override;
  Status FreeHost(void* ptr) override;
  Status HostRegister(void* ptr, std::size_t bytes, unsigned flags) override;
  Status HostUnregister(void* ptr) override;
  Status MallocManaged(DevicePtr* ptr, std::size_t bytes,
                       unsigned flags) override;
  // Each end is device memory of this platform, or pinned, registered or
  // managed memory; any other range is kInvalidValue. Bytes move if both ends
  // can be reached from the host.
  Status MemcpyAsync(DevicePtr target, DevicePtr source, std::size_t bytes,
                     Stream stream) override;
  Status MemsetAsync(DevicePtr ptr, int value, std::size_t bytes,
                     Stream stream) override;
  Status PointerAttributes(DevicePtr ptr, PointerInfo* info) override;
  Status EnablePeerAccess(int peer) override;
  Status CanAccessPeer(int peer, bool* can) override;

  // Time that the successful calls so far would have taken (cost_table.h).
  std::uint64_t modelled_ns() const;
  // The most device memory that MemGetInfo would have shown as taken.
  std::uint64_t peak_used_bytes() const;

  // Makes calls fail from now on. An injected failure is counted and observed,
  // and has no other effect.
  //
  // Errors: as FaultInjector::Add.
  void AddFault(const FaultRule& rule);
  void ClearFaults();

  // Live device allocations, host ranges made by this device, streams, events.
  SimLeaks Leaks() const;

 protected:
  std::uint64_t NowNs() const override { return modelled_ns(); }

 private:
  // The frame of every entry point: counts the call, refuses it or runs
  // `body(CallRecord*)`, charges it for `*charged_bytes` (null: call.bytes) and
  // tells the observer.
  template <class Body>
  Status Run(CallRecord call, Body body,
             const std::size_t* charged_bytes = nullptr);
  void Enter(DeviceCall call);
  Status Refusal(const CallRecord& call);
  void Charge(DeviceCall call, std::size_t bytes);

  // kSuccess, or kInvalidResourceHandle.
  Status CheckStream(const Stream& stream) const;
  // kSuccess, or kInvalidResourceHandle if no device of the platform has it.
  Status CheckEvent(Event event) const;
  bool HasEvent(Event event) const;

  // What a range of a copy or fill is.
  enum class Reach { kNone, kDevice, kHost };
  Reach ReachOf(DevicePtr ptr, std::size_t bytes) const;
  // Copies and fills (sim_device_copy.cc): the check when they are submitted,
  // and what they do when their turn comes. Under mutex_.
  Status CheckCopy(DevicePtr target, DevicePtr source, std::size_t bytes) const;
  Status ExecuteCopy(DevicePtr target, DevicePtr source, std::size_t bytes);
  Status CheckFill(DevicePtr ptr, std::size_t bytes) const;
  Status ExecuteFill(DevicePtr ptr, int value, std::size_t bytes);

  SimPlatform* const platform_;
  const int ordinal_;
  const std::uint64_t instance_;  // unique for the life of the process
  Caps caps_;
  FaultInjector faults_;
  std::atomic<std::uint64_t> modelled_ns_{0};

  std::mutex& mutex_;    // the platform's
  DeviceMemory memory_;  // guarded by mutex_
  StreamTable streams_;  // guarded by mutex_
  EventTable events_;    // guarded by mutex_
  std::set<int> peers_;  // peer access enabled; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_SIM_DEVICE_H_
