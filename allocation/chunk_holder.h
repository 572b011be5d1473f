#ifndef STRATA_ALLOCATION_CHUNK_HOLDER_H_
#define STRATA_ALLOCATION_CHUNK_HOLDER_H_

#include <cstddef>

#include "strata/platform/stream.h"

namespace strata {

// Memory moves between the system and us in steps of this size on every known
// device (cuda_semantics.md D5, V3), so a chunk may free up to one step more
// than its size.
inline constexpr std::size_t kSystemStepBytes = std::size_t{2} << 20;

// A strategy as the ChunkPool of its place sees it: somebody who keeps idle
// chunks and can part with them.
//
// Threads: every function from any thread, with no lock held.
class ChunkHolder {
 public:
  ChunkHolder() = default;
  ChunkHolder(const ChunkHolder&) = delete;
  ChunkHolder& operator=(const ChunkHolder&) = delete;
  virtual ~ChunkHolder() = default;

  // The stream whose work used the idle chunks; a Stream without uid if the
  // strategy serves all streams of the place.
  virtual Stream holder_stream() const noexcept = 0;
  // Bytes in idle chunks.
  virtual std::size_t IdleBytes() const noexcept = 0;
  // An upper bound on what the system has more once they are all given back:
  // each chunk counts in whole steps of kSystemStepBytes.
  virtual std::size_t IdleSystemBytes() const noexcept = 0;
  // The size of the smallest idle chunk of at least `bytes`; 0: none.
  virtual std::size_t SmallestIdle(std::size_t bytes) const noexcept = 0;
  virtual std::size_t LargestIdle() const noexcept = 0;
  // Whether the work that used the idle chunks is done. Never waits.
  virtual bool IdleIsDone() noexcept = 0;

  // Gives the smallest idle chunk of at least `bytes` to the system, after the
  // work that used it; returns its bytes, 0 if there is none any more.
  virtual std::size_t GiveBack(std::size_t bytes) noexcept = 0;
  // The same, but to the ChunkPool, for another stream.
  virtual std::size_t OfferIdle(std::size_t bytes) noexcept = 0;
  // Gives all idle chunks to the system; returns their bytes.
  virtual std::size_t GiveBackAll() noexcept = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNK_HOLDER_H_
