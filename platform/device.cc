#include "strata/platform/device.h"

#include <utility>

#include "strata/base/clock.h"

namespace strata {

std::uint64_t CallingThreadNumber() {
  static std::atomic<std::uint64_t> threads{0};
  thread_local const std::uint64_t number =
      threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

std::uint64_t Device::CallCount(DeviceCall call) const {
  if (!IsEntryPoint(call)) return 0;
  return call_counts_[static_cast<std::size_t>(call)].load(
      std::memory_order_relaxed);
}

void Device::CountCall(DeviceCall call) {
  call_counts_[static_cast<std::size_t>(call)].fetch_add(
      1, std::memory_order_relaxed);
}

template <class Change>
void Device::ChangeObservers(Change change) {
  std::shared_ptr<const Observers> former;  // destroyed after the unlock
  std::lock_guard lock(observer_mutex_);
  former = observers_;
  Observers observers =
      former != nullptr ? *former : Observers(1, CallObserver());
  change(&observers);
  const bool any = observers.size() > 1 || observers.front() != nullptr;
  observers_ =
      any ? std::make_shared<const Observers>(std::move(observers)) : nullptr;
  observed_.store(any, std::memory_order_release);
}

void Device::SetCallObserver(CallObserver observer) {
  ChangeObservers(
      [&](Observers* observers) { observers->front() = std::move(observer); });
}

void Device::AddCallObserver(CallObserver observer) {
  ChangeObservers(
      [&](Observers* observers) { observers->push_back(std::move(observer)); });
  observed_for_life_.store(true, std::memory_order_release);
}

void Device::TellObserver(CallRecord record) {
  std::shared_ptr<const Observers> observers;
  {
    std::lock_guard lock(observer_mutex_);
    observers = observers_;
  }
  if (observers == nullptr) return;
  record.device = ordinal();
  record.thread = CallingThreadNumber();
  record.time_ns = NowNs();
  for (const CallObserver& observer : *observers) {
    if (observer) observer(record);
  }
}

void Device::NoteDependencies(const GraphNode* nodes, std::size_t count) {
  if (!observed() || nodes == nullptr) return;
  for (std::size_t i = 0; i < count; ++i) {
    Note(RecordOf(DeviceCall::kDependency,
                  reinterpret_cast<std::uintptr_t>(nodes[i].value)));
  }
}

std::uint64_t Device::NowNs() const {
  return static_cast<std::uint64_t>(Clock::Steady().Now().count());
}

namespace {

template <class... Arguments>
Status NotSupported(const Arguments&... /*arguments*/) {
  return Status::kNotSupported;
}

}  // namespace

#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) \
  Status Device::method parameters { return NotSupported arguments; }
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL

}  // namespace strata
