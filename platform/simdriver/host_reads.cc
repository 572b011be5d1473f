#include "strata/platform/simdriver/host_reads.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "strata/platform/simdriver/python_place.h"

namespace strata::simdriver {
namespace {

bool IsMainThread() {
  thread_local const bool is_main = syscall(SYS_gettid) == getpid();
  return is_main;
}

HostReads::Place ToPlace(const std::string& line,
                         const sim::ReadCounter& counter) {
  // In this order: a copy counts as `all` first.
  const std::uint64_t written = counter.written.load(std::memory_order_relaxed);
  return {line, counter.all.load(std::memory_order_relaxed), written};
}

void Move(sim::ReadCounter* from, sim::ReadCounter* to) {
  to->all.fetch_add(from->all.exchange(0, std::memory_order_relaxed),
                    std::memory_order_relaxed);
  to->written.fetch_add(from->written.exchange(0, std::memory_order_relaxed),
                        std::memory_order_relaxed);
}

void Add(const sim::ReadCounter& counter, HostReads::Place* sum) {
  const HostReads::Place place = ToPlace("", counter);
  sum->all += place.all;
  sum->written += place.written;
}

}  // namespace

sim::ReadCounter* HostReads::Here() {
  if (!HasPython()) return &elsewhere_;
  if (!HoldsPythonLock()) return IsMainThread() ? &unplaced_ : &elsewhere_;
  const std::string line = PythonPlace();
  sim::ReadCounter* const found = line.empty() ? nullptr : At(line);
  return found != nullptr ? found : &elsewhere_;
}

void HostReads::AfterCopy(const sim::ReadCounter* counter) {
  if (counter == &unplaced_) PlaceSoon();
}

void HostReads::AfterWait() {
  if (unplaced_.all.load(std::memory_order_relaxed) != 0) PlaceSoon();
}

void HostReads::PlaceSoon() {
  if (is_called_.exchange(true, std::memory_order_relaxed)) return;
  if (!CallInPython(&PlaceUnplaced)) {
    is_called_.store(false, std::memory_order_relaxed);
  }
}

int HostReads::PlaceUnplaced(void*) {
  HostReads& reads = Reads();
  reads.is_called_.store(false, std::memory_order_relaxed);
  const std::string line = PythonPlace();
  sim::ReadCounter* const found = line.empty() ? nullptr : reads.At(line);
  Move(&reads.unplaced_, found != nullptr ? found : &reads.elsewhere_);
  return 0;
}

sim::ReadCounter* HostReads::At(const std::string& line) {
  std::lock_guard lock(mutex_);
  const auto found = places_.find(line);
  if (found != places_.end()) return &found->second;
  if (places_.size() == kMostPlaces) return nullptr;
  return &places_[line];
}

HostReads::Place HostReads::WithoutLine() const {
  Place place;
  Add(unplaced_, &place);
  Add(elsewhere_, &place);
  return place;
}

HostReads::Place HostReads::Total() const {
  Place total = WithoutLine();
  std::lock_guard lock(mutex_);
  for (const auto& [line, counter] : places_) Add(counter, &total);
  return total;
}

std::vector<HostReads::Place> HostReads::MostFrequent(std::size_t count) const {
  std::vector<Place> places;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [line, counter] : places_) {
      const Place place = ToPlace(line, counter);
      if (place.unknown() != 0) places.push_back(place);
    }
  }
  std::stable_sort(
      places.begin(), places.end(),
      [](const Place& a, const Place& b) { return a.unknown() > b.unknown(); });
  if (places.size() > count) places.resize(count);
  return places;
}

HostReads& Reads() {
  static auto* const reads = new HostReads();
  return *reads;
}

}  // namespace strata::simdriver
