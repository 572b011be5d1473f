// Threads that enable one peer at once.

#include "strata/strategy/virtual_memory/sharing/peer_access.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <new>
#include <thread>

#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

constexpr Location kOwner{Location::Kind::kDevice, 0};
constexpr Location kPeer{Location::Kind::kDevice, 1};

// The driver refuses the first grant slowly. Meanwhile, another thread enables
// the peer if it can.
class SlowMapper : public PeerAccess::Mapper {
 public:
  explicit SlowMapper(PeerAccess& access) : access_(access) {}

  Status ApplyGrants() noexcept override {
    if (++calls_ != 1) return Status::kSuccess;
    other_ = std::async(std::launch::async,
                        [this] { return access_.Enable(kPeer); });
    // The other call must not get here before the end of this one.
    for (int i = 0; i < kPatience && calls_ == 1; ++i) {
      std::this_thread::yield();
    }
    return Status::kUnknown;
  }

  Status other() { return other_.get(); }

 private:
  static constexpr int kPatience = 100000;

  PeerAccess& access_;
  std::atomic<int> calls_{0};
  std::future<Status> other_;
};

TEST(PeerAccessTest, AFailureOfOneThreadLeavesThePeerOfTheOtherEnabled) {
  PeerAccess access(kOwner);
  SlowMapper mapper(access);
  access.Add(mapper);
  EXPECT_EQ(access.Enable(kPeer), Status::kUnknown);
  EXPECT_EQ(mapper.other(), Status::kSuccess);
  ASSERT_EQ(access.grants()->devices.size(), 2U);
  EXPECT_EQ(access.grants()->devices.back().location.id, kPeer.id);
  access.Remove(mapper);
}

class CountingMapper : public PeerAccess::Mapper {
 public:
  Status ApplyGrants() noexcept override {
    ++calls;
    return Status::kSuccess;
  }
  int calls = 0;
};

TEST(PeerAccessTest, WithoutHostMemoryNothingChanges) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a heap that never fails";
  PeerAccess access(kOwner);
  CountingMapper mapper;
  access.Add(mapper);
  bool is_enabled = false;
  for (std::uint64_t nth = 1; !is_enabled; ++nth) {
    ASSERT_LT(nth, 100U);
    try {
      const HeapFailure failure(nth);
      is_enabled = access.Enable(kPeer) == Status::kSuccess;
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(access.grants()->devices.size(), 1U) << nth;
      EXPECT_EQ(mapper.calls, 0) << nth;
    }
  }
  EXPECT_EQ(access.grants()->devices.size(), 2U);
  EXPECT_EQ(mapper.calls, 1);
  access.Remove(mapper);
}

}  // namespace
}  // namespace strata
