#ifndef STRATA_STRATEGY_BFC_REPORTS_ANNOTATIONS_H_
#define STRATA_STRATEGY_BFC_REPORTS_ANNOTATIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata {

// The annotation of a thread at an allocation
// (allocation/diagnostics/annotation.h). Its holders are the allocation and
// snapshots in progress; the last one destroys it.
//
// Threads: any thread. Hold also under a spin lock.
struct BfcAnnotation {
  // Returns the annotation of the calling thread and holds it for the caller.
  // Null if there is none, or if the host is out of memory.
  static const BfcAnnotation* TakeCurrent() noexcept;
  // Adds or removes one holder. Ignores null.
  static void Hold(const BfcAnnotation* annotation) noexcept;
  static void LetGo(const BfcAnnotation* annotation) noexcept;

  std::string text;  // CurrentAnnotation()
  std::string op;    // AnnotationOp()
  std::int64_t step = -1;
  mutable std::atomic<std::size_t> holders{1};
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_REPORTS_ANNOTATIONS_H_
