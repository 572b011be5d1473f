#include "strata/strategy/bfc/arena/note.h"

#include <memory>
#include <utility>

#include "strata/allocation/diagnostics/annotation.h"

namespace strata {

const BfcAnnotation* BfcAnnotation::TakeCurrent() noexcept {
  try {
    std::string text = CurrentAnnotation();
    if (text.empty() && AnnotationStep() == -1) return nullptr;
    auto annotation = std::make_unique<BfcAnnotation>();
    annotation->text = std::move(text);
    annotation->op = AnnotationOp();
    annotation->step = AnnotationStep();
    return annotation.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void BfcAnnotation::Hold(const BfcAnnotation* annotation) noexcept {
  if (annotation != nullptr) ++annotation->holders;
}

void BfcAnnotation::LetGo(const BfcAnnotation* annotation) noexcept {
  if (annotation != nullptr && --annotation->holders == 0) delete annotation;
}

}  // namespace strata
