#include "strata/tests/testing/devices/toy_platform.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "strata/platform/device.h"

namespace strata {
namespace {

constexpr std::size_t kAlignmentBytes = 256;
constexpr std::size_t kCapacityBytes = std::size_t{64} << 20;

class ToyDevice final : public Device {
 public:
  ToyDevice() { caps_.alloc_alignment_bytes = kAlignmentBytes; }

  int ordinal() const override { return 0; }
  const Caps& caps() const override { return caps_; }
  Status MemGetInfo(std::size_t* free_bytes,
                    std::size_t* total_bytes) override {
    CountCall(DeviceCall::kMemGetInfo);
    const std::lock_guard<std::mutex> guard(mutex_);
    *free_bytes = kCapacityBytes - used_bytes_;
    *total_bytes = kCapacityBytes;
    return Status::kSuccess;
  }
  Status Synchronize() override { return Status::kSuccess; }

  Status StreamCreate(Stream* stream, unsigned /*flags*/) override {
    *stream = Stream{this, 0, ++last_uid_};
    return Status::kSuccess;
  }
  Status StreamDestroy(Stream /*stream*/) override { return Status::kSuccess; }
  Stream LegacyStream() override { return Stream{this, 0, kLegacyStreamUid}; }
  Stream PerThreadStream() override { return LegacyStream(); }
  Status WrapStream(void* /*handle*/, Stream* stream) override {
    *stream = LegacyStream();
    return Status::kSuccess;
  }
  Status StreamSynchronize(Stream /*stream*/) override {
    return Status::kSuccess;
  }
  Status StreamQuery(Stream /*stream*/) override { return Status::kSuccess; }
  Status StreamWaitEvent(Stream /*stream*/, Event /*event*/,
                         unsigned /*flags*/) override {
    return Status::kSuccess;
  }

  Status EventCreate(Event* event, unsigned /*flags*/) override {
    event->value = this;
    return Status::kSuccess;
  }
  Status EventDestroy(Event /*event*/) override { return Status::kSuccess; }
  Status EventRecord(Event /*event*/, Stream /*stream*/,
                     unsigned /*flags*/) override {
    return Status::kSuccess;
  }
  Status EventQuery(Event /*event*/) override { return Status::kSuccess; }
  Status EventSynchronize(Event /*event*/) override { return Status::kSuccess; }

  Status MemAlloc(DevicePtr* ptr, std::size_t bytes) override {
    CountCall(DeviceCall::kMemAlloc);
    const std::lock_guard<std::mutex> guard(mutex_);
    if (bytes > kCapacityBytes - used_bytes_) return Status::kMemoryAllocation;
    void* data = nullptr;
    if (posix_memalign(&data, kAlignmentBytes, bytes) != 0) {
      return Status::kMemoryAllocation;
    }
    *ptr = reinterpret_cast<DevicePtr>(data);
    sizes_[*ptr] = bytes;
    used_bytes_ += bytes;
    return Status::kSuccess;
  }
  Status MemFree(DevicePtr ptr) override {
    CountCall(DeviceCall::kMemFree);
    if (ptr == 0) return Status::kSuccess;
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = sizes_.find(ptr);
    if (found == sizes_.end()) return Status::kInvalidValue;
    used_bytes_ -= found->second;
    sizes_.erase(found);
    std::free(reinterpret_cast<void*>(ptr));
    return Status::kSuccess;
  }
  Status MemcpyAsync(DevicePtr target, DevicePtr source, std::size_t bytes,
                     Stream /*stream*/) override {
    std::memcpy(reinterpret_cast<void*>(target),
                reinterpret_cast<const void*>(source), bytes);
    return Status::kSuccess;
  }
  Status MemsetAsync(DevicePtr ptr, int value, std::size_t bytes,
                     Stream /*stream*/) override {
    std::memset(reinterpret_cast<void*>(ptr), value, bytes);
    return Status::kSuccess;
  }

 private:
  Caps caps_;
  std::atomic<std::uint64_t> last_uid_{kLegacyStreamUid};
  std::mutex mutex_;
  std::map<DevicePtr, std::size_t> sizes_;  // guarded by mutex_
  std::size_t used_bytes_ = 0;              // guarded by mutex_
};

class ToyPlatform final : public Platform {
 public:
  const char* name() const override { return "toy"; }
  int device_count() const override { return 1; }
  Device& device(int /*ordinal*/) override { return device_; }

 private:
  ToyDevice device_;
};

}  // namespace

std::shared_ptr<Platform> MakeToyPlatform(const PlatformOptions& /*options*/) {
  return std::make_shared<ToyPlatform>();
}

}  // namespace strata
