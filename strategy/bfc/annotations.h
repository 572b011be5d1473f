#ifndef STRATA_STRATEGY_BFC_ANNOTATIONS_H_
#define STRATA_STRATEGY_BFC_ANNOTATIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "strata/platform/require_cxx20.h"

namespace strata {

// What a thread was doing when it allocated (allocation/annotation.h).
struct BfcAnnotation {
  std::string text;  // CurrentAnnotation()
  std::string op;    // AnnotationOp()
  std::int64_t step = -1;
  // Allocations, and snapshots being made.
  mutable std::atomic<std::size_t> holders{0};
};

// The annotations of live allocations, each kept once however many have it.
//
// Model: one that nobody holds any more stays until the number kept has doubled
//   since such ones were last forgotten.
// Threads: any thread; Hold and LetGo also under a spin lock.
// Cost: a lock, and the heap for one that is new; an atomic operation to hold
//   one or to let go of it.
class BfcAnnotations {
 public:
  BfcAnnotations() = default;
  BfcAnnotations(const BfcAnnotations&) = delete;
  BfcAnnotations& operator=(const BfcAnnotations&) = delete;

  // That of the calling thread, held for the caller; null if there is none, or
  // if the host is out of memory.
  const BfcAnnotation* TakeCurrent() noexcept;
  // One more holder, or one less. Null is ignored.
  static void Hold(const BfcAnnotation* annotation) noexcept;
  static void LetGo(const BfcAnnotation* annotation) noexcept;

  // How many are kept.
  std::size_t count() const;

 private:
  using Key = std::tuple<std::string, std::string, std::int64_t>;
  static constexpr std::size_t kFewEntries = 64;

  void ForgetUnheld();  // mutex_ is held

  mutable std::mutex mutex_;
  std::map<Key, BfcAnnotation> entries_;  // guarded by mutex_
  std::size_t forget_at_ = kFewEntries;   // entries; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_ANNOTATIONS_H_
