#include "strata/allocation/diagnostics/annotation.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace strata {
namespace {

thread_local const ScopedAnnotation* innermost = nullptr;
thread_local std::int64_t current_step = -1;

// Appends `frame` and the frames around it, outermost first.
void AppendFrames(const ScopedAnnotation* frame, std::string& text) {
  if (frame == nullptr) return;
  AppendFrames(frame->outer(), text);
  if (!text.empty()) text += " / ";
  text += frame->name();
  if (frame->detail() == nullptr) return;
  text += '{';
  text += frame->detail();
  text += '}';
}

// Writes text from the end of a buffer towards its start.
class BackwardText {
 public:
  BackwardText(char* begin, char* end) : begin_(begin), at_(end) {}

  char* at() const { return at_; }
  bool full() const { return at_ == begin_; }

  // Writes `text` before the text so far. Omits the first bytes of `text` if
  // the room is too small.
  void Prepend(std::string_view text) {
    const auto room = static_cast<std::size_t>(at_ - begin_);
    const std::size_t count = std::min(room, text.size());
    at_ -= count;
    std::memcpy(at_, text.data() + (text.size() - count), count);
  }

 private:
  char* const begin_;
  char* at_;
};

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
  std::string text;
  AppendFrames(innermost, text);
  return text;
}

std::size_t CopyCurrentAnnotation(char* text, std::size_t capacity) noexcept {
  char* const end = text + (capacity - 1);
  BackwardText backward(text, end);
  for (const auto* frame = innermost; frame != nullptr && !backward.full();
       frame = frame->outer()) {
    if (frame != innermost) backward.Prepend(" / ");
    if (frame->detail() != nullptr) {
      backward.Prepend("}");
      backward.Prepend(frame->detail());
      backward.Prepend("{");
    }
    backward.Prepend(frame->name());
  }
  const auto length = static_cast<std::size_t>(end - backward.at());
  std::memmove(text, backward.at(), length);
  text[length] = '\0';
  return length;
}

}  // namespace strata
