#ifndef STRATA_ALLOCATION_SYSTEM_SYSTEM_ALLOCATOR_H_
#define STRATA_ALLOCATION_SYSTEM_SYSTEM_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/record_slab.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/platform/status.h"

namespace strata {

// The bottom of a chain: memory from the system, one call per request. Provides
// records, counters and the functions of a bottom layer to its subclasses.
//
// Model: the record is acquired before the system call. So a request cannot
//   fail after the system has returned memory. The system may refuse to take
//   memory back: a driver during another program's capture, or a kernel without
//   spare mappings. Such memory is kept, and Release() tries again.
// Threads: any thread.
// Cost: one system call per request.
class SystemAllocator : public Allocator {
 public:
  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept final;
  void DoFree(Allocation* allocation) noexcept final;
  ~SystemAllocator() override;
  // Returns memory that the system refused before.
  std::size_t Release() noexcept final;
  std::size_t unreturned_bytes() const noexcept final {
    return unreturned_bytes_;
  }
  void AppendUnreturned(std::vector<BlockInfo>& blocks) const final;
  bool RecordStream(Allocation* /*of*/, Stream /*stream*/) noexcept final {
    return false;
  }
  void EraseStream(Allocation* /*of*/, Stream /*stream*/) noexcept final {}
  void StreamDestroyed(Stream /*stream*/) noexcept final {}

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
  std::uint32_t unserved_flags() const override { return kLegacyIpc; }
  std::size_t system_size(std::size_t bytes) const override { return bytes; }

 protected:
  SystemAllocator(Place place, std::size_t natural_alignment)
      : place_(place), natural_alignment_(natural_alignment) {}

  // Bytes of the pieces in use.
  std::uint64_t in_use_bytes() const { return in_use_bytes_.load(); }

  // Obtains memory. If the system refuses, returns null and sets reason, status
  // and device numbers of `failure`.
  virtual void* Obtain(const Request& request, Failure& failure) noexcept = 0;
  // Returns memory to the system. kInvalidValue: the system does not know the
  // address. It is not offered again, because the system may meanwhile have
  // allocated the address to another caller.
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
  RecordSlab::List unreturned_;  // guarded by lock_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_SYSTEM_SYSTEM_ALLOCATOR_H_
