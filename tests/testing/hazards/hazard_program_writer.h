#ifndef STRATA_TESTS_TESTING_HAZARDS_HAZARD_PROGRAM_WRITER_H_
#define STRATA_TESTS_TESTING_HAZARDS_HAZARD_PROGRAM_WRITER_H_

#include <cstdint>
#include <random>
#include <vector>

#include "strata/platform/calls/call_record.h"

namespace strata {

// Tools to write programs: calls of device 0, and random choices.
class HazardProgramWriter {
 public:
  static constexpr std::uint64_t kGranule = 0x1000;
  static constexpr std::uint64_t kChunk = 0x100000;
  static constexpr std::uint64_t kPinned = 0x7000000;
  static constexpr std::uint64_t kPool = 0x8000000;
  static constexpr std::uint64_t kPrivate = 0x9000000;
  static constexpr std::uint64_t kMapped = 0x10000000;
  static constexpr std::uint64_t kPageBytes = 2 << 20;
  static constexpr std::uint64_t kChunkBytes = 32 * kGranule;

  explicit HazardProgramWriter(std::uint64_t seed) : random_(seed) {}

  std::uint64_t Pick(std::uint64_t count) { return random_() % count; }
  bool Chance(unsigned percent) { return Pick(100) < percent; }
  template <class T>
  const T& PickOf(const std::vector<T>& from) {
    return from[Pick(from.size())];
  }

  void Call(DeviceCall call, std::uint64_t ptr = 0, std::uint64_t bytes = 0,
            std::uint64_t value = 0, std::uint64_t stream = 0,
            Status status = Status::kSuccess) {
    CallRecord record = RecordOf(call, ptr, bytes, value);
    record.stream_uid = stream;
    record.status = status;
    record.thread = thread_;
    record.time_ns = calls_.size();
    calls_.push_back(record);
  }
  void Use(std::uint64_t ptr, std::uint64_t bytes, std::uint64_t stream) {
    Call(DeviceCall::kUse, ptr, bytes, Pick(2), stream);
  }
  void Record(std::uint64_t event, std::uint64_t stream) {
    Call(DeviceCall::kEventRecord, event, 0, 0, stream);
  }
  void Wait(std::uint64_t stream, std::uint64_t event) {
    Call(DeviceCall::kStreamWaitEvent, event, 0, 0, stream);
  }
  std::uint64_t CreateStream(bool blocking) {
    const std::uint64_t uid = next_uid_++;
    Call(DeviceCall::kStreamCreate, 0, 0, blocking ? 0 : 1, uid);
    return uid;
  }
  std::uint64_t CreateEvent() {
    const std::uint64_t event = next_handle_++;
    Call(DeviceCall::kEventCreate, event);
    return event;
  }
  std::uint64_t NewHandle() { return next_handle_++; }

 protected:
  std::mt19937_64 random_;
  std::vector<CallRecord> calls_;
  std::uint64_t thread_ = 1;

 private:
  std::uint64_t next_uid_ = 3;
  std::uint64_t next_handle_ = 0xa00;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_HAZARDS_HAZARD_PROGRAM_WRITER_H_
