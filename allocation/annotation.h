#ifndef STRATA_ALLOCATION_ANNOTATION_H_
#define STRATA_ALLOCATION_ANNOTATION_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "strata/platform/require_cxx20.h"

namespace strata {

// What the calling thread is doing, for reports on memory: who allocated this?
//
// Model: frames form a stack per thread: "train{step=3} / conv1 / MatMul". The
//   innermost one is the operation; the step is the thread's. Layers that keep
//   notes copy CurrentAnnotation() at allocation.
// Threads: each thread has its own.
// Cost: a frame is two pointer writes; the text is only made when asked for.
// Source: tf_bfc.md R57 (ScopedAllocationTrace), R4 (op name, step id).
class ScopedAnnotation {
 public:
  // `name` and `detail` must outlive this object; `detail` is printed in braces
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

// The step (batch, iteration) the calling thread works on; -1: none.
void SetAnnotationStep(std::int64_t step) noexcept;
std::int64_t AnnotationStep() noexcept;

// The name of the innermost frame; "" without one. Valid as long as the frame.
const char* AnnotationOp() noexcept;

// "train{step=3} / conv1 / MatMul", outermost first; "" without a frame.
std::string CurrentAnnotation();

// The same without a heap call, for layers that must not make one: writes it to
// `text`, ended by a 0, and returns its length. What does not fit is cut off at
// the start, where the outer frames are. `capacity` is not 0.
std::size_t CopyCurrentAnnotation(char* text, std::size_t capacity) noexcept;

}  // namespace strata

#endif  // STRATA_ALLOCATION_ANNOTATION_H_
