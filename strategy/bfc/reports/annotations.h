#ifndef STRATA_STRATEGY_BFC_REPORTS_ANNOTATIONS_H_
#define STRATA_STRATEGY_BFC_REPORTS_ANNOTATIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "strata/base/require_cxx20.h"

namespace strata {

// The annotation of a thread at an allocation
// (allocation/diagnostics/annotation.h).
struct BfcAnnotation {
  std::string text;  // CurrentAnnotation()
  std::string op;    // AnnotationOp()
  std::int64_t step = -1;
  // References: allocations, and snapshots in progress.
  mutable std::atomic<std::size_t> holders{0};
};

// The annotations of live allocations. Equal ones are stored once.
//
// Model: an annotation without holders stays until the number of stored ones
//   has doubled since the last cleanup.
// Threads: any thread; Hold and LetGo also under a spin lock.
// Cost: a lock, and the heap for a new annotation. Hold and LetGo are one
//   atomic operation.
class BfcAnnotations {
 public:
  BfcAnnotations() = default;
  BfcAnnotations(const BfcAnnotations&) = delete;
  BfcAnnotations& operator=(const BfcAnnotations&) = delete;

  // Returns the annotation of the calling thread and holds it for the caller.
  // Null if there is none, or if the host is out of memory.
  const BfcAnnotation* TakeCurrent() noexcept;
  // Adds or removes one holder. Ignores null.
  static void Hold(const BfcAnnotation* annotation) noexcept;
  static void LetGo(const BfcAnnotation* annotation) noexcept;

  // Number of stored annotations.
  std::size_t count() const;

 private:
  using Key = std::tuple<std::string, std::string, std::int64_t>;
  static constexpr std::size_t kFewEntries = 64;

  void ForgetUnheld();  // Hold mutex_.

  mutable std::mutex mutex_;
  std::map<Key, BfcAnnotation> entries_;  // guarded by mutex_
  // Number of entries at the next cleanup; guarded by mutex_.
  std::size_t forget_at_ = kFewEntries;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_REPORTS_ANNOTATIONS_H_
