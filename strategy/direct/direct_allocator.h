#ifndef STRATA_STRATEGY_DIRECT_DIRECT_ALLOCATOR_H_
#define STRATA_STRATEGY_DIRECT_DIRECT_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/decorator.h"
#include "strata/allocation/record_slab.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// No pool: each request allocates from the system, and each free returns to it.
//
// Model: a free first waits for the work of the chain's stream, because the
//   system may reuse the memory at once (cuda_semantics.md H3, M6). If it
//   cannot wait, the memory is held, and freed by a later call that can wait.
// Threads: any thread.
// Cost: a system call per request; a host wait and a system call per free. The
//   baseline for the other strategies.
class DirectAllocator final : public Decorator {
 public:
  DirectAllocator(std::shared_ptr<ChunkPool> pool,
                  std::shared_ptr<ChainStream> stream);
  ~DirectAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // The only idle memory is held because a free could not wait.
  std::size_t Release() noexcept override { return FreeKept(); }
  Stream stream() const override { return stream_->stream(); }
  const char* name() const override { return "direct"; }
  std::uint32_t unserved_flags() const override { return kOneHandle; }
  HitPath* hit_path() override { return nullptr; }

 private:
  // Returns the bytes freed to the system.
  std::size_t FreeKept() noexcept;

  std::shared_ptr<ChainStream> stream_;
  std::atomic<std::size_t> kept_count_{0};
  SpinLock lock_;
  // Freed by users, but not yet below; guarded by lock_.
  RecordSlab::List kept_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_DIRECT_DIRECT_ALLOCATOR_H_
