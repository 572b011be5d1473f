// Idle memory of all kinds meets a request before it fails, and a release
// returns it.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

class IdleMemoryTest : public FacadeFixture {
 protected:
  IdleMemoryTest() : FacadeFixture(1, "timed") {}

  // Frees `bytes` of `stream`, which work may still use.
  void Use(std::size_t bytes, Stream stream) {
    const AllocationPtr block = facade().Alloc(kPlace, bytes, stream);
    EXPECT_EQ(device().Enqueue(stream, nullptr, 0, 1'000'000, 0),
              Status::kSuccess);
  }
  static bool CanAlloc(AllocatorFacade& facade, const Request& request,
                       Stream stream) {
    Failure failure;
    return facade.TryAlloc(kPlace, request, stream, failure) != nullptr;
  }
};

// One stream borrowed half of the memory of another, and work uses it.
TEST_F(IdleMemoryTest, LoansReturnBeforeARequestFails) {
  for (const std::uint32_t flags : {std::uint32_t{0}, std::uint32_t{kOneHandle},
                                    std::uint32_t{kLegacyIpc}}) {
    SCOPED_TRACE(flags);
    Build("allocator_strategy=virtual_memory");
    facade().Alloc(kPlace, Mebibytes(48), NewStream()).reset();
    Use(Mebibytes(24), NewStream());
    const Stats stats = facade().GetStats(kPlace);
    EXPECT_EQ(stats.reserved_bytes, Mebibytes(48));
    EXPECT_EQ(stats.idle_bytes, Mebibytes(48));
    EXPECT_TRUE(CanAlloc(facade(),
                         Request{.bytes = Mebibytes(60), .flags = flags},
                         NewStream()));
  }
}

TEST_F(IdleMemoryTest, AReleaseWaitsForStreamsThatHaveEnded) {
  for (const char* strategy : {"virtual_memory", "auto_growth"}) {
    SCOPED_TRACE(strategy);
    Build(std::string("allocator_strategy=") + strategy);
    const Stream stream = NewStream();
    Use(Mebibytes(32), stream);
    facade().StreamDestroyed(stream);
    Destroy(stream);
    EXPECT_EQ(facade().Release(kPlace), Mebibytes(32));
    EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, 0U);
  }
}

TEST_F(IdleMemoryTest, IdleMemoryOfTwoFacadesMeetsARequestTogether) {
  for (const char* strategy : {"virtual_memory", "auto_growth"}) {
    SCOPED_TRACE(strategy);
    const std::string options = std::string("allocator_strategy=") + strategy;
    Build(options);
    AllocatorFacade other(Parsed(options), platform_);
    facade().Alloc(kPlace, Mebibytes(8), NewStream()).reset();
    other.Alloc(kPlace, Mebibytes(8), NewStream()).reset();
    EXPECT_TRUE(CanAlloc(facade(), Request{Mebibytes(64)}, NewStream()));
  }
}

class FewAddressesTest : public FacadeFixture {};

// A part of the memory is released at first, and the rest must follow.
TEST_F(FewAddressesTest, AllIdleMemoryMakesRoomForAChunk) {
  Build(
      "allocator_strategy=virtual_memory,strata_vmm_reserve=60MiB,"
      "gpu_memory_limit_mb=50");
  const Stream stream = NewStream();
  AllocationPtr first = facade().Alloc(kPlace, Mebibytes(25), NewStream());
  AllocationPtr second = facade().Alloc(kPlace, Mebibytes(15), stream);
  first.reset();
  second.reset();
  EXPECT_NE(facade().Alloc(kPlace, Mebibytes(36), stream), nullptr);
}

TEST_F(FewAddressesTest, IdleChunksServeAgain) {
  Build("allocator_strategy=virtual_memory,strata_vmm_reserve=6MiB");
  facade().Alloc(kPlace, Mebibytes(3)).reset();
  const std::uint64_t reserved = facade().GetStats(kPlace).reserved_bytes;
  for (int i = 0; i < 10; ++i) facade().Alloc(kPlace, Mebibytes(3)).reset();
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, reserved);
}

}  // namespace
}  // namespace strata
