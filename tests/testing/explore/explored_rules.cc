// The rules that decide which steps of a program under exploration are correct.

#include <algorithm>

#include "strata/tests/testing/explore/explored_program.h"

namespace strata {

bool ExploredProgram::IsInput(const Capture& capture, std::size_t life) const {
  return std::find(capture.inputs.begin(), capture.inputs.end(), life) !=
         capture.inputs.end();
}

std::size_t ExploredProgram::LiveCount() const {
  return static_cast<std::size_t>(std::count_if(
      lives_.begin(), lives_.end(),
      [](const Life& life) { return life.allocation != nullptr; }));
}

std::vector<ExploredStep> ExploredProgram::Enabled() const {
  std::vector<ExploredStep> steps;
  const auto add = [&](StepKind kind, std::size_t stream, std::size_t index) {
    steps.push_back({kind, static_cast<std::uint8_t>(stream),
                     static_cast<std::uint8_t>(index)});
  };
  for (std::size_t s = 0; s < options_.streams; ++s) {
    if (LiveCount() < options_.blocks) add(StepKind::kAlloc, s, lives_.size());
    if (MayBegin(s)) add(StepKind::kBegin, s, captures_.size());
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      if (MayUse(lives_[i], s)) add(StepKind::kUse, s, i);
      if (MayMark(lives_[i], s)) add(StepKind::kMark, s, i);
    }
    if (order_->Completed(s) < order_->Submitted(s)) {
      add(StepKind::kComplete, s, 0);
    }
    if ((used_ & Bit(s)) == 0) break;  // the remaining streams are unused too
  }
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    if (MayFree(i)) add(StepKind::kFree, lives_[i].owner, i);
  }
  for (std::size_t c = 0; c < captures_.size(); ++c) {
    const std::size_t origin = captures_[c].origin;
    if (IsActive(c)) {
      add(StepKind::kEnd, origin, c);
    } else if (MayLaunch(captures_[c])) {
      add(StepKind::kLaunch, origin, c);
    }
  }
  return steps;
}

bool ExploredProgram::MayUse(const Life& life, std::size_t stream) const {
  if (life.allocation == nullptr) return false;
  if (life.capture == kNone || !IsActive(life.capture)) return true;
  // Only for a stream that takes part in the capture, or joins it.
  return capture_of_[stream] == kNone || capture_of_[stream] == life.capture;
}

bool ExploredProgram::MayMark(const Life& life, std::size_t stream) const {
  if (life.allocation == nullptr || stream == life.owner) return false;
  if ((life.marks & Bit(stream)) == 0) return true;
  // A mark in the capture covers more than a mark before it.
  const std::size_t capture = capture_of_[stream];
  return capture != kNone && life.capture == kNone &&
         (life.held & Bit(capture)) == 0;
}

bool ExploredProgram::MayFree(std::size_t index) const {
  const Life& life = lives_[index];
  if (life.allocation == nullptr) return false;
  if ((life.needs & ~life.marks) != 0) return false;
  for (std::size_t c = 0; c < captures_.size(); ++c) {
    const Capture& capture = captures_[c];
    if (!IsInput(capture, index)) continue;
    if ((life.held & Bit(c)) != 0) continue;
    if (IsActive(c)) {
      // The block must stay alive for future launches.
      if (capture_of_[life.owner] != c) return false;
    } else if (capture.origin != life.owner &&
               (life.marks & Bit(capture.origin)) == 0) {
      return false;
    }
  }
  return true;
}

bool ExploredProgram::MayBegin(std::size_t stream) const {
  if (captures_.size() >= options_.captures || IsCapturing(stream)) {
    return false;
  }
  return !options_.shares_pool ||
         std::none_of(captures_.begin(), captures_.end(),
                      [](const Capture& c) { return c.guard != nullptr; });
}

bool ExploredProgram::MayLaunch(const Capture& capture) const {
  return capture.valid && !IsCapturing(capture.origin);
}

bool ExploredProgram::MayRefuse() const {
  return options_.fitting_blocks != 0 &&
         (LiveCount() >= options_.fitting_blocks || !captures_.empty());
}

}  // namespace strata
