#ifndef STRATA_PLATFORM_SIM_STREAMS_STREAM_TABLE_H_
#define STRATA_PLATFORM_SIM_STREAMS_STREAM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "strata/platform/stream.h"

namespace strata::sim {

// A stream uid that this process has not used before.
std::uint64_t NewStreamUid();

// The handles of the legacy and per-thread streams, which need no creation; as
// in CUDA.
inline void* const kLegacyStreamHandle = reinterpret_cast<void*>(0x1);
inline void* const kPerThreadStreamHandle = reinterpret_cast<void*>(0x2);

// The streams of one device.
//
// Model: as in the driver, the handle of a destroyed stream is the first to be
//   reused (cuda_semantics.md S7). A uid is never reused.
// Threads: externally synchronised.
class StreamTable {
 public:
  explicit StreamTable(int device) : device_(device) {}

  Stream Create();
  // Returns false and does nothing unless `stream` was created here and is not
  // destroyed.
  bool Destroy(const Stream& stream);
  // The uid of the per-thread stream of a thread, which CallingThreadNumber()
  // identifies. Sets `is_new` to true at the first call for this thread.
  std::uint64_t PerThread(std::uint64_t thread, bool* is_new);

  // True if work can be submitted to `stream`.
  bool Accepts(const Stream& stream) const;
  // Completes a stream of which only the handle is known. Returns false and
  // leaves `stream` unchanged if no created stream has the handle.
  bool Find(void* handle, Stream* stream) const;

  std::size_t live_count() const { return created_.size(); }

 private:
  bool IsCreated(const Stream& stream) const;
  bool IsOfThisThread(const Stream& stream) const;

  const int device_;
  std::unordered_map<void*, std::uint64_t> created_;  // handle -> uid
  std::vector<void*> recycled_;                       // handles, last in first
  std::uintptr_t handles_made_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> per_thread_;  // to uids
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_STREAMS_STREAM_TABLE_H_
