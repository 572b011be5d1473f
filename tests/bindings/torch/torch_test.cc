// The functions for PyTorch, called as its pluggable allocator calls them. All
// cases of a process share the facade that the first one creates.

#include "strata/bindings/torch/torch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/bindings/c/c_api_call.h"
#include "strata/platform/device.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/platform.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kMemory = Mebibytes(64);

class TorchTest : public testing::Test {
 protected:
  TorchTest() {
    setenv("STRATA_OPTIONS",
           "strata_platform=sim,strata_sim_devices=2,strata_sim_memory=64MiB",
           /*overwrite=*/1);
  }
  ~TorchTest() override { strata_torch_empty_cache(); }

  // True if a block of nearly the whole device fits.
  static bool IsEmpty(int device) {
    void* const block =
        strata_torch_pool_malloc(kMemory - Mebibytes(2), device, nullptr);
    strata_torch_free(block, kMemory - Mebibytes(2), device, nullptr);
    return block != nullptr;
  }
};

TEST_F(TorchTest, AFreeMakesRoom) {
  for (const int device : {0, 1}) {
    for (int i = 0; i < 4; ++i) {
      void* const block = strata_torch_malloc(Mebibytes(40), device, nullptr);
      EXPECT_NE(block, nullptr);
      EXPECT_FALSE(IsEmpty(device));
      EXPECT_TRUE(IsEmpty(1 - device));
      strata_torch_free(block, Mebibytes(40), device, nullptr);
    }
    EXPECT_TRUE(IsEmpty(device));
  }
}

TEST_F(TorchTest, NoMemoryIsAnExceptionWithTheNumbers) {
  EXPECT_THAT(TextOf<std::bad_alloc>(
                  [] { strata_torch_malloc(Mebibytes(65), 1, nullptr); }),
              AllOf(HasSubstr("cannot allocate 65.0 MiB on device:1"),
                    HasSubstr("64.0 MiB")));
}

TEST_F(TorchTest, NoMemoryIsNullForAMemPool) {
  EXPECT_EQ(strata_torch_pool_malloc(Mebibytes(65), 0, nullptr), nullptr);
}

TEST_F(TorchTest, AWrongDeviceIsAnError) {
  for (const int device : {-1, 2}) {
    EXPECT_THAT(TextOf<std::runtime_error>(
                    [&] { strata_torch_malloc(100, device, nullptr); }),
                HasSubstr(std::to_string(device)));
    EXPECT_THROW(strata_torch_pool_malloc(100, device, nullptr),
                 std::runtime_error);
  }
}

TEST_F(TorchTest, AWrongStreamIsAnError) {
  std::uintptr_t none = 0xABCDEF0;
  EXPECT_THROW(strata_torch_malloc(100, 0, reinterpret_cast<void*>(none)),
               std::runtime_error);
}

TEST_F(TorchTest, NothingIsNull) {
  EXPECT_EQ(strata_torch_malloc(0, 0, nullptr), nullptr);
  strata_torch_free(nullptr, 0, 0, nullptr);
  strata_torch_record_stream(nullptr, nullptr);
}

TEST_F(TorchTest, AMarkedBlockIsNotNextInLine) {
  void* const per_thread = reinterpret_cast<void*>(2);
  for (const bool is_marked : {false, true}) {
    void* const block = strata_torch_malloc(4096, 0, nullptr);
    if (is_marked) strata_torch_record_stream(block, per_thread);
    strata_torch_free(block, 4096, 0, nullptr);
    void* const next = strata_torch_malloc(4096, 0, nullptr);
    EXPECT_EQ(next != block, is_marked);
    strata_torch_free(next, 4096, 0, nullptr);
  }
}

TEST_F(TorchTest, TheFacadeKnowsTheBlocks) {
  void* const block = strata_torch_malloc(4096, 0, nullptr);
  strata_facade* const facade = strata_torch_facade();
  void* base = nullptr;
  std::size_t bytes = 0;
  EXPECT_EQ(strata_address_range(facade, block, &base, &bytes), STRATA_OK);
  EXPECT_GE(bytes, 4096U);
  EXPECT_EQ(strata_free(facade, block), STRATA_OK);
  EXPECT_EQ(strata_address_range(facade, block, &base, &bytes),
            STRATA_UNKNOWN_POINTER);
}

// A stream, and what PyTorch does with it for a graph.
class TorchGraphTest : public TorchTest {
 protected:
  TorchGraphTest() {
    EXPECT_EQ(strata_stream_create(strata_torch_facade(), 0, &stream_),
              STRATA_OK);
  }
  ~TorchGraphTest() override {
    for (const Graph graph : graphs_) device().GraphDestroy(graph);
    EXPECT_EQ(strata_stream_destroy(strata_torch_facade(), 0, stream_),
              STRATA_OK);
  }

  static AllocatorFacade& facade() { return strata_torch_facade()->facade; }
  static Device& device() { return facade().platform().device(0); }

  void Begin(strata_torch_pool pool) {
    strata_torch_begin_pool(0, pool, nullptr);
    EXPECT_EQ(device().StreamBeginCapture(facade().Wrap(stream_, 0),
                                          CaptureMode::kGlobal),
              Status::kSuccess);
  }
  void End(strata_torch_pool pool) {
    graphs_.emplace_back();
    EXPECT_EQ(
        device().StreamEndCapture(facade().Wrap(stream_, 0), &graphs_.back()),
        Status::kSuccess);
    strata_torch_end_pool(0, pool);
  }
  // Captures an allocation of 8 MiB and its free; returns the address.
  void* Capture(strata_torch_pool pool) {
    Begin(pool);
    void* const block = Next();
    End(pool);
    return block;
  }
  void* Handle() const { return stream_; }
  // The address of the next block of 8 MiB of the stream.
  void* Next() {
    void* const block = strata_torch_malloc(kBlock, 0, stream_);
    strata_torch_free(block, kBlock, 0, stream_);
    return block;
  }

 private:
  static constexpr std::size_t kBlock = Mebibytes(8);

  void* stream_ = nullptr;
  std::vector<Graph> graphs_;
};

TEST_F(TorchGraphTest, APoolKeepsItsMemoryUntilItsLastRelease) {
  constexpr strata_torch_pool kPool{0, 1};
  void* const block = Capture(kPool);
  EXPECT_NE(Next(), block);
  EXPECT_EQ(Capture(kPool), block);  // captures share the pool
  strata_torch_release_pool(0, kPool);
  EXPECT_NE(Next(), block);
  strata_torch_empty_cache();
  EXPECT_FALSE(IsEmpty(0));
  strata_torch_release_pool(0, kPool);
  strata_torch_empty_cache();
  EXPECT_TRUE(IsEmpty(0));
}

TEST_F(TorchGraphTest, AReleaseDoesNotBreakACapture) {
  constexpr strata_torch_pool kPool{0, 1};
  constexpr strata_torch_pool kOther{0, 2};
  Capture(kPool);
  Begin(kOther);
  strata_torch_release_pool(0, kPool);
  End(kOther);
  strata_torch_empty_cache();
  EXPECT_TRUE(IsEmpty(0));
  strata_torch_release_pool(0, kOther);
}

TEST_F(TorchGraphTest, ASecondAnnouncementIsAnError) {
  constexpr strata_torch_pool kPool{0, 1};
  constexpr strata_torch_pool kOther{0, 2};
  strata_torch_begin_pool(0, kPool, nullptr);
  std::thread([&] {
    EXPECT_THAT(TextOf<std::logic_error>(
                    [&] { strata_torch_begin_pool(0, kOther, nullptr); }),
                HasSubstr("one after another"));
  }).join();
  strata_torch_end_pool(0, kPool);
  strata_torch_release_pool(0, kPool);
}

// PyTorch 2.11 does not call the function for the end of such a capture.
TEST_F(TorchGraphTest, ACaptureFollowsOneThatFailed) {
  constexpr strata_torch_pool kPool{0, 1};
  constexpr strata_torch_pool kOther{0, 2};
  Begin(kPool);
  void* const lost = Next();
  const Stream stream = facade().Wrap(Handle(), 0);
  EXPECT_NE(device().StreamSynchronize(stream), Status::kSuccess);
  Graph graph;
  EXPECT_EQ(device().StreamEndCapture(stream, &graph),
            Status::kStreamCaptureInvalidated);
  void* const block = Capture(kOther);
  EXPECT_NE(block, lost);
  EXPECT_NE(Next(), block);
  for (const strata_torch_pool pool : {kPool, kOther}) {
    strata_torch_release_pool(0, pool);
  }
}

TEST_F(TorchGraphTest, TheEndOfAnotherPoolEndsNoCapture) {
  constexpr strata_torch_pool kPool{0, 1};
  constexpr strata_torch_pool kOther{0, 2};
  Capture(kOther);
  Begin(kPool);
  strata_torch_end_pool(0, kOther);
  strata_torch_end_pool(0, {7, 8});  // unknown
  // Would wait for the devices, and so break the capture.
  strata_torch_release_pool(0, kOther);
  Next();
  End(kPool);
  strata_torch_release_pool(0, kPool);
}

TEST_F(TorchGraphTest, AnUnknownPoolIsLogged) {
  testing::internal::CaptureStderr();
  strata_torch_end_pool(0, {7, 8});
  strata_torch_release_pool(0, {7, 8});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("strata_torch_end_pool: no capture used pool 7"),
                    HasSubstr("strata_torch_release_pool: no capture")));
}

TEST_F(TorchTest, AWrongFreeIsLogged) {
  void* const block = strata_torch_malloc(100, 0, nullptr);
  strata_torch_free(block, 100, 0, nullptr);
  testing::internal::CaptureStderr();
  strata_torch_free(block, 100, 0, nullptr);
  strata_torch_record_stream(block, nullptr);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("strata_free: 0x"),
                    HasSubstr("strata_record_stream: 0x")));
}

TEST_F(TorchTest, ThreadsGetBlocksOfTheirOwn) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::vector<std::set<void*>> blocks(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([i, &own = blocks[static_cast<std::size_t>(i)]] {
      for (int n = 0; n < 100; ++n) {
        void* const block = strata_torch_malloc(4096, i % 2, nullptr);
        if (n % 2 == 0) {
          strata_torch_free(block, 4096, i % 2, nullptr);
        } else {
          own.insert(block);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<void*> all;
  for (const auto& own : blocks) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), kThreads * 50U);
  // Another thread frees, like the thread of the backward pass.
  for (void* block : all) strata_torch_free(block, 4096, 0, nullptr);
  strata_torch_empty_cache();
  EXPECT_TRUE(IsEmpty(0));
  EXPECT_TRUE(IsEmpty(1));
}

// In a separate process, because the facade is created once.
TEST(TorchDeathTest, WrongOptionsAreAnErrorOfEachCall) {
  EXPECT_EXIT(
      {
        setenv("STRATA_OPTIONS", "no_such_option=1", 1);
        for (int i = 0; i < 2; ++i) {
          EXPECT_THAT(TextOf<std::invalid_argument>(
                          [] { strata_torch_malloc(100, 0, nullptr); }),
                      HasSubstr("no_such_option"));
        }
        int dummy = 0;
        strata_torch_free(&dummy, 0, 0, nullptr);  // logged
        setenv("STRATA_OPTIONS", "strata_platform=sim", 1);
        void* const block = strata_torch_malloc(100, 0, nullptr);
        std::exit(block != nullptr && !testing::Test::HasFailure() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "no_such_option");
}

}  // namespace
}  // namespace strata
