#include "strata/strategy/bfc/reports/annotations.h"

#include <algorithm>
#include <new>

#include "strata/allocation/diagnostics/annotation.h"

namespace strata {

const BfcAnnotation* BfcAnnotations::TakeCurrent() noexcept {
  try {
    Key key(CurrentAnnotation(), AnnotationOp(), AnnotationStep());
    if (std::get<0>(key).empty() && std::get<2>(key) == -1) return nullptr;
    const std::lock_guard<std::mutex> guard(mutex_);
    if (entries_.size() >= forget_at_) ForgetUnheld();
    BfcAnnotation& annotation = entries_[key];
    if (annotation.holders.load() == 0) {
      annotation.text = std::get<0>(key);
      annotation.op = std::get<1>(key);
      annotation.step = std::get<2>(key);
    }
    ++annotation.holders;
    return &annotation;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void BfcAnnotations::ForgetUnheld() {
  std::erase_if(entries_, [](const auto& entry) {
    return entry.second.holders.load() == 0;
  });
  forget_at_ = std::max(kFewEntries, 2 * entries_.size());
}

void BfcAnnotations::Hold(const BfcAnnotation* annotation) noexcept {
  if (annotation != nullptr) ++annotation->holders;
}

void BfcAnnotations::LetGo(const BfcAnnotation* annotation) noexcept {
  if (annotation != nullptr) --annotation->holders;
}

std::size_t BfcAnnotations::count() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return entries_.size();
}

}  // namespace strata
