#ifndef STRATA_ALLOCATION_DIAGNOSTICS_OBSERVE_ALLOCATOR_H_
#define STRATA_ALLOCATION_DIAGNOSTICS_OBSERVE_ALLOCATOR_H_

#include <cstdint>
#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/platform/device.h"
#include "strata/platform/platform.h"

namespace strata {

// Reports the blocks and their stream marks to the observers of the device
// (device_events.def). So a checker or a recorded trace knows the use of memory
// above the device.
//
// Model: a block has the size that the user requested. It exists from the end
//   of the allocation below to the begin of the free below. A block that a
//   layer above holds, such as the guard, exists until that layer frees it.
//   Operations of threads in the layers below are in the order of the device's
//   tag, because of the locks there (cuda_semantics.md R5). The device of the
//   stream in an event reports the event. For a mark this may be another
//   device. Handles without addresses are not reported.
// Cost: up to three events per call.
class ObserveAllocator final : public Decorator {
 public:
  // Observes memory of the device `ordinal` of the platform. Blocks are for
  // work in `stream`, if it has a uid.
  ObserveAllocator(std::shared_ptr<Allocator> underlying,
                   std::shared_ptr<Platform> platform, int ordinal,
                   Stream stream);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  std::size_t Release() noexcept override;
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  bool RecordUse(Allocation* allocation, Stream stream,
                 Event event) noexcept override;
  const char* name() const override { return "observe"; }
  HitPath* hit_path() override { return nullptr; }

 private:
  void NoteHost(DeviceCall event) noexcept;
  // `value` as in device_events.def.
  void NoteBlock(DeviceCall event, const Allocation& allocation, Stream stream,
                 std::uint64_t value = 0) noexcept;

  const std::shared_ptr<Platform> platform_;
  Device& device_;
  const Stream chain_stream_;
  const bool has_addresses_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DIAGNOSTICS_OBSERVE_ALLOCATOR_H_
