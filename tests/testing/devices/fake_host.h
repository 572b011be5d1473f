#ifndef STRATA_TESTS_TESTING_DEVICES_FAKE_HOST_H_
#define STRATA_TESTS_TESTING_DEVICES_FAKE_HOST_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "strata/platform/host/host_system.h"

namespace strata {

// A host of any size with any NUMA nodes. It records its calls and returns the
// configured results.
//
// Threads: set the fields before the calls that they affect; call it from any
//   thread.
class FakeHost final : public HostSystem {
 public:
  // One call about [data, data + bytes).
  struct Range {
    void* data;
    std::size_t bytes;
    int node;  // of PreferNode; otherwise 0
  };

  std::uint64_t memory_bytes = std::uint64_t{64} << 30;
  std::vector<int> nodes;
  int prefer_error = 0;
  int lock_error = 0;

  std::uint64_t MemoryBytes() const override { return memory_bytes; }
  std::vector<int> NumaNodes() const override { return nodes; }
  int PreferNode(void* data, std::size_t bytes, int node) noexcept override {
    Note(preferred_, {data, bytes, node});
    return prefer_error;
  }
  int Lock(void* data, std::size_t bytes) noexcept override {
    Note(locked_, {data, bytes, 0});
    return lock_error;
  }
  int Unlock(void* data, std::size_t bytes) noexcept override {
    Note(unlocked_, {data, bytes, 0});
    return 0;
  }

  std::vector<Range> preferred() const { return Copy(preferred_); }
  std::vector<Range> locked() const { return Copy(locked_); }
  std::vector<Range> unlocked() const { return Copy(unlocked_); }

 private:
  void Note(std::vector<Range>& ranges, const Range& range) {
    const std::lock_guard<std::mutex> guard(mutex_);
    ranges.push_back(range);
  }
  std::vector<Range> Copy(const std::vector<Range>& ranges) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return ranges;
  }

  mutable std::mutex mutex_;
  std::vector<Range> preferred_;  // guarded by mutex_
  std::vector<Range> locked_;     // guarded by mutex_
  std::vector<Range> unlocked_;   // guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_FAKE_HOST_H_
