#ifndef STRATA_ALLOCATION_OBSERVE_ALLOCATOR_H_
#define STRATA_ALLOCATION_OBSERVE_ALLOCATOR_H_

#include <cstdint>
#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/platform/device.h"
#include "strata/platform/platform.h"

namespace strata {

// Tells the observers of the device which blocks there are, and for which
// streams they are marked (device_events.def), so that a checker or a recorded
// trace knows what becomes of memory above the device.
//
// Model: a block is the user's size from after the layers below have given it
//   to before they take it back. Blocks of layers above, as those that the
//   guard keeps, are blocks until those let them go. What threads do in the
//   layers below is in the order of the device's tag: their locks see to that
//   (cuda_semantics.md R5). Events of a block are told by the device of the
//   stream that they name, which for a mark may be another one. Handles without
//   addresses are not told.
// Cost: up to three events per call.
class ObserveAllocator final : public Decorator {
 public:
  // For memory of the platform's device `ordinal`. Blocks are for work in
  // `stream`, if that has a uid.
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

#endif  // STRATA_ALLOCATION_OBSERVE_ALLOCATOR_H_
