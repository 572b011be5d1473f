#include "strata/tests/testing/devices/device_fixture.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>

#include "strata/platform/registry.h"
#include "strata/tests/testing/devices/faulting_platform.h"

namespace strata {
namespace {

// GPU time or simulated time. Far longer than the calls of a test.
constexpr std::uint64_t kLongWorkNs = 50'000'000;

// Each test has its own platform. The first platform keeps the GPU's context
// until the process ends, because a context takes a third of a second to
// create.
void KeepContext(const std::shared_ptr<Platform>& platform) {
  static auto* const kept = new std::shared_ptr<Platform>();
  if (*kept != nullptr || platform->device(0).caps().simulated) return;
  *kept = platform;
  platform->device(0).Synchronize();
}

std::shared_ptr<Platform> MakeFaultingCuda() {
  if (g_make_faulting_cuda == nullptr) {
    throw std::runtime_error("the build has no CUDA platform");
  }
  return g_make_faulting_cuda();
}

}  // namespace

void DeviceTest::SetUp() {
  const bool is_sim = GetParam().options.platform == "sim";
  if (GetParam().faulted && is_sim) {
    auto faulting = std::make_shared<FaultingPlatform>(GetParam().options);
    sim_ = &faulting->sim();
    platform_ = faulting;
    return;
  }
  try {
    platform_ = GetParam().faulted ? MakeFaultingCuda()
                                   : MakePlatform(GetParam().options);
    KeepContext(platform_);
  } catch (const std::exception& error) {
    if (is_sim) throw;
    GTEST_SKIP() << error.what();
  }
  sim_ = dynamic_cast<SimPlatform*>(platform_.get());
}

void DeviceTest::TearDown() {
  if (platform_ == nullptr || given_up_) return;
  for (int i = 0; i < platform_->device_count(); ++i) {
    EXPECT_EQ(device(i).Synchronize(), Status::kSuccess);
  }
  while (!undo_.empty()) {
    const std::function<void()> undo = std::move(undo_.back());
    undo_.pop_back();
    undo();
  }
  if (sim_ != nullptr) {
    EXPECT_EQ(sim_->LeakReport(), "");
  }
}

bool DeviceTest::HasPeers() {
  bool there = false;
  bool back = false;
  if (!HasTwoDevices()) return false;
  EXPECT_EQ(device(0).CanAccessPeer(1, &there), Status::kSuccess);
  EXPECT_EQ(device(1).CanAccessPeer(0, &back), Status::kSuccess);
  return there && back;
}

bool DeviceTest::HasBytes() const {
  const std::string& data = GetParam().options.sim_data;
  return sim_ == nullptr || (data != "phantom" && data != "small");
}

bool DeviceTest::HasBytesOf(std::size_t bytes) const {
  return HasBytes() || (GetParam().options.sim_data == "small" &&
                        bytes <= sim::KeptBytes::kMostWriteBytes);
}

bool DeviceTest::CanHold() const {
  const std::string& progress = GetParam().options.sim_progress;
  return sim_ == nullptr || (progress != "inline" && progress != "seeded");
}

bool DeviceTest::PollingMakesProgress() const {
  return sim_ == nullptr || GetParam().options.sim_progress != "manual";
}

Stream DeviceTest::NewStream(unsigned flags, int ordinal) {
  Stream stream;
  EXPECT_EQ(device(ordinal).StreamCreate(&stream, flags), Status::kSuccess);
  AtEnd([this, ordinal, stream] {
    EXPECT_EQ(device(ordinal).StreamDestroy(stream), Status::kSuccess);
  });
  return stream;
}

Event DeviceTest::NewEvent(int ordinal) {
  Event event;
  EXPECT_EQ(device(ordinal).EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  AtEnd([this, ordinal, event] {
    EXPECT_EQ(device(ordinal).EventDestroy(event), Status::kSuccess);
  });
  return event;
}

DevicePtr DeviceTest::NewMemory(std::size_t bytes, int ordinal) {
  DevicePtr ptr = 0;
  EXPECT_EQ(device(ordinal).MemAlloc(&ptr, bytes), Status::kSuccess);
  AtEnd([this, ordinal, ptr] {
    EXPECT_EQ(device(ordinal).MemFree(ptr), Status::kSuccess);
  });
  return ptr;
}

std::uint64_t* DeviceTest::NewPinned(std::size_t words) {
  void* ptr = nullptr;
  EXPECT_EQ(device().MallocHost(&ptr, words * sizeof(std::uint64_t), 0),
            Status::kSuccess);
  AtEnd([this, ptr] { EXPECT_EQ(device().FreeHost(ptr), Status::kSuccess); });
  auto* first = static_cast<std::uint64_t*>(ptr);
  if (first != nullptr) std::fill(first, first + words, 0);
  return first;
}

void DeviceTest::Enqueue(const Stream& stream, const WorkRange* range,
                         std::uint64_t busy_ns, std::uint64_t word) {
  ASSERT_NE(Work(stream), nullptr);
  ASSERT_EQ(Work(stream)->Enqueue(stream, range, range != nullptr ? 1 : 0,
                                  busy_ns, word),
            Status::kSuccess);
}

void DeviceTest::LongWork(const Stream& stream) {
  Enqueue(stream, nullptr, kLongWorkNs, 0);
}

void DeviceTest::Write(DevicePtr ptr, std::size_t bytes, std::uint64_t word,
                       const Stream& stream) {
  const WorkRange range{ptr, bytes, true};
  Enqueue(stream, &range, 0, word);
}

void DeviceTest::LongWrite(DevicePtr ptr, std::size_t bytes, std::uint64_t word,
                           const Stream& stream) {
  const WorkRange range{ptr, bytes, true};
  Enqueue(stream, &range, kLongWorkNs, word);
}

void DeviceTest::WriteEarly(DevicePtr ptr, std::size_t bytes,
                            std::uint64_t word, const Stream& stream) {
  const WorkRange range{ptr, bytes, true};
  ASSERT_NE(Work(stream), nullptr);
  ASSERT_EQ(Work(stream)->EnqueueEarly(stream, &range, 1, 0, word),
            Status::kSuccess);
}

void DeviceTest::Read(DevicePtr ptr, std::size_t bytes, const Stream& stream) {
  const WorkRange range{ptr, bytes, false};
  Enqueue(stream, &range, 0, 0);
}

void DeviceTest::ExpectWords(DevicePtr ptr, std::size_t bytes,
                             std::uint64_t word, int ordinal) {
  const std::size_t words = bytes / sizeof(std::uint64_t);
  const std::uint64_t* host = NewPinned(words);
  const Stream stream = NewStream(kStreamNonBlocking, ordinal);
  ASSERT_EQ(device(ordinal).Synchronize(), Status::kSuccess);
  ASSERT_EQ(device(ordinal).MemcpyAsync(reinterpret_cast<DevicePtr>(host), ptr,
                                        bytes, stream),
            Status::kSuccess);
  ASSERT_EQ(device(ordinal).StreamSynchronize(stream), Status::kSuccess);
  if (!HasBytes()) return;
  const std::uint64_t* wrong = std::find_if(
      host, host + words, [=](std::uint64_t one) { return one != word; });
  EXPECT_EQ(wrong, host + words)
      << "word " << (wrong - host) << " of " << words << " is "
      << (wrong == host + words ? 0 : *wrong) << ", not " << word;
}

std::size_t DeviceTest::FreeBytes(int ordinal) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  EXPECT_EQ(device(ordinal).MemGetInfo(&free_bytes, &total_bytes),
            Status::kSuccess);
  return free_bytes;
}

void DeviceTest::ExpectFreeBytes(std::size_t bytes) {
  if (sim_ != nullptr) {
    EXPECT_EQ(FreeBytes(), bytes);
  } else {
    EXPECT_GE(FreeBytes() + kLargeBytes / 2, bytes);
  }
}

Status DeviceTest::PollUntilDone(Event event) {
  Status status = Status::kNotReady;
  while (status == Status::kNotReady) status = device().EventQuery(event);
  return status;
}

void DeviceTest::Pin(const std::string& what, Status status) {
  PinText(what, ToString(status));
}

void DeviceTest::Pin(const std::string& what, std::uint64_t value) {
  PinText(what, std::to_string(value));
}

void DeviceTest::PinText(const std::string& what, const std::string& value) {
  const ::testing::TestInfo* test =
      ::testing::UnitTest::GetInstance()->current_test_info();
  EXPECT_NE(std::string(test->name()).find(kPins), std::string::npos)
      << "the tests that record something are found by their names";
  RecordProperty("pin_" + what, value);
}

}  // namespace strata
