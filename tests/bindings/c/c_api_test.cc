#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "strata/bindings/c/c_api_call.h"
#include "strata/bindings/c/strata.h"
#include "strata/platform/device.h"
#include "strata/tests/bindings/c/c_api_fixture.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(CApiTest, TheVersionIsThatOfTheProject) {
  std::ifstream file(STRATA_SOURCE_DIR "/CMakeLists.txt");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(),
              HasSubstr(std::string("VERSION ") + strata_version() + "\n"));
}

TEST_F(CApiTest, WithoutOptionsItTakesTheDefaults) {
  for (const char* options : {static_cast<const char*>(nullptr), ""}) {
    strata_facade* facade = nullptr;
    ASSERT_EQ(strata_create(options, &facade), STRATA_OK);
    EXPECT_EQ(strata_destroy(facade), STRATA_OK);
  }
}

TEST_F(CApiTest, NamesAWrongOptionAndWritesNoFacade) {
  auto* const untouched = reinterpret_cast<strata_facade*>(64);
  strata_facade* facade = untouched;
  EXPECT_EQ(strata_create("no_such=1", &facade), STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(facade, untouched);
  EXPECT_THAT(strata_last_error(),
              AllOf(HasSubstr("strata_create"), HasSubstr("no_such")));
}

TEST_F(CApiTest, RefusesNullArguments) {
  void* pointer = nullptr;
  EXPECT_EQ(strata_create("", nullptr), STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_alloc(nullptr, kDevice, 1, nullptr, &pointer),
            STRATA_INVALID_ARGUMENT);
  EXPECT_THAT(strata_last_error(), HasSubstr("facade is NULL"));
  EXPECT_EQ(strata_alloc(facade_, kDevice, 1, nullptr, nullptr),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_free(nullptr, pointer), STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_free_on(nullptr, pointer, nullptr), STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_record_stream(nullptr, pointer, nullptr),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_record_use(nullptr, pointer, nullptr, &pointer),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_record_use(facade_, pointer, nullptr, nullptr),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_erase_stream(nullptr, pointer, nullptr),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stream_create(nullptr, 0, &pointer),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stream_create(facade_, 0, nullptr), STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stream_destroy(nullptr, 0, pointer),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stream_destroyed(nullptr, 0, pointer),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_release(nullptr, kDevice, nullptr), STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stats_json(nullptr, nullptr, 0, nullptr),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stats_json(facade_, nullptr, 10, nullptr),
            STRATA_INVALID_ARGUMENT);
}

TEST_F(CApiTest, AHitMakesNoHeapCall) {
  const auto pair = [this] { strata_free(facade_, Alloc(4096)); };
  for (int i = 0; i < 100; ++i) pair();
  const HeapCallCounter heap;
  for (int i = 0; i < 100; ++i) pair();
  EXPECT_EQ(heap.calls(), 0U);
}

TEST_F(CApiTest, AllocatesAndFreesAtEveryPlace) {
  for (const int kind :
       {STRATA_HOST, STRATA_DEVICE, STRATA_PINNED, STRATA_MANAGED}) {
    void* const pointer = Alloc(1000, nullptr, {kind, 0});
    EXPECT_NE(pointer, nullptr);
    EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
  }
  EXPECT_EQ(Live(), 0U);
}

TEST_F(CApiTest, RefusesPlacesThatDoNotExist) {
  void* const on = NewStream();
  void* pointer = nullptr;
  for (const strata_place place :
       {strata_place{STRATA_DEVICE, 2}, strata_place{STRATA_DEVICE, -1},
        strata_place{STRATA_DEVICE, 65536}, strata_place{STRATA_HOST, 1},
        strata_place{4, 0}, strata_place{-1, 0}}) {
    // For each place that the thread used before.
    for (const strata_place before : {kDevice, kHost}) {
      strata_free(facade_, Alloc(1, nullptr, before));
      EXPECT_EQ(strata_alloc(facade_, place, 1, nullptr, &pointer),
                STRATA_INVALID_ARGUMENT);
    }
    strata_free(facade_, Alloc(1, on));
    EXPECT_EQ(strata_alloc(facade_, place, 1, on, &pointer),
              STRATA_INVALID_ARGUMENT);
    EXPECT_EQ(strata_release(facade_, place, nullptr), STRATA_INVALID_ARGUMENT);
  }
}

TEST_F(CApiTest, ZeroBytesGiveANullPointer) {
  void* pointer = this;
  EXPECT_EQ(strata_alloc(facade_, kDevice, 0, nullptr, &pointer), STRATA_OK);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(strata_free(facade_, nullptr), STRATA_OK);
  EXPECT_EQ(strata_free_on(facade_, nullptr, nullptr), STRATA_OK);
  EXPECT_EQ(strata_record_stream(facade_, nullptr, nullptr), STRATA_OK);
  EXPECT_EQ(strata_erase_stream(facade_, nullptr, nullptr), STRATA_OK);
  EXPECT_EQ(strata_record_use(facade_, nullptr, nullptr, &pointer), STRATA_OK);
}

TEST_F(CApiTest, NullIsIgnoredBetweenOtherFrees) {
  void* const kept = Alloc(1000);
  void* freed = Alloc(1000);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(strata_free(facade_, freed), STRATA_OK);
    ASSERT_EQ(strata_free(facade_, nullptr), STRATA_OK) << strata_last_error();
    freed = Alloc(1000);
  }
  EXPECT_EQ(Live(), 2U);
  EXPECT_EQ(strata_free(facade_, freed), STRATA_OK);
  EXPECT_EQ(strata_free(facade_, kept), STRATA_OK);
}

TEST_F(CApiTest, Aligns) {
  void* const stream = NewStream();
  for (void* on : {static_cast<void*>(nullptr), stream}) {
    void* pointer = nullptr;
    ASSERT_EQ(
        strata_alloc_aligned(facade_, kDevice, 100, 1 << 16, on, &pointer),
        STRATA_OK);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % (1 << 16), 0U);
    EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
    EXPECT_EQ(strata_alloc_aligned(facade_, kDevice, 100, 3, on, &pointer),
              STRATA_INVALID_ARGUMENT);
  }
}

TEST_F(CApiTest, OutOfMemoryWritesNoPointer) {
  void* pointer = this;
  EXPECT_EQ(strata_alloc(facade_, kDevice, 128 * kMebibyte, nullptr, &pointer),
            STRATA_OUT_OF_MEMORY);
  EXPECT_EQ(pointer, this);
  EXPECT_THAT(strata_last_error(),
              AllOf(HasSubstr("strata_alloc"), HasSubstr("128.0 MiB")));
  EXPECT_EQ(strata_alloc(facade_, kDevice, SIZE_MAX, nullptr, &pointer),
            STRATA_OUT_OF_MEMORY);
  EXPECT_EQ(Live(), 0U);
}

TEST_F(CApiTest, AFailedDeviceCallIsADeviceError) {
  Create("strata_sim_fault=create_memory:status=Unknown");
  void* pointer = nullptr;
  EXPECT_EQ(strata_alloc(facade_, kDevice, 100, nullptr, &pointer),
            STRATA_DEVICE_ERROR);
  EXPECT_THAT(strata_last_error(), HasSubstr("Unknown"));
}

TEST_F(CApiTest, AStreamThatCannotBeMadeIsADeviceError) {
  Create("strata_sim_fault=stream_create:nth=1");
  void* stream = nullptr;
  EXPECT_EQ(strata_stream_create(facade_, 0, &stream), STRATA_DEVICE_ERROR);
  EXPECT_EQ(stream, nullptr);
}

TEST_F(CApiTest, AStreamThatCannotBeDestroyedCanBeTriedAgain) {
  Create("strata_sim_fault=stream_destroy:nth=1");
  void* const stream = NewStream();
  EXPECT_EQ(strata_stream_destroy(facade_, 0, stream), STRATA_DEVICE_ERROR);
  EXPECT_EQ(strata_stream_destroy(facade_, 0, stream), STRATA_OK);
}

TEST_F(CApiTest, NamesAPointerThatWasFreedAlready) {
  void* const kept = Alloc(100);
  void* const pointer = Alloc(100);
  std::ostringstream address;
  address << pointer;
  EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
  EXPECT_EQ(strata_free(facade_, pointer), STRATA_UNKNOWN_POINTER);
  EXPECT_THAT(strata_last_error(), HasSubstr(address.str()));
  EXPECT_EQ(strata_free_on(facade_, pointer, nullptr), STRATA_UNKNOWN_POINTER);
  EXPECT_EQ(strata_record_stream(facade_, pointer, nullptr),
            STRATA_UNKNOWN_POINTER);
  EXPECT_EQ(strata_record_use(facade_, pointer, nullptr, pointer),
            STRATA_UNKNOWN_POINTER);
  EXPECT_EQ(strata_erase_stream(facade_, pointer, nullptr),
            STRATA_UNKNOWN_POINTER);
  EXPECT_EQ(strata_free(facade_, static_cast<char*>(kept) + 1),
            STRATA_UNKNOWN_POINTER);
  EXPECT_EQ(Live(), 1U);
  EXPECT_EQ(strata_free(facade_, kept), STRATA_OK);
}

TEST_F(CApiTest, APointerOfAnotherFacadeIsUnknown) {
  strata_facade* other = nullptr;
  ASSERT_EQ(strata_create("strata_platform=sim", &other), STRATA_OK);
  void* const pointer = Alloc(100, nullptr, kHost);
  EXPECT_EQ(strata_free(other, pointer), STRATA_UNKNOWN_POINTER);
  EXPECT_EQ(strata_destroy(other), STRATA_OK);
  EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
}

TEST_F(CApiTest, StreamsHaveMemoryOfTheirOwn) {
  void* const a = NewStream();
  void* const b = NewStream();
  void* const kept = Alloc(100, a);  // the chunk stays in a's chain
  void* const of_a = Alloc(100, a);
  EXPECT_EQ(strata_free(facade_, of_a), STRATA_OK);
  void* const of_b = Alloc(100, b);
  EXPECT_NE(of_b, of_a);  // still cached for a
  EXPECT_EQ(Alloc(100, a), of_a);
  EXPECT_EQ(strata_free(facade_, of_a), STRATA_OK);
  EXPECT_EQ(strata_free(facade_, of_b), STRATA_OK);
  EXPECT_EQ(strata_free(facade_, kept), STRATA_OK);
}

TEST_F(CApiTest, RefusesAHandleThatIsNoStream) {
  void* const wrong = reinterpret_cast<void*>(0x1230);
  void* pointer = nullptr;
  EXPECT_EQ(strata_alloc(facade_, kDevice, 1, wrong, &pointer),
            STRATA_INVALID_ARGUMENT);
  pointer = Alloc(100);
  EXPECT_EQ(strata_record_stream(facade_, pointer, wrong),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_free_on(facade_, pointer, wrong), STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stream_destroy(facade_, 0, wrong), STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stream_destroyed(facade_, 0, wrong),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stream_destroyed(facade_, 0, nullptr),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stream_create(facade_, 2, &pointer),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_free(facade_, pointer),
            STRATA_OK);  // the failed call had no effect
}

TEST_F(CApiTest, MarksByAStreamOfAnyDevice) {
  void* const near = NewStream(0);
  void* const far = NewStream(1);
  for (const int kind : {STRATA_HOST, STRATA_DEVICE, STRATA_PINNED}) {
    for (void* stream : {near, far}) {
      void* const pointer = Alloc(100, nullptr, {kind, 0});
      EXPECT_EQ(strata_record_stream(facade_, pointer, stream), STRATA_OK);
      EXPECT_EQ(strata_erase_stream(facade_, pointer, stream), STRATA_OK);
      EXPECT_EQ(strata_record_stream(facade_, pointer, nullptr), STRATA_OK);
      EXPECT_EQ(strata_free_on(facade_, pointer, stream), STRATA_OK);
    }
  }
  EXPECT_EQ(Live(), 0U);
}

// An earlier fault: the driver was called at every mark.
TEST_F(CApiTest, AStreamIsLookedUpOnce) {
  void* const stream = NewStream(1);
  void* const pointer = Alloc(100);
  EXPECT_EQ(strata_record_stream(facade_, pointer, stream), STRATA_OK);
  const auto look_ups = [this] {
    Platform& platform = facade_->facade.platform();
    return platform.device(0).CallCount(DeviceCall::kWrapStream) +
           platform.device(1).CallCount(DeviceCall::kWrapStream);
  };
  const std::uint64_t before = look_ups();
  EXPECT_GT(before, 0U);
  EXPECT_EQ(strata_record_stream(facade_, pointer, stream), STRATA_OK);
  EXPECT_EQ(strata_erase_stream(facade_, pointer, stream), STRATA_OK);
  EXPECT_EQ(strata_free_on(facade_, pointer, stream), STRATA_OK);
  EXPECT_EQ(look_ups(), before);
}

// Another stream may have its handle then.
TEST_F(CApiTest, AStreamThatIsGoneIsLookedUpAgain) {
  void* const stream = NewStream();
  void* const pointer = Alloc(100);
  EXPECT_EQ(strata_record_stream(facade_, pointer, stream), STRATA_OK);
  EXPECT_EQ(strata_stream_destroy(facade_, 0, stream), STRATA_OK);
  EXPECT_EQ(strata_record_stream(facade_, pointer, stream),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
}

TEST_F(CApiTest, SaysHowMuchItReleased) {
  EXPECT_EQ(strata_free(facade_, Alloc(12 * kMebibyte)), STRATA_OK);
  std::size_t bytes = 0;
  EXPECT_EQ(strata_release(facade_, kDevice, &bytes), STRATA_OK);
  EXPECT_EQ(bytes, 12 * kMebibyte);
  EXPECT_EQ(strata_release(facade_, kDevice, nullptr), STRATA_OK);
}

TEST_F(CApiTest, AShortBufferIsNotWritten) {
  std::size_t needed = 0;
  strata_stats_json(facade_, nullptr, 0, &needed);
  std::string text(needed, 'x');
  EXPECT_EQ(strata_stats_json(facade_, text.data(), needed - 1, &needed),
            STRATA_SHORT_BUFFER);
  EXPECT_EQ(text, std::string(needed, 'x'));
  EXPECT_EQ(strata_stats_json(facade_, text.data(), needed, nullptr),
            STRATA_OK);
  EXPECT_EQ(text.find('\0'), needed - 1);
}

TEST_F(CApiTest, DestroyFreesWhatIsLeftAndSaysSo) {
  strata_facade* facade = nullptr;
  ASSERT_EQ(strata_create("strata_platform=sim", &facade), STRATA_OK);
  void* stream = nullptr;
  void* pointer = nullptr;
  ASSERT_EQ(strata_stream_create(facade, 0, &stream), STRATA_OK);
  ASSERT_EQ(strata_alloc(facade, kDevice, 100, stream, &pointer), STRATA_OK);
  ASSERT_EQ(strata_alloc(facade, kHost, 100, nullptr, &pointer), STRATA_OK);
  ASSERT_EQ(strata_record_stream(facade, pointer, stream), STRATA_OK);
  EXPECT_EQ(strata_destroy(facade), STRATA_LIVE_POINTERS);
  EXPECT_THAT(strata_last_error(), HasSubstr("2 pointer(s)"));
  EXPECT_EQ(strata_destroy(nullptr), STRATA_OK);
}

TEST_F(CApiTest, DestroyFindsEveryPointerThatIsLeft) {
  strata_facade* facade = nullptr;
  ASSERT_EQ(strata_create("strata_platform=sim", &facade), STRATA_OK);
  std::vector<void*> pointers(1000);
  for (void*& pointer : pointers) {
    ASSERT_EQ(strata_alloc(facade, kDevice, 1000, nullptr, &pointer),
              STRATA_OK);
  }
  for (std::size_t i = 0; i < pointers.size(); i += 2) {
    ASSERT_EQ(strata_free(facade, pointers[i]), STRATA_OK);
  }
  EXPECT_EQ(strata_destroy(facade), STRATA_LIVE_POINTERS);
  EXPECT_THAT(strata_last_error(), HasSubstr("500 pointer(s)"));
}

// The live pointers stay known, and nothing leaks.
TEST_F(CApiTest, WithoutHostMemoryForAPointerTheRequestFails) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  constexpr std::size_t kPointers = 6000;
  {
    // Creates blocks and records for all of them. Each pointer was known once,
    // but only one at a time, so that later only pointers need memory.
    std::vector<AllocationPtr> warm_up;
    PointerMap& known = facade_->pointers;
    for (std::size_t i = 0; i < kPointers; ++i) {
      AllocationPtr block = facade_->facade.Alloc(DevicePlace(0), 1000);
      const void* const data = block->data();
      known.Insert(std::move(block));
      warm_up.push_back(known.Take(data));
    }
  }
  std::vector<void*> pointers(kPointers);
  std::size_t served = 0;
  strata_status status = STRATA_OK;
  {
    const HeapFailure failure;
    while (status == STRATA_OK && served < kPointers) {
      void** const pointer = &pointers[served];
      status = strata_alloc(facade_, kDevice, 1000, nullptr, pointer);
      if (status == STRATA_OK) ++served;
    }
  }
  EXPECT_EQ(status, STRATA_OUT_OF_MEMORY);
  EXPECT_GT(served, 0U);
  ASSERT_LT(served, kPointers);
  EXPECT_EQ(pointers[served], nullptr);
  EXPECT_EQ(Live(), served);
  pointers[served] = Alloc(1000);
  for (std::size_t i = 0; i <= served; ++i) {
    EXPECT_EQ(strata_free(facade_, pointers[i]), STRATA_OK);
  }
  EXPECT_EQ(Live(), 0U);
}

TEST_F(CApiTest, AStreamThatCouldNotBeDestroyedIsStillThere) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  std::uint64_t failed = 0;
  for (std::uint64_t fault = 1;; ++fault) {
    SCOPED_TRACE(fault);
    void* const stream = NewStream();
    ASSERT_EQ(strata_free(facade_, Alloc(1000, stream)), STRATA_OK);
    strata_status status = STRATA_OK;
    std::uint64_t calls = 0;
    {
      const HeapFailure failure(fault);
      status = strata_stream_destroy(facade_, 0, stream);
      calls = failure.calls();
    }
    if (status != STRATA_OK) {
      ++failed;
      EXPECT_EQ(status, STRATA_OUT_OF_MEMORY);
      EXPECT_EQ(strata_stream_destroy(facade_, 0, stream), STRATA_OK)
          << strata_last_error();
    }
    EXPECT_EQ(strata_stream_destroy(facade_, 0, stream),
              STRATA_INVALID_ARGUMENT);
    if (calls < fault) break;
  }
  EXPECT_GT(failed, 0U);
}

TEST_F(CApiTest, ACaptureThatIsAnnouncedTwiceIsTheCallersMistake) {
  void* const stream = NewStream();
  std::int64_t pool = 0;
  ASSERT_EQ(strata_capture_begin(facade_, 0, stream, &pool), STRATA_OK)
      << strata_last_error();
  std::int64_t again = pool;
  EXPECT_EQ(strata_capture_begin(facade_, 0, stream, &again),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_capture_end(facade_, 0, pool, nullptr), STRATA_OK);
  EXPECT_EQ(strata_graph_pool_remove(facade_, pool), STRATA_OK);
}

TEST_F(CApiTest, TheEndOfACaptureNamesItsPoolAndDevice) {
  std::int64_t pool = 0;
  ASSERT_EQ(strata_capture_begin(facade_, 0, NewStream(), &pool), STRATA_OK);
  EXPECT_EQ(strata_capture_end(facade_, 0, pool + 1, nullptr),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_capture_end(facade_, 77, pool, nullptr),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_graph_pool_remove(facade_, pool), STRATA_OK);
}

// Idle memory beside a live result, after the last use of the pool.
TEST_F(CApiTest, AReleaseReachesAGraphPoolThatHasEnded) {
  void* const stream = NewStream();
  Device& device = facade_->facade.platform().device(0);
  const Stream captured = facade_->facade.Wrap(stream, 0);
  int64_t pool = 0;
  ASSERT_EQ(strata_capture_begin(facade_, 0, stream, &pool), STRATA_OK);
  ASSERT_EQ(device.StreamBeginCapture(captured, CaptureMode::kRelaxed),
            Status::kSuccess);
  void* const temporary = Alloc(12 * kMebibyte, stream);
  void* const result = Alloc(12 * kMebibyte, stream);
  EXPECT_EQ(strata_free(facade_, temporary), STRATA_OK);
  Graph graph;
  ASSERT_EQ(device.StreamEndCapture(captured, &graph), Status::kSuccess);
  ASSERT_EQ(strata_capture_end(facade_, 0, pool, graph.value), STRATA_OK);
  ASSERT_EQ(strata_graph_pool_remove(facade_, pool), STRATA_OK);
  ASSERT_EQ(device.GraphDestroy(graph), Status::kSuccess);
  std::size_t given = 0;
  EXPECT_EQ(strata_release(facade_, kDevice, &given), STRATA_OK);
  EXPECT_EQ(given, 12 * kMebibyte);
  EXPECT_EQ(strata_free(facade_, result), STRATA_OK);
}

// The stream was destroyed without notice, and the next one has its handle.
TEST_F(CApiTest, AHandleNamesTheNextStreamOnceTheLastOneIsKnownToBeGone) {
  Device& device = facade_->facade.platform().device(0);
  Stream lost;
  ASSERT_EQ(device.StreamCreate(&lost, kStreamNonBlocking), Status::kSuccess);
  EXPECT_EQ(strata_free(facade_, Alloc(kMebibyte, lost.handle)), STRATA_OK);
  ASSERT_EQ(device.StreamDestroy(lost), Status::kSuccess);
  Stream next;
  ASSERT_EQ(device.StreamCreate(&next, kStreamNonBlocking), Status::kSuccess);
  ASSERT_EQ(next.handle, lost.handle);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(strata_release(facade_, kDevice, nullptr), STRATA_OK);
  }
  void* const pointer = Alloc(kMebibyte, next.handle);
  EXPECT_EQ(facade_->facade.GetStream(*facade_->pointers.Find(pointer)), next);
  EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
  EXPECT_EQ(strata_stream_destroyed(facade_, 0, next.handle), STRATA_OK);
  ASSERT_EQ(device.StreamDestroy(next), Status::kSuccess);
}

TEST_F(CApiTest, AStreamMayForbidWaits) {
  void* stream = nullptr;
  ASSERT_EQ(strata_stream_create(facade_, 0, &stream), STRATA_OK);
  EXPECT_EQ(strata_stream_forbid_waits(facade_, 0, stream), STRATA_OK);
  EXPECT_EQ(strata_stream_forbid_waits(facade_, 7, stream),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stream_forbid_waits(nullptr, 0, stream),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_stream_destroy(facade_, 0, stream), STRATA_OK);
}

}  // namespace
}  // namespace strata
