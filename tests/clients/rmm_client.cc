// Runs RMM's memory resources, and compares their numbers with the driver's.
//
// usage: rmm_client LOG SMALL_LOG TAKEN
//
// A line is `NAME NUMBER NUMBER`: bytes as RMM counts them, and as the driver
// does. LOG gets the requests that a pool served, in RMM's form, for `strata
// replay`; SMALL_LOG those of a pool on a device without TAKEN bytes. The exit
// code is 1 if two numbers differ.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <rmm/cuda_stream.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/mr/device/arena_memory_resource.hpp>
#include <rmm/mr/device/binning_memory_resource.hpp>
#include <rmm/mr/device/cuda_async_memory_resource.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/logging_resource_adaptor.hpp>
#include <rmm/mr/device/managed_memory_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

using Resource = rmm::mr::device_memory_resource;
using Counted = rmm::mr::statistics_resource_adaptor<Resource>;

int g_differences = 0;

// Bytes of the device that are in use.
std::int64_t DriverBytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free, &total);
  return static_cast<std::int64_t>(total - free);
}

void Compare(const char* name, std::int64_t counted, std::int64_t driver) {
  std::printf("%-20s %12lld %12lld\n", name, static_cast<long long>(counted),
              static_cast<long long>(driver));
  if (counted != driver) ++g_differences;
}

// Requests and frees of `sizes` to `most_bytes` in two streams, from a seed.
void Churn(Resource& resource, std::size_t granule, std::size_t most_bytes) {
  struct Block {
    void* ptr;
    std::size_t bytes;
    rmm::cuda_stream_view stream;
  };
  const rmm::cuda_stream streams[2];
  std::mt19937 random(42);  // NOLINT: the same requests in each run
  std::vector<Block> live;
  for (int i = 0; i < 400; ++i) {
    if (live.size() > 20 || (!live.empty() && random() % 3 == 0)) {
      std::swap(live[random() % live.size()], live.back());
      resource.deallocate_async(live.back().ptr, live.back().bytes,
                                live.back().stream);
      live.pop_back();
    }
    const std::size_t bytes = (1 + random() % (most_bytes / granule)) * granule;
    const rmm::cuda_stream_view stream = streams[random() % 2].view();
    live.push_back({resource.allocate_async(bytes, stream), bytes, stream});
  }
  for (const Block& block : live) {
    resource.deallocate_async(block.ptr, block.bytes, block.stream);
  }
}

// The device serves each request of a multiple of 2 MiB as it is.
void CheckCuda() {
  rmm::mr::cuda_memory_resource cuda;
  Counted counted(&cuda);
  void* const first = counted.allocate(64 * kMebibyte);
  void* const second = counted.allocate(6 * kMebibyte);
  Compare("cuda", counted.get_bytes_counter().value, DriverBytes());
  counted.deallocate(first, 64 * kMebibyte);
  Compare("cuda, one is freed", counted.get_bytes_counter().value,
          DriverBytes());
  counted.deallocate(second, 6 * kMebibyte);
  Compare("cuda, all are freed", 0, DriverBytes());
}

void CheckManaged() {
  rmm::mr::managed_memory_resource managed;
  void* const ptr = managed.allocate(8 * kMebibyte);
  cudaPointerAttributes attributes = {};
  cudaPointerGetAttributes(&attributes, ptr);
  Compare("managed, type", cudaMemoryTypeManaged, attributes.type);
  managed.deallocate(ptr, 8 * kMebibyte);
  Compare("managed, freed", 0, DriverBytes());
}

// The pool begins empty, and grows by as much as it has. Another allocation
// takes `taken` bytes of the device; growths that are refused are halved.
void CheckPool(const char* name, const char* log, std::size_t taken) {
  rmm::mr::cuda_memory_resource cuda;
  void* const other = cuda.allocate(taken);
  {
    rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool(&cuda, 0);
    {
      rmm::mr::logging_resource_adaptor<Resource> logged(&pool, log);
      Churn(logged, 2 * kMebibyte, 64 * kMebibyte);
      logged.flush();
    }
    Compare(name, static_cast<std::int64_t>(pool.pool_size() + taken),
            DriverBytes());
  }
  cuda.deallocate(other, taken);
}

// The arena and the bins allocate from `below`, which counts the bytes.
void CheckOver(
    const char* name, std::size_t granule, std::size_t most_bytes,
    const std::function<void(Counted*, std::size_t, std::size_t)>& use) {
  {
    rmm::mr::cuda_memory_resource cuda;
    Counted below(&cuda);
    use(&below, granule, most_bytes);
    Compare(name, below.get_bytes_counter().value, DriverBytes());
  }
  Compare((std::string(name) + ", ended").c_str(), 0, DriverBytes());
}

void CheckArena() {
  CheckOver("arena", 256, 32 * kMebibyte,
            [](Counted* below, std::size_t granule, std::size_t most) {
              rmm::mr::arena_memory_resource<Counted> arena(below,
                                                            2048 * kMebibyte);
              Churn(arena, granule, most);
              Compare("arena, in use", below->get_bytes_counter().value,
                      DriverBytes());
            });
}

void CheckBins() {
  CheckOver("bins", 2 * kMebibyte, 32 * kMebibyte,
            [](Counted* below, std::size_t granule, std::size_t most) {
              rmm::mr::binning_memory_resource<Counted> bins(below, 21, 23);
              Churn(bins, granule, most);
              Compare("bins, in use", below->get_bytes_counter().value,
                      DriverBytes());
            });
}

// The pool of the driver: used bytes as RMM counts, and reserved bytes.
void CheckAsync() {
  rmm::mr::cuda_async_memory_resource async(32 * kMebibyte);
  Counted counted(&async);
  rmm::cuda_stream stream;
  void* const ptr = counted.allocate_async(40 * kMebibyte, stream);
  const auto attribute = [&](cudaMemPoolAttr which) {
    std::uint64_t value = 0;
    cudaMemPoolGetAttribute(async.pool_handle(), which, &value);
    return static_cast<std::int64_t>(value);
  };
  Compare("async, used", counted.get_bytes_counter().value,
          attribute(cudaMemPoolAttrUsedMemCurrent));
  Compare("async, reserved", attribute(cudaMemPoolAttrReservedMemCurrent),
          DriverBytes());
  counted.deallocate_async(ptr, 40 * kMebibyte, stream);
  stream.synchronize();
  Compare("async, all freed", 0, attribute(cudaMemPoolAttrUsedMemCurrent));
}

// A buffer has the bytes of the host, and returns them.
void CheckBuffer() {
  rmm::mr::cuda_memory_resource cuda;
  std::vector<std::uint8_t> host(3 * kMebibyte);
  for (std::size_t i = 0; i < host.size(); ++i) {
    host[i] = static_cast<std::uint8_t>(i * 7);
  }
  rmm::cuda_stream stream;
  const rmm::device_buffer buffer(host.data(), host.size(), stream, &cuda);
  const rmm::device_buffer copy(buffer, stream, &cuda);
  std::vector<std::uint8_t> back(host.size());
  cudaMemcpyAsync(back.data(), copy.data(), back.size(), cudaMemcpyDeviceToHost,
                  stream.value());
  stream.synchronize();
  Compare("buffer, differences", 0,
          std::memcmp(host.data(), back.data(), host.size()));
  Compare("buffer, bytes", 8 * static_cast<std::int64_t>(kMebibyte),
          DriverBytes());
}

// A request above the device raises RMM's error, and changes nothing.
void CheckRefusal() {
  rmm::mr::cuda_memory_resource cuda;
  rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool(
      &cuda, 64 * kMebibyte);
  int refused = 0;
  for (Resource* const resource :
       {static_cast<Resource*>(&cuda), static_cast<Resource*>(&pool)}) {
    try {
      resource->deallocate(resource->allocate(std::size_t{1} << 40),
                           std::size_t{1} << 40);
    } catch (const rmm::out_of_memory&) {
      ++refused;
    }
  }
  Compare("refused", 2, refused);
  Compare("refused, bytes", static_cast<std::int64_t>(pool.pool_size()),
          DriverBytes());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: rmm_client LOG SMALL_LOG TAKEN\n");
    return 2;
  }
  CheckCuda();
  CheckManaged();
  CheckPool("pool", argv[1], 0);
  CheckPool("small", argv[2], std::strtoull(argv[3], nullptr, 10));
  CheckArena();
  CheckBins();
  CheckAsync();
  CheckBuffer();
  CheckRefusal();
  return g_differences == 0 ? 0 : 1;
}
