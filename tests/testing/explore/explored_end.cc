// The final checks of a program under exploration.

#include <algorithm>
#include <cstring>

#include "strata/tests/testing/explore/explored_program.h"

namespace strata {
std::uint64_t ExploredProgram::Word(std::uintptr_t address) {
  std::uint64_t word = 0;
  const void* view = platform_->sim_device(0).HostView(address, kWordBytes);
  Expect(view != nullptr, "a live block has no memory");
  if (view != nullptr) std::memcpy(&word, view, kWordBytes);
  return word;
}

void ExploredProgram::CheckContents(bool graphs_too) {
  if (options_.data == "phantom") return;
  for (std::size_t s = 0; s < options_.streams; ++s) {
    const Position completed = order_->Completed(s);
    for (const Work& work : work_[s]) {
      if (work.position > completed) break;
      if (work.life != kNone) lives_[work.life].written = true;
    }
  }
  for (const Life& life : lives_) {
    if (life.allocation == nullptr) continue;
    // Launches overwrite words that nodes of other blocks wrote there.
    const bool is_known =
        life.capture == kNone ? life.written : graphs_too && life.captured_use;
    if (!is_known) continue;
    const auto end = life.address + life.allocation->size();
    for (const std::uintptr_t at :
         {life.address, end / kWordBytes * kWordBytes - kWordBytes}) {
      const bool is_own = std::find(life.words.begin(), life.words.end(),
                                    Word(at)) != life.words.end();
      Expect(is_own, "a live block holds what it was not given");
    }
  }
}

void ExploredProgram::EndAll() {
  for (std::size_t c = 0; c < captures_.size(); ++c) {
    if (IsActive(c)) End(c);
  }
  for (std::size_t c = 0; c < captures_.size(); ++c) {
    if (captures_[c].valid) Launch(c);
  }
}

void ExploredProgram::FreeAll() {
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    if (lives_[i].allocation == nullptr) continue;
    for (std::size_t s = 0; s < options_.streams; ++s) {
      if (MayMark(lives_[i], s)) Mark(i, s);
    }
    Expect(MayFree(i), "a program that cannot end");
    Free(i);
  }
}

void ExploredProgram::DropGraphs() {
  for (const Capture& capture : captures_) {
    if (capture.exec) {
      Expect(device().GraphExecDestroy(capture.exec), "GraphExecDestroy");
    }
    if (capture.graph) {
      Expect(device().GraphDestroy(capture.graph), "GraphDestroy");
    }
  }
  // A launch keeps its pool alive. The device releases user objects only at the
  // next call after the launch.
  if (!captures_.empty()) platform_->sim_device(0).StepAll();
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  Expect(device().MemGetInfo(&free_bytes, &total_bytes), "MemGetInfo");
}

void ExploredProgram::ReleaseAll() {
  if (pool_ != 0) facade_->RemoveMemoryPoolOfCUDAGraph(pool_);
  facade_->Release(kHere);
  const Stats stats = facade_->GetStats(kHere);
  Expect(stats.live_allocations() == 0, "something is counted as live");
  Expect(stats.in_use_bytes == 0, "something is counted as in use");
  Expect(stats.reserved_bytes == 0, "something stays reserved");
}

void ExploredProgram::Finish() {
  EndAll();
  // Half of the programs end with pending work.
  if (word_ % 2 == 0) {
    platform_->sim_device(0).StepAll();
    CheckContents(true);
  }
  FreeAll();
  DropGraphs();
  ReleaseAll();
  Close();
}

void ExploredProgram::Close() {
  const std::vector<Stream> streams = [&] {
    std::vector<Stream> own;
    for (std::size_t s = 0; s < options_.streams; ++s) own.push_back(stream(s));
    return own;
  }();
  order_.reset();
  captures_.clear();
  lives_.clear();
  facade_.reset();
  for (const Stream& own : streams) {
    Expect(device().StreamDestroy(own), "StreamDestroy");
  }
  for (const Event event : events_) {
    Expect(device().EventDestroy(event), "EventDestroy");
  }
  const std::string leaks = platform_->LeakReport();
  if (!leaks.empty()) findings_ += "leaked: " + leaks + "\n";
}

}  // namespace strata
