#ifndef STRATA_ALLOCATION_STREAM_SAFE_ALLOCATOR_H_
#define STRATA_ALLOCATION_STREAM_SAFE_ALLOCATOR_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strata/allocation/chain_stream.h"
#include "strata/allocation/decorator.h"
#include "strata/platform/platform.h"

namespace strata {

// Keeps memory from being reused while another stream may still use it.
//
// Model: freed on its own stream, a block is reusable at once. RecordStream
//   marks an allocation; freeing a marked one first waits, on the host, for the
//   work in the streams that marked it. A stream that is announced as destroyed
//   is waited for then, and its marks are dropped. A strategy that keeps marks
//   itself, without a wait, is asked first; this layer has those it declines.
// Threads: any thread.
// Cost: nothing for an allocation without marks; a host wait for a marked one.
// Source: cuda_semantics.md §5.2 M4; paddle.md §3.6.
class StreamSafeAllocator final : public Decorator {
 public:
  // `platform` finds the devices of the streams; null for host memory, where
  // nothing is marked. `own` is the stream of the chain.
  StreamSafeAllocator(std::shared_ptr<Allocator> underlying,
                      std::shared_ptr<Platform> platform,
                      std::shared_ptr<ChainStream> own);

  void DoFree(Allocation* allocation) noexcept override;
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  void EraseStream(Allocation* allocation, Stream stream) noexcept override;
  void StreamDestroyed(Stream stream) noexcept override;
  const char* name() const override { return "stream_safe"; }

 private:
  using Marks = std::unordered_map<const Block*, std::vector<Stream>>;

  void Wait(Stream stream) noexcept;

  std::shared_ptr<Platform> platform_;
  std::shared_ptr<ChainStream> own_;
  std::mutex mutex_;
  Marks marks_;  // of live allocations; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAM_SAFE_ALLOCATOR_H_
