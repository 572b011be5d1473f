#include "strata/allocation/annotation.h"

#include <vector>

namespace strata {
namespace {

thread_local const ScopedAnnotation* innermost = nullptr;
thread_local std::int64_t current_step = -1;

}  // namespace

ScopedAnnotation::ScopedAnnotation(const char* name,
                                   const char* detail) noexcept
    : name_(name), detail_(detail), outer_(innermost) {
  innermost = this;
}

ScopedAnnotation::~ScopedAnnotation() { innermost = outer_; }

void SetAnnotationStep(std::int64_t step) noexcept { current_step = step; }

std::int64_t AnnotationStep() noexcept { return current_step; }

const char* AnnotationOp() noexcept {
  return innermost != nullptr ? innermost->name() : "";
}

std::string CurrentAnnotation() {
  std::vector<const ScopedAnnotation*> frames;
  for (const auto* frame = innermost; frame != nullptr;
       frame = frame->outer()) {
    frames.push_back(frame);
  }
  std::string text;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (!text.empty()) text += " / ";
    text += (*frame)->name();
    if ((*frame)->detail() != nullptr) {
      text += '{';
      text += (*frame)->detail();
      text += '}';
    }
  }
  return text;
}

}  // namespace strata
