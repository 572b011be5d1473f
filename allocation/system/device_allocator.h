#ifndef STRATA_ALLOCATION_SYSTEM_DEVICE_ALLOCATOR_H_
#define STRATA_ALLOCATION_SYSTEM_DEVICE_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/system/system_allocator.h"
#include "strata/platform/device.h"
#include "strata/platform/platform.h"

namespace strata {

// Device memory, from MemAlloc. Base of the allocators whose memory comes from
// another call of a Device.
//
// Model: one call of the device per request, and one per free. A failure
//   contains the free bytes that the device reports.
// Lifetime: keeps the platform alive.
class DeviceAllocator : public SystemAllocator {
 public:
  // `device` is an ordinal of `platform`. With `gate`, device calls do not
  // disturb a capture that is announced there.
  DeviceAllocator(std::shared_ptr<Platform> platform, int device,
                  std::shared_ptr<const CaptureGate> gate = nullptr);

  const char* name() const override { return "device"; }
  std::uint32_t unserved_flags() const override { return 0; }

 protected:
  // The device is the one of `place`.
  DeviceAllocator(Place place, std::shared_ptr<Platform> platform,
                  std::shared_ptr<const CaptureGate> gate);

  Device& device() const { return device_; }

 private:
  // The device's calls.
  virtual Status Call(std::size_t bytes, void** data) noexcept;
  virtual Status CallFree(void* data) noexcept;
  // Describes a refused request.
  virtual void Explain(Status status, Failure& failure) noexcept;

  void* Obtain(const Request& request, Failure& failure) noexcept final;
  Status Return(void* data, std::size_t bytes) noexcept final;

  std::shared_ptr<Platform> platform_;
  Device& device_;
  std::shared_ptr<const CaptureGate> gate_;  // null: none
};

// Page-locked host memory, from MallocHost.
class PinnedAllocator final : public DeviceAllocator {
 public:
  // `device` is an ordinal of `platform`.
  //
  // Errors: std::invalid_argument if the device has no such memory.
  PinnedAllocator(std::shared_ptr<Platform> platform, int device,
                  std::shared_ptr<const CaptureGate> gate = nullptr);

  const char* name() const override { return "pinned"; }
  std::uint32_t unserved_flags() const override { return kLegacyIpc; }

 private:
  Status Call(std::size_t bytes, void** data) noexcept override;
  Status CallFree(void* data) noexcept override;
  void Explain(Status status, Failure& failure) noexcept override;
};

// Memory that migrates between host and device, from MallocManaged.
class ManagedAllocator final : public DeviceAllocator {
 public:
  // `device` is an ordinal of `platform`. The place served is
  // ManagedPlace(device), or DevicePlace(device) in managed memory.
  //
  // Errors: std::invalid_argument if the device has no such memory.
  ManagedAllocator(std::shared_ptr<Platform> platform, int device,
                   PlaceKind serves = PlaceKind::kManaged,
                   std::shared_ptr<const CaptureGate> gate = nullptr);

  const char* name() const override { return "managed"; }
  std::uint32_t unserved_flags() const override { return kLegacyIpc; }

 private:
  Status Call(std::size_t bytes, void** data) noexcept override;
};

// Sets reason, status and memory numbers of `failure` for a device call that
// refused memory.
void ExplainDeviceFailure(Device& device, Status status, Failure& failure);
// Sets the memory numbers of `failure`, if the device reports them.
void AddDeviceMemory(Device& device, Failure& failure);

}  // namespace strata

#endif  // STRATA_ALLOCATION_SYSTEM_DEVICE_ALLOCATOR_H_
