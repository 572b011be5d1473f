#include "strata/tools/bench/heaps/heaps.h"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "strata/platform/registry.h"
#include "strata/tools/peers/registry.h"

namespace strata::tools {

BenchStreams::BenchStreams(Device& device, std::size_t count)
    : device_(device), streams_{device.LegacyStream()} {
  while (streams_.size() < count) {
    Stream stream;
    const Status status = device.StreamCreate(&stream, kStreamNonBlocking);
    if (status != Status::kSuccess) {
      throw std::runtime_error(std::string("bench: cannot create a stream: ") +
                               StatusName(status));
    }
    streams_.push_back(stream);
  }
}

BenchStreams::~BenchStreams() {
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    device_.StreamDestroy(streams_[i]);
  }
}

FacadeHeap::FacadeHeap(const Options& options, std::size_t streams)
    : platform_(MakePlatform(options.platform)),
      streams_(platform_->device(0), streams),
      facade_(options, platform_) {}

CAbiHeap::CAbiHeap(const Options& options, std::size_t streams) {
  if (strata_create(ToString(options).c_str(), &facade_) != STRATA_OK) {
    ThrowLastError();
  }
  while (streams_.size() < streams) {
    void* stream = nullptr;
    if (strata_stream_create(facade_, 0, &stream) != STRATA_OK) {
      const std::runtime_error error(strata_last_error());
      strata_destroy(facade_);
      throw std::runtime_error(error);
    }
    streams_.push_back(stream);
  }
}

CAbiHeap::~CAbiHeap() { strata_destroy(facade_); }

void CAbiHeap::ThrowLastError() {
  throw std::runtime_error(strata_last_error());
}

std::optional<std::uint64_t> CAbiHeap::Count(const char* name) {
  std::size_t size = 0;
  strata_stats_json(facade_, nullptr, 0, &size);
  std::string text(size, '\0');
  if (strata_stats_json(facade_, text.data(), text.size(), &size) !=
      STRATA_OK) {
    ThrowLastError();
  }
  const auto stats = nlohmann::json::parse(text.c_str());
  return stats.at("device:0").at(name).get<std::uint64_t>();
}

PeerHeap::PeerHeap(std::string_view name, const Options& options,
                   std::size_t streams)
    : platform_(MakePlatform(options.platform)),
      peer_(peers::MakePeer(name, platform_->device(0))),
      streams_(platform_->device(0), streams) {}

}  // namespace strata::tools
