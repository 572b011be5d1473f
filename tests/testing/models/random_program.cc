#include "strata/tests/testing/models/random_program.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "strata/platform/device_work.h"

namespace strata {

RandomProgram::RandomProgram(SimPlatform* platform, std::uint64_t seed)
    : platform_(*platform), device_(platform->device(0)), random_(seed) {}

std::string RandomProgram::Run(int steps) {
  SetUp();
  for (int i = 0; i < steps; ++i) Step();
  return TearDown();
}

void RandomProgram::SetUp() {
  streams_ = {device_.LegacyStream()};
  for (const unsigned flags :
       {kStreamDefault, kStreamNonBlocking, kStreamNonBlocking}) {
    Stream stream;
    EXPECT_EQ(device_.StreamCreate(&stream, flags), Status::kSuccess);
    streams_.push_back(stream);
  }
  buffers_.resize(kBuffers);
  for (Buffer& buffer : buffers_) {
    EXPECT_EQ(device_.EventCreate(&buffer.last_use, kEventDisableTiming),
              Status::kSuccess);
    Replace(&buffer);
  }
}

std::string RandomProgram::TearDown() {
  EXPECT_EQ(device_.Synchronize(), Status::kSuccess);
  device_.SetCallObserver(nullptr);
  std::string result;
  for (const Buffer& buffer : buffers_) {
    result += std::to_string(buffer.bytes);
    result += ' ';
    result += std::to_string(FirstWord(buffer));
    result += '\n';
    EXPECT_EQ(device_.MemFree(buffer.ptr), Status::kSuccess);
    EXPECT_EQ(device_.EventDestroy(buffer.last_use), Status::kSuccess);
  }
  // The first stream is the legacy stream.
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    EXPECT_EQ(device_.StreamDestroy(streams_[i]), Status::kSuccess);
  }
  EXPECT_EQ(platform_.LeakReport(), "");
  return result;
}

void RandomProgram::Step() {
  const Stream& stream = streams_[Draw(streams_.size())];
  Buffer& buffer = buffers_[Draw(kBuffers)];
  switch (Draw(6)) {
    case 0:
      return Replace(&buffer);
    case 1:
    case 2:
      return Fill(&buffer, stream);
    case 3:
      return Copy(&buffer, &buffers_[Draw(kBuffers)], stream);
    case 4:
      device_.EventQuery(buffer.last_use);
      return;
    default:
      EXPECT_EQ(
          platform_.work(0)->Enqueue(stream, nullptr, 0, 1000 * Draw(100), 0),
          Status::kSuccess);
  }
}

void RandomProgram::Replace(Buffer* buffer) {
  EXPECT_EQ(device_.EventSynchronize(buffer->last_use), Status::kSuccess);
  EXPECT_EQ(device_.MemFree(buffer->ptr), Status::kSuccess);
  buffer->bytes = std::size_t{512} << Draw(14);
  EXPECT_EQ(device_.MemAlloc(&buffer->ptr, buffer->bytes), Status::kSuccess);
  addresses_ += std::to_string(buffer->ptr);
  addresses_ += '\n';
  Fill(buffer, streams_.back());
}

void RandomProgram::Order(const Stream& stream, const Buffer& buffer) {
  EXPECT_EQ(device_.StreamWaitEvent(stream, buffer.last_use, 0),
            Status::kSuccess);
}

void RandomProgram::Fill(Buffer* buffer, const Stream& stream) {
  Order(stream, *buffer);
  EXPECT_EQ(device_.MemsetAsync(buffer->ptr, static_cast<int>(Draw(256)),
                                buffer->bytes, stream),
            Status::kSuccess);
  EXPECT_EQ(device_.EventRecord(buffer->last_use, stream, 0), Status::kSuccess);
}

void RandomProgram::Copy(Buffer* target, Buffer* source, const Stream& stream) {
  if (target == source) return;
  Order(stream, *target);
  Order(stream, *source);
  EXPECT_EQ(device_.MemcpyAsync(target->ptr, source->ptr,
                                std::min(target->bytes, source->bytes), stream),
            Status::kSuccess);
  EXPECT_EQ(device_.EventRecord(target->last_use, stream, 0), Status::kSuccess);
  EXPECT_EQ(device_.EventRecord(source->last_use, stream, 0), Status::kSuccess);
}

std::uint64_t RandomProgram::FirstWord(const Buffer& buffer) {
  void* host = nullptr;
  EXPECT_EQ(device_.MallocHost(&host, sizeof(std::uint64_t), 0),
            Status::kSuccess);
  auto* word = static_cast<std::uint64_t*>(host);
  *word = 0;
  EXPECT_EQ(device_.MemcpyAsync(reinterpret_cast<DevicePtr>(host), buffer.ptr,
                                sizeof(*word), device_.LegacyStream()),
            Status::kSuccess);
  EXPECT_EQ(device_.Synchronize(), Status::kSuccess);
  const std::uint64_t value = *word;
  EXPECT_EQ(device_.FreeHost(host), Status::kSuccess);
  return value;
}

}  // namespace strata
