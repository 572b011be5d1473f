#ifndef STRATA_ALLOCATION_SYSTEM_ALLOCATOR_H_
#define STRATA_ALLOCATION_SYSTEM_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/record_slab.h"
#include "strata/platform/spin_lock.h"
#include "strata/platform/status.h"

namespace strata {

// The bottom of a chain: memory from the system, one call per request. Gives
// its subclasses records, counters and the answers a bottom layer owes.
//
// Model: the record is taken before the system is asked, so that a request
//   cannot fail after the system has given memory. What the system does not
//   take back (a driver during somebody's capture, a kernel that has no mapping
//   to spare) is kept, and Release tries again.
// Threads: any thread.
// Cost: one system call per request.
class SystemAllocator : public Allocator {
 public:
  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept final;
  void DoFree(Allocation* allocation) noexcept final;
  ~SystemAllocator() override;
  // Gives the system what it has refused before.
  std::size_t Release() noexcept final;
  std::size_t unreturned_bytes() const noexcept final {
    return unreturned_bytes_;
  }
  void AppendUnreturned(std::vector<BlockInfo>& blocks) const final;
  bool RecordStream(Allocation* allocation, Stream stream) noexcept final;
  void EraseStream(Allocation* allocation, Stream stream) noexcept final;
  void StreamDestroyed(Stream stream) noexcept final;

  Allocator* underlying() const final { return nullptr; }
  Place place() const final { return place_; }
  Stream stream() const final { return Stream(); }
  std::size_t max_alignment() const override { return natural_alignment_; }
  std::size_t natural_alignment() const final { return natural_alignment_; }
  Stats stats() const final;
  void ResetPeak() final;
  void Accept(AllocatorVisitor& visitor) const final;
  Reclaimer* reclaimer() const final { return nullptr; }
  HitPath* hit_path() final { return nullptr; }

 protected:
  SystemAllocator(Place place, std::size_t natural_alignment)
      : place_(place), natural_alignment_(natural_alignment) {}

  // The size of what Obtain gives for a request of `bytes`.
  virtual std::size_t SizeOf(std::size_t bytes) const { return bytes; }
  // Of the pieces handed out so far.
  std::uint64_t in_use_bytes() const { return in_use_bytes_.load(); }

  // Null, with reason, status and device numbers in `failure`, if the system
  // refuses.
  virtual void* Obtain(const Request& request, Failure& failure) noexcept = 0;
  // What the system says to having the memory back. kInvalidValue: it does not
  // know it, and is not asked again, as it may have the address for somebody
  // else by then.
  virtual Status Return(void* data, std::size_t bytes) noexcept = 0;

 private:
  const Place place_;
  const std::size_t natural_alignment_;
  std::atomic<std::uint64_t> allocations_{0};
  std::atomic<std::uint64_t> frees_{0};
  std::atomic<std::uint64_t> failures_{0};
  std::atomic<std::uint64_t> in_use_bytes_{0};
  std::atomic<std::uint64_t> peak_in_use_bytes_{0};
  std::atomic<std::size_t> unreturned_bytes_{0};

  mutable SpinLock lock_;
  RecordList unreturned_;  // guarded by lock_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_SYSTEM_ALLOCATOR_H_
