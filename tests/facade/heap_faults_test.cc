// Each call of operator new in a session fails, once or from then on. The
// session succeeds or ends in clean errors, and nothing leaks.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/base/function_ref.h"
#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/devices/faulting_platform.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

using Lasts = HeapFailure::Lasts;

constexpr std::size_t kUsedBytes = 700;

class Session {
 public:
  // The call number `fault` of operator new fails; 0: none.
  Session(const std::string& options, std::uint64_t fault,
          Lasts lasts = Lasts::kOnce)
      : fault_(fault),
        lasts_(lasts),
        is_guarded_(options.find("strata_guard") != std::string::npos) {
    PlatformOptions sim;
    sim.sim_memory_bytes = Mebibytes(64);
    platform_ = std::make_shared<FaultingPlatform>(sim, Faults::kCallersHeap);
    for (Stream& stream : streams_) {
      EXPECT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
                Status::kSuccess);
    }
    facade_ =
        std::make_unique<AllocatorFacade>(Options::Parse(options), platform_);
  }

  // Number of calls.
  std::uint64_t calls() const { return calls_; }

  void Run() {
    const Stream a = streams_[0];
    const Stream b = streams_[1];
    AllocationPtr small = Alloc(Request{1000}, a);
    AllocationPtr large = Alloc(Request{Mebibytes(20)}, a);
    AllocationPtr aligned = Alloc(Request{1000, 1 << 16}, b);
    Try([&] { facade_->Wrap(b.handle, 0); });
    AllocationPtr managed = Alloc(Request{5000}, a, ManagedPlace(0));
    AllocationPtr pinned = Alloc(Request{5000}, a, PinnedPlace(0));
    Mark(small, b);
    Mark(pinned, a);
    Mark(managed, b);
    Free(large);
    RunMany();
    // Takes the idle chunk of a, then needs the idle memory of all streams.
    AllocationPtr taken = Alloc(Request{Mebibytes(20)}, b);
    AllocationPtr second = Alloc(Request{Mebibytes(20)}, a);
    Free(taken);
    Free(second);
    AllocationPtr most = Alloc(Request{Mebibytes(50)}, a);
    EXPECT_EQ(Alloc(Request{Mebibytes(500)}, a), nullptr);
    Free(small);
    Free(pinned);
    Free(most);
    Try([&] { facade_->Release(kPlace); });
    AllocationPtr late = Alloc(Request{300}, b);
    Mark(late, a);
    AllocationPtr used = Alloc(Request{kUsedBytes}, b);
    RunCapture(late, used);
    Try([&] { facade_->StatsJson(); });
    Free(managed);
    Free(aligned);
    TryTwice([&] { facade_->StreamDestroyed(b); });
  }

  // Checks the remains after all blocks are freed.
  void Finish() {
    // Releases the objects of the launch and its graph.
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
    for (const Place place : facade_->places()) {
      const Stats stats = facade_->GetStats(place);
      EXPECT_GE(stats.allocations, met_[static_cast<std::size_t>(place.kind)]);
      EXPECT_EQ(stats.frees, stats.allocations);
      EXPECT_EQ(stats.in_use_bytes, 0U);
      facade_->Release(place);
      if (is_lost_) continue;
      EXPECT_EQ(facade_->GetStats(place).reserved_bytes, 0U) << ToString(place);
    }
    Free(facade_);
    EXPECT_EQ(platform_.use_count(), 1);
    for (const Stream& stream : streams_) device().StreamDestroy(stream);
    if (!is_lost_) {
      EXPECT_EQ(platform_->sim().LeakReport(), "");
    }
  }

 private:
  Device& device() { return platform_->device(0); }

  // Number of calls of operator new until the fault; 0: no call will fail.
  std::uint64_t NextFault() const {
    if (fault_ > calls_) return fault_ - calls_;
    return fault_ != 0 && lasts_ == Lasts::kFromThenOn ? 1 : 0;
  }
  // Makes a call that the fault may hit; false if it failed.
  bool Try(FunctionRef<void()> call) {
    std::string error;
    bool done = false;
    {
      const HeapFailure failure(NextFault(), lasts_);
      try {
        call();
        done = true;
      } catch (const std::bad_alloc&) {
      } catch (const std::exception& other) {
        const HeapFailure::Pause pause;
        error = other.what();
      }
      calls_ += failure.calls();
    }
    EXPECT_EQ(error, "") << "no host memory is no other error";
    return done;
  }

  // A call that failed for lack of host memory can be repeated.
  void TryTwice(FunctionRef<void()> call) {
    EXPECT_TRUE(Try(call) || Try(call) || lasts_ == Lasts::kFromThenOn);
  }
  AllocationPtr Alloc(const Request& request, Stream stream,
                      Place place = kPlace) {
    const Stats before = facade_->GetStats(place);
    AllocationPtr result;
    Try([&] { result = facade_->Alloc(place, request, stream); });
    const Stats after = facade_->GetStats(place);
    met_[static_cast<std::size_t>(place.kind)] += result != nullptr;
    EXPECT_EQ(after.live_allocations() - before.live_allocations(),
              result != nullptr);
    if (result == nullptr) {
      EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
      EXPECT_EQ(after.requested_bytes, before.requested_bytes);
    }
    return result;
  }
  template <class Owner>
  void Free(Owner& owner) {
    EXPECT_TRUE(Try([&] { owner.reset(); }));
  }
  void Mark(const AllocationPtr& allocation, Stream stream) {
    if (allocation == nullptr) return;
    Try([&] { facade_->RecordStream(allocation, stream); });
  }

  // Enough blocks for lists to grow.
  void RunMany() {
    constexpr std::size_t kCount = 40;
    std::vector<AllocationPtr> many;
    for (std::size_t i = 0; i < kCount; ++i) {
      many.push_back(Alloc(Request{300 + 700 * (i % 9)}, streams_[i % 3 == 0]));
    }
    for (std::size_t i = 0; i < kCount; i += 7) Mark(many[i], streams_[i % 2]);
    for (std::size_t i = 0; i < kCount; i += 3) Free(many[i]);
    for (AllocationPtr& one : many) Free(one);
  }

  // Allocates enough blocks of its size to get the memory at `address` if it
  // were free.
  void ExpectNoOther(const void* address, Stream stream) {
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
    std::vector<AllocationPtr> all;
    for (int i = 0; i < 50; ++i) {
      all.push_back(Alloc(Request{kUsedBytes}, stream));
      EXPECT_TRUE(all.back() == nullptr || all.back()->data() != address);
    }
  }

  // Frees both during the capture, which uses the second one.
  void RunCapture(AllocationPtr& outside, AllocationPtr& used) {
    const Stream a = streams_[0];
    const Stream b = streams_[1];
    GraphPoolId id = 0;
    Try([&] { id = facade_->PrepareMemoryPoolForCUDAGraph(0, a); });
    if (id == 0) return;
    ASSERT_EQ(device().StreamBeginCapture(a, CaptureMode::kThreadLocal),
              Status::kSuccess);
    AllocationPtr first = Alloc(Request{5000}, a);
    AllocationPtr second = Alloc(Request{9000}, a);
    const std::uint64_t before = NextFault();
    const void* const in_use = used != nullptr ? used->data() : nullptr;
    Mark(used, a);
    Free(used);
    Free(outside);
    Free(first);
    // Memory that a capture may use is not free yet, and keeping it needs host
    // memory. Without host memory its chunk is lost, and logged. A guard frees
    // later.
    is_lost_ = before != 0 && (fault_ <= calls_ || is_guarded_);
    const AllocationPtr other = Alloc(Request{kUsedBytes}, b);
    EXPECT_TRUE(other == nullptr || other->data() != in_use);
    first = Alloc(Request{3000}, a);
    Graph graph;
    EXPECT_EQ(device().StreamEndCapture(a, &graph), Status::kSuccess)
        << "a request that fails leaves the capture as it was";
    Try([&] { facade_->CaptureEnded(id); });
    const bool kept = Try([&] { facade_->KeepForGraph(id, 0, graph); });
    if (kept) ExpectNoOther(in_use, b);
    Free(first);
    Free(second);
    if (kept) {
      GraphExec exec;
      EXPECT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
      EXPECT_EQ(device().GraphLaunch(exec, a), Status::kSuccess);
      EXPECT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
    }
    EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
    TryTwice([&] { facade_->RemoveMemoryPoolOfCUDAGraph(id); });
  }

  const std::uint64_t fault_;
  const Lasts lasts_;
  const bool is_guarded_;
  std::uint64_t calls_ = 0;
  std::shared_ptr<FaultingPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  Stream streams_[2];
  bool is_lost_ = false;
  std::uint64_t met_[4] = {};  // by PlaceKind
};

class HeapFaultsTest : public testing::TestWithParam<const char*> {};

void FailEachCall(const std::string& options, Lasts lasts) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  std::uint64_t calls = 0;
  // The first session also creates the objects of the process.
  for (int i = 0; i < 2; ++i) {
    Session plain(options, 0);
    plain.Run();
    calls = plain.calls();
    plain.Finish();
  }
  EXPECT_GT(calls, 100U);
  for (std::uint64_t fault = 1; fault <= calls; ++fault) {
    SCOPED_TRACE("call " + std::to_string(fault) + " of " +
                 std::to_string(calls));
    Session session(options, fault, lasts);
    session.Run();
    session.Finish();
  }
}

TEST_P(HeapFaultsTest, EveryCallMayFailOnce) {
  FailEachCall(GetParam(), Lasts::kOnce);
}

TEST_P(HeapFaultsTest, FromEveryCallOnAllMayFail) {
  FailEachCall(GetParam(), Lasts::kFromThenOn);
}

TEST_P(HeapFaultsTest, AFacadeIsBuiltWholeOrNotAtAll) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  const Options options = Options::Parse(GetParam());
  PlatformOptions sim;
  sim.sim_memory_bytes = Mebibytes(64);
  bool is_built = false;
  std::uint64_t fault = 0;
  while (!is_built) {
    SCOPED_TRACE("call " + std::to_string(++fault));
    const auto platform =
        std::make_shared<FaultingPlatform>(sim, Faults::kCallersHeap);
    std::unique_ptr<AllocatorFacade> facade;
    {
      const HeapFailure failure(fault);
      try {
        facade = std::make_unique<AllocatorFacade>(options, platform);
      } catch (const std::bad_alloc&) {
      }
      is_built = failure.calls() < fault;
    }
    if (facade != nullptr) {
      EXPECT_NE(facade->Alloc(kPlace, 1000), nullptr);
    }
    facade.reset();
    EXPECT_EQ(platform.use_count(), 1);
    EXPECT_EQ(platform->sim().LeakReport(), "");
  }
  EXPECT_GT(fault, 10U);
}

INSTANTIATE_TEST_SUITE_P(
    Options, HeapFaultsTest,
    testing::Values(
        "", "allocator_strategy=auto_growth", "allocator_strategy=bfc",
        "allocator_strategy=cuda_malloc_async", "allocator_strategy=direct",
        "allocator_strategy=naive_best_fit", "allocator_strategy=pool",
        "allocator_strategy=thread_local",
        "alloc_fill_value=1,sync_after_alloc,strata_stream_lock=biased",
        "gpu_memory_limit_mb=60,strata_check_streams",
        "free_idle_chunk,auto_growth_chunk_rule=exact",
        "free_when_no_cache_hit,strata_exact_peak",
        "strata_guard,strata_guard_quarantine=30MiB",
        "strata_allocation_log_file=/dev/null,strata_trace_file=/dev/zero"));

}  // namespace
}  // namespace strata
