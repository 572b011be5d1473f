#ifndef STRATA_FACADE_POINTER_SLOTS_H_
#define STRATA_FACADE_POINTER_SLOTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/facade/pointer_table.h"

namespace strata {

// Live allocations by their address, as many as find their slot empty: what a
// PointerMap asks before it takes a lock.
//
// Model: an address has one slot. Where that is taken when it comes, somebody
//   else has to know it, or has to know in its place who had the slot. Who
//   changes a slot has it to himself while it is busy, so that of many only one
//   gets an address out, and with it the allocation that was inserted for it.
// Threads: any thread. Nobody waits for another one.
// Cost: one atomic operation, on one cache line. 64 KiB.
class alignas(64) PointerSlots {
 public:
  PointerSlots() = default;
  PointerSlots(const PointerSlots&) = delete;
  PointerSlots& operator=(const PointerSlots&) = delete;

  static constexpr std::size_t kSlots = std::size_t{1} << 12;
  // Which slot an address has. From bits of the hash that tables do not place
  // by.
  static std::size_t IndexOf(const void* data) {
    return (PointerTable::Hash(data) >> 36) % kSlots;
  }

  // `data` is the address of `allocation`. False, and nothing is done, if its
  // slot is taken.
  bool Insert(const void* data, Allocation* allocation) noexcept {
    Slot& slot = slots_[IndexOf(data)];
    if (!slot.Claim(kEmpty)) return false;
    slot.Fill(data, allocation);
    return true;
  }
  // Null if the address, which may be any, is not here.
  Allocation* Take(const void* data) noexcept {
    const std::uintptr_t key = KeyOf(data);
    Slot& slot = slots_[IndexOf(data)];
    if (key <= kBusy || !slot.Claim(key)) return nullptr;
    Allocation* const taken = slot.allocation.load(std::memory_order_relaxed);
    slot.key.store(kEmpty, std::memory_order_release);
    return taken;
  }
  // The same, and it stays. The result may be that of another address if
  // somebody takes this one meanwhile, which is for the caller to rule out.
  Allocation* Find(const void* data) const noexcept {
    const std::uintptr_t key = KeyOf(data);
    const Slot& slot = slots_[IndexOf(data)];
    if (key <= kBusy || slot.key.load(std::memory_order_acquire) != key) {
      return nullptr;
    }
    Allocation* const found = slot.allocation.load(std::memory_order_acquire);
    // Exchange may have been here in between; Fill says why this is enough.
    return slot.key.load(std::memory_order_relaxed) == key ? found : nullptr;
  }
  // Exchanges both for those that have the slot; if there are none, or it is
  // busy, nothing. The caller sees to it that whoever looks for those elsewhere
  // waits until they are there; they do not come back before they were taken.
  void Exchange(const void*& data, Allocation*& allocation) noexcept {
    Slot& slot = slots_[IndexOf(data)];
    const std::uintptr_t key = slot.key.load(std::memory_order_relaxed);
    if (key <= kBusy || !slot.Claim(key)) return;
    Allocation* const before = slot.allocation.load(std::memory_order_relaxed);
    slot.Fill(data, allocation);
    data = AddressOf(key);
    allocation = before;
  }
  // Takes every address out, and calls `visit` with its allocation. Nobody
  // inserts meanwhile.
  template <class Visitor>
  void TakeAll(Visitor visit) noexcept {
    for (Slot& slot : slots_) {
      const auto key = slot.key.load(std::memory_order_relaxed);
      Allocation* const taken = Take(AddressOf(key));
      if (taken != nullptr) visit(taken);
    }
  }

 private:
  // Keys that no address is; all others are the address.
  static constexpr std::uintptr_t kEmpty = 0;
  static constexpr std::uintptr_t kBusy = 1;

  struct Slot {
    std::atomic<std::uintptr_t> key{kEmpty};
    std::atomic<Allocation*> allocation{nullptr};

    // Makes it busy; false if its key is another one.
    bool Claim(std::uintptr_t expected) noexcept {
      // A look costs nothing; the attempt would take the line from others.
      return key.load(std::memory_order_relaxed) == expected &&
             key.compare_exchange_strong(expected, kBusy,
                                         std::memory_order_acquire,
                                         std::memory_order_relaxed);
    }
    // Of a busy one. Who reads the new allocation sees that it was busy.
    void Fill(const void* data, Allocation* filled) noexcept {
      allocation.store(filled, std::memory_order_release);
      key.store(KeyOf(data), std::memory_order_release);
    }
  };

  static std::uintptr_t KeyOf(const void* data) {
    return reinterpret_cast<std::uintptr_t>(data);
  }
  static const void* AddressOf(std::uintptr_t key) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was one.
    return reinterpret_cast<const void*>(key);
  }

  std::array<Slot, kSlots> slots_;
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_SLOTS_H_
