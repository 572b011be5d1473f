#ifndef STRATA_STRATEGY_DIRECT_ALLOCATOR_H_
#define STRATA_STRATEGY_DIRECT_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_pool.h"
#include "strata/allocation/decorator.h"
#include "strata/allocation/record_slab.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// No pool: every request goes to the system, and every free gives it back.
//
// Model: a free waits for the work of the chain's stream first, because the
//   system may hand the memory to anyone at once (cuda_semantics.md H3, M6).
//   What cannot be waited for is kept, and freed by a later call that can.
// Threads: any thread.
// Cost: a system call per request, a host wait and a system call per free. The
//   baseline that the other strategies are measured against.
class DirectAllocator final : public Decorator {
 public:
  DirectAllocator(std::shared_ptr<ChunkPool> pool,
                  std::shared_ptr<ChainStream> stream);
  ~DirectAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // Holds nothing idle but what it could not wait for.
  std::size_t Release() noexcept override { return FreeKept(); }
  Stream stream() const override { return stream_->stream(); }
  const char* name() const override { return "direct"; }
  std::uint32_t unserved_flags() const override { return kOneHandle; }
  HitPath* hit_path() override { return nullptr; }

 private:
  // Returns the bytes that went back.
  std::size_t FreeKept() noexcept;

  std::shared_ptr<ChainStream> stream_;
  std::atomic<std::size_t> kept_count_{0};
  SpinLock lock_;
  RecordList kept_;  // freed, but not yet below; guarded by lock_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_DIRECT_ALLOCATOR_H_
