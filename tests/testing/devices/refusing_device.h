#ifndef STRATA_TESTS_TESTING_DEVICES_REFUSING_DEVICE_H_
#define STRATA_TESTS_TESTING_DEVICES_REFUSING_DEVICE_H_

#include <cstddef>

#include "strata/platform/device.h"

namespace strata {

// A device that refuses every call. Base class of devices that implement a few
// calls.
class RefusingDevice : public Device {
 public:
  int ordinal() const override { return 0; }
  const Caps& caps() const override { return caps_; }

  Status MemGetInfo(std::size_t* /*free_bytes*/,
                    std::size_t* /*total_bytes*/) override {
    return Status::kNotSupported;
  }
  Status Synchronize() override { return Status::kNotSupported; }
  Status StreamCreate(Stream* /*stream*/, unsigned /*flags*/) override {
    return Status::kNotSupported;
  }
  Status StreamDestroy(Stream /*stream*/) override {
    return Status::kNotSupported;
  }
  Stream LegacyStream() override { return Stream{this, 0, kLegacyStreamUid}; }
  Stream PerThreadStream() override { return Stream{this, 0, 2}; }
  Status WrapStream(void* /*handle*/, Stream* /*stream*/) override {
    return Status::kNotSupported;
  }
  Status StreamSynchronize(Stream /*stream*/) override {
    return Status::kNotSupported;
  }
  Status StreamQuery(Stream /*stream*/) override {
    return Status::kNotSupported;
  }
  Status StreamWaitEvent(Stream /*stream*/, Event /*event*/,
                         unsigned /*flags*/) override {
    return Status::kNotSupported;
  }
  Status EventCreate(Event* /*event*/, unsigned /*flags*/) override {
    return Status::kNotSupported;
  }
  Status EventDestroy(Event /*event*/) override {
    return Status::kNotSupported;
  }
  Status EventRecord(Event /*event*/, Stream /*stream*/,
                     unsigned /*flags*/) override {
    return Status::kNotSupported;
  }
  Status EventQuery(Event /*event*/) override { return Status::kNotSupported; }
  Status EventSynchronize(Event /*event*/) override {
    return Status::kNotSupported;
  }
  Status MemAlloc(DevicePtr* /*ptr*/, std::size_t /*bytes*/) override {
    return Status::kNotSupported;
  }
  Status MemFree(DevicePtr /*ptr*/) override { return Status::kNotSupported; }
  Status MemcpyAsync(DevicePtr /*target*/, DevicePtr /*source*/,
                     std::size_t /*bytes*/, Stream /*stream*/) override {
    return Status::kNotSupported;
  }
  Status MemsetAsync(DevicePtr /*ptr*/, int /*value*/, std::size_t /*bytes*/,
                     Stream /*stream*/) override {
    return Status::kNotSupported;
  }

 protected:
  Caps caps_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_REFUSING_DEVICE_H_
