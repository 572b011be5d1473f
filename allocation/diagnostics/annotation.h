#ifndef STRATA_ALLOCATION_DIAGNOSTICS_ANNOTATION_H_
#define STRATA_ALLOCATION_DIAGNOSTICS_ANNOTATION_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata {

// Describes the work of the calling thread, for reports about the origin of
// memory.
//
// Model: frames form a stack per thread: "train{step=3} / conv1 / MatMul". The
//   innermost frame is the operation. The step belongs to the thread. Layers
//   that store descriptions copy CurrentAnnotation() at allocation.
// Threads: each thread has its own stack.
// Cost: a frame is two pointer writes; the text is built on request.
// Source: tf_bfc.md R57 (ScopedAllocationTrace), R4 (op name, step id).
class ScopedAnnotation {
 public:
  // `name` and `detail` must outlive this object. `detail` is printed in braces
  // and may be null.
  explicit ScopedAnnotation(const char* name,
                            const char* detail = nullptr) noexcept;
  ScopedAnnotation(const ScopedAnnotation&) = delete;
  ScopedAnnotation& operator=(const ScopedAnnotation&) = delete;
  ~ScopedAnnotation();

  const char* name() const { return name_; }
  const char* detail() const { return detail_; }
  const ScopedAnnotation* outer() const { return outer_; }

 private:
  const char* name_;
  const char* detail_;
  const ScopedAnnotation* outer_;
};

// Step (batch, iteration) of the calling thread; -1: none.
void SetAnnotationStep(std::int64_t step) noexcept;
std::int64_t AnnotationStep() noexcept;

// Name of the innermost frame; "" if there is none. Valid while the frame
// exists.
const char* AnnotationOp() noexcept;

// All frames, outermost first: "train{step=3} / conv1 / MatMul"; "" if there is
// none.
std::string CurrentAnnotation();

// Like CurrentAnnotation(), without a heap call. Writes the text to `text`,
// ended by a 0, and returns its length. If it does not fit, cuts off the start,
// which holds the outer frames. `capacity` is not 0.
std::size_t CopyCurrentAnnotation(char* text, std::size_t capacity) noexcept;

}  // namespace strata

#endif  // STRATA_ALLOCATION_DIAGNOSTICS_ANNOTATION_H_
