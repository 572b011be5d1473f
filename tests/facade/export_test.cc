// Memory of virtual_memory that is exported to other processes, devices and
// network cards.

#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/second_process.h"

namespace strata {
namespace {

constexpr char kMapped[] = "allocator_strategy=virtual_memory";
constexpr std::size_t kPage = Mebibytes(2);
constexpr int kFirstByte = 0x5a;
constexpr int kSecondByte = 0xa5;

PlatformOptions DevicesOf(int count, const char* data) {
  PlatformOptions options;
  options.sim_devices = count;
  options.sim_data = data;
  return options;
}

DevicePtr At(const void* data) { return reinterpret_cast<DevicePtr>(data); }

std::size_t OpenDescriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  std::size_t count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

class ExportTest : public FacadeFixture {
 protected:
  explicit ExportTest(int devices = 1, const char* data = "phantom")
      : FacadeFixture(DevicesOf(devices, data)) {}

  AllocationPtr Alloc(std::size_t bytes, std::uint32_t flags = 0) {
    Request request;
    request.bytes = bytes;
    request.flags = flags;
    return facade().Alloc(kPlace, request);
  }
  bool CanAlloc(std::size_t bytes) {
    Failure failure;
    return facade().TryAlloc(kPlace, Request{bytes}, failure) != nullptr;
  }
  std::size_t Reserved() { return facade().GetStats(kPlace).reserved_bytes; }
  void Fault(DeviceCall call, std::uint64_t nth,
             Status status = Status::kUnknown) {
    FaultRule rule;
    rule.call = call;
    rule.nth = nth;
    rule.status = status;
    device().AddFault(rule);
  }
  void Fill(const void* data, std::size_t bytes, int byte) {
    const Stream stream = device().LegacyStream();
    ASSERT_EQ(device().MemsetAsync(At(data), byte, bytes, stream),
              Status::kSuccess);
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  }
  // True if all bytes are `byte`.
  bool Holds(const void* data, std::size_t bytes, int byte) {
    std::vector<unsigned char> copy(bytes);
    EXPECT_EQ(device().MemcpyAsync(At(copy.data()), At(data), bytes,
                                   device().LegacyStream()),
              Status::kSuccess);
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
    return copy ==
           std::vector<unsigned char>(bytes, static_cast<unsigned char>(byte));
  }
};

class ExportedBytesTest : public ExportTest {
 protected:
  ExportedBytesTest() : ExportTest(1, "backed") {}
};

void SendPieces(PeerSocket& socket, const std::vector<SharedPiece>& pieces) {
  EXPECT_TRUE(socket.Send(pieces.size()));
  for (const SharedPiece& piece : pieces) {
    EXPECT_TRUE(socket.SendDescriptor(piece.fd));
    EXPECT_TRUE(socket.Send(piece.handle_bytes));
    EXPECT_TRUE(socket.Send(piece.offset));
    EXPECT_TRUE(socket.Send(piece.bytes));
  }
}

std::vector<SharedPiece> ReceivePieces(PeerSocket& socket) {
  std::uint64_t count = 0;
  EXPECT_TRUE(socket.Receive(&count));
  std::vector<SharedPiece> pieces(count);
  for (SharedPiece& piece : pieces) {
    piece.fd = socket.ReceiveDescriptor();
    for (std::size_t* number :
         {&piece.handle_bytes, &piece.offset, &piece.bytes}) {
      std::uint64_t word = 0;
      EXPECT_TRUE(socket.Receive(&word));
      *number = word;
    }
  }
  return pieces;
}

// The second process of TwoProcessesReadOneAnothersBytes.
TEST_F(ExportedBytesTest, DISABLED_Importer) {
  PeerSocket socket(PeerSocket::FromParent());
  Build(kMapped);
  const std::vector<SharedPiece> pieces = ReceivePieces(socket);
  {
    const ImportedMemory imported = facade().Import(kPlace, pieces);
    for (const SharedPiece& piece : pieces) close(piece.fd);
    EXPECT_EQ(Reserved(), 0U);
    EXPECT_TRUE(Holds(imported.data(), imported.size(), kFirstByte));
    Fill(imported.data(), imported.size(), kSecondByte);
    EXPECT_TRUE(socket.Send(imported.size()));
    std::uint64_t word = 0;
    EXPECT_TRUE(socket.Receive(&word));
  }
  EXPECT_TRUE(socket.Send(0));
}

TEST_F(ExportedBytesTest, TwoProcessesReadOneAnothersBytes) {
  Build(kMapped);
  SecondProcess importer("ExportedBytesTest.DISABLED_Importer");
  // It lies in several handles, and not at the start of the first one.
  const AllocationPtr before = Alloc(kPage + kPage / 2);
  AllocationPtr block = Alloc(kPage + kPage / 2);
  Fill(before->data(), before->size(), 0x11);
  Fill(block->data(), block->size(), kFirstByte);
  const std::size_t bytes = block->size();
  {
    ExportedMemory exported = facade().Export(*block);
    EXPECT_GT(exported.pieces().size(), 1U);
    EXPECT_NE(exported.pieces()[0].offset, 0U);
    SendPieces(importer.socket(), exported.pieces());
    std::uint64_t word = 0;
    ASSERT_TRUE(importer.socket().Receive(&word));
    EXPECT_EQ(word, bytes);
    EXPECT_TRUE(Holds(block->data(), bytes, kSecondByte));
    EXPECT_TRUE(Holds(before->data(), before->size(), 0x11));
    EXPECT_TRUE(importer.socket().Send(0));
    EXPECT_TRUE(importer.socket().Receive(&word));
  }
  EXPECT_TRUE(importer.Join());
}

TEST_F(ExportTest, PiecesCoverTheAllocation) {
  Build(kMapped);
  const AllocationPtr before = Alloc(kPage / 2);
  const AllocationPtr block = Alloc(2 * kPage);
  const ExportedMemory exported = facade().Export(*block);
  std::size_t bytes = 0;
  for (const SharedPiece& piece : exported.pieces()) {
    EXPECT_LE(piece.offset + piece.bytes, piece.handle_bytes);
    EXPECT_GE(piece.fd, 0);
    bytes += piece.bytes;
  }
  EXPECT_EQ(bytes, block->size());
}

TEST_F(ExportTest, ExportedHandlesCountAsReservedUntilClosed) {
  Build(kMapped);
  AllocationPtr block = Alloc(4 * kPage);
  ExportedMemory exported = facade().Export(*block);
  block.reset();
  EXPECT_EQ(facade().Release(kPlace), 0U);
  EXPECT_EQ(Reserved(), 4 * kPage);
  exported.Close();
  EXPECT_EQ(facade().Release(kPlace), 4 * kPage);
  EXPECT_EQ(Reserved(), 0U);
}

TEST_F(ExportTest, TwoExportsOfAHandleHoldItTogether) {
  Build(kMapped);
  AllocationPtr block = Alloc(kPage);
  ExportedMemory first = facade().Export(*block);
  ExportedMemory second = facade().Export(*block);
  block.reset();
  first.Close();
  EXPECT_EQ(facade().Release(kPlace), 0U);
  second = ExportedMemory();
  EXPECT_EQ(facade().Release(kPlace), kPage);
}

TEST_F(ExportTest, ExportedHandleDoesNotMove) {
  Build(kMapped);
  std::vector<AllocationPtr> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(Alloc(4 * kPage));
  ExportedMemory exported = facade().Export(*blocks[0]);
  for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  // 8 of the 32 free MiB must stay reserved.
  EXPECT_FALSE(CanAlloc(16 * kPage));
  EXPECT_TRUE(CanAlloc(12 * kPage));
  exported.Close();
  EXPECT_TRUE(CanAlloc(16 * kPage));
}

TEST_F(ExportTest, FreedMemoryOfAnExportServesItsProcess) {
  Build(kMapped);
  AllocationPtr block = Alloc(4 * kPage);
  const void* const data = block->data();
  const ExportedMemory exported = facade().Export(*block);
  block.reset();
  block = Alloc(4 * kPage);
  EXPECT_EQ(block->data(), data);
}

TEST_F(ExportTest, ExportOutlivesStreamAndFacade) {
  Build(kMapped);
  const Stream stream = NewStream();
  AllocationPtr block = facade().Alloc(kPlace, 2 * kPage, stream);
  ExportedMemory exported = facade().Export(*block);
  block.reset();
  facade().StreamDestroyed(stream);
  EXPECT_EQ(facade().Release(kPlace), 0U);
  EXPECT_EQ(Reserved(), 2 * kPage);
  facade_.reset();
  EXPECT_EQ(device().Leaks().memory_block_bytes, 2 * kPage);
  exported.Close();
  EXPECT_EQ(device().Leaks().memory_block_bytes, 0U);
  EXPECT_EQ(platform_.use_count(), 1);
}

TEST_F(ExportTest, MemoryThatAnotherStreamLentCanBeExported) {
  Build(kMapped);
  const Stream lender = NewStream();
  const Stream borrower = NewStream();
  facade().Alloc(kPlace, 8 * kPage, lender).reset();
  AllocationPtr block = facade().Alloc(kPlace, 6 * kPage, borrower);
  EXPECT_EQ(Reserved(), 8 * kPage);
  ExportedMemory exported = facade().Export(*block);
  block.reset();
  facade().StreamDestroyed(borrower);
  facade().StreamDestroyed(lender);
  facade().Release(kPlace);
  EXPECT_GE(Reserved(), 6 * kPage);
  exported.Close();
  facade().Release(kPlace);
  EXPECT_EQ(Reserved(), 0U);
}

TEST_F(ExportTest, OnlyMemoryInHandlesIsExported) {
  Build("allocator_strategy=auto_growth");
  const AllocationPtr chunk = Alloc(kPage);
  EXPECT_THROW(facade().Export(*chunk), std::invalid_argument);
  const AllocationPtr nothing = Alloc(0);
  EXPECT_THROW(facade().Export(*nothing), std::invalid_argument);
  const AllocationPtr host = facade().Alloc(HostPlace(), 256);
  EXPECT_THROW(facade().Export(*host), std::invalid_argument);
}

TEST_F(ExportedBytesTest, FailedExportChangesNothing) {
  Build(kMapped);
  AllocationPtr block = Alloc(3 * kPage);
  const std::size_t pieces = facade().Export(*block).pieces().size();
  const std::size_t descriptors = OpenDescriptors();
  for (std::size_t i = 1; i <= pieces; ++i) {
    device().ClearFaults();
    Fault(DeviceCall::kExportMemory, i);
    EXPECT_THROW(facade().Export(*block), DeviceError);
  }
  device().ClearFaults();
  EXPECT_EQ(OpenDescriptors(), descriptors);
  block.reset();
  facade().Release(kPlace);
  EXPECT_EQ(Reserved(), 0U);
}

TEST_F(ExportTest, FailedImportChangesNothing) {
  Build(kMapped);
  const AllocationPtr block = Alloc(2 * kPage);
  const ExportedMemory exported = facade().Export(*block);
  const auto leaks = device().Leaks();
  int failures = 0;
  for (const DeviceCall call :
       {DeviceCall::kReserveRange, DeviceCall::kImportMemory,
        DeviceCall::kMapRange, DeviceCall::kReleaseMemory,
        DeviceCall::kSetAccess}) {
    for (std::uint64_t i = 1; i <= exported.pieces().size(); ++i) {
      Fault(call, i);
      try {
        facade().Import(kPlace, exported.pieces());
      } catch (const DeviceError&) {
        ++failures;
      }
      device().ClearFaults();
      EXPECT_EQ(device().Leaks(), leaks) << static_cast<int>(call) << ' ' << i;
    }
  }
  EXPECT_GE(failures, 6);
}

TEST_F(ExportTest, FailedImportNamesThePieceAndTheCall) {
  Build(kMapped);
  const AllocationPtr block = Alloc(kPage);
  const ExportedMemory exported = facade().Export(*block);
  SharedPiece whole = exported.pieces().front();
  whole.offset = 0;
  whole.bytes = whole.handle_bytes;
  std::vector<SharedPiece> pieces = {whole, whole, whole};
  const auto message = [&](DeviceCall call, std::uint64_t nth) {
    Fault(call, nth, Status::kNotPermitted);
    const std::string text =
        TextOf<DeviceError>([&] { facade().Import(kPlace, pieces); });
    device().ClearFaults();
    return text;
  };
  const std::string status = ": " + ToString(Status::kNotPermitted);
  EXPECT_EQ(message(DeviceCall::kImportMemory, 2),
            "Import: piece 2 of 3: import_memory" + status);
  EXPECT_EQ(message(DeviceCall::kMapRange, 3),
            "Import: piece 3 of 3: map_range" + status);
  EXPECT_EQ(message(DeviceCall::kReserveRange, 1),
            "Import: 3 pieces: reserve_range" + status);
  EXPECT_EQ(message(DeviceCall::kSetAccess, 1),
            "Import: 3 pieces: set_access" + status);
  pieces[1].bytes = 0;
  EXPECT_EQ(
      TextOf<std::invalid_argument>([&] { facade().Import(kPlace, pieces); }),
      "Import: piece 2 of 3 is not in the list of an export");
}

TEST_F(ExportTest, AllocationOfAnotherFacadeIsRefused) {
  for (const char* strategy : {kMapped, "allocator_strategy=auto_growth"}) {
    Build(strategy);
    AllocatorFacade other(Options::Parse(strategy), platform_);
    for (const Place place : {kPlace, HostPlace()}) {
      const AllocationPtr block = other.Alloc(place, kPage);
      EXPECT_EQ(other.GetAddressRange(*block).begin, other.GetBasePtr(*block));
      EXPECT_EQ(TextOf<std::invalid_argument>(
                    [&] { facade().GetAddressRange(*block); }),
                "GetAddressRange: the allocation belongs to another facade");
      EXPECT_EQ(TextOf<std::invalid_argument>([&] { facade().Export(*block); }),
                "Export: the allocation belongs to another facade");
    }
    const AllocationPtr nothing = other.Alloc(kPlace, 0);
    EXPECT_EQ(facade().GetAddressRange(*nothing).bytes, 0U);
  }
}

TEST_F(ExportTest, PiecesOfNoExportAreRefused) {
  Build(kMapped);
  const AllocationPtr block = Alloc(2 * kPage);
  const ExportedMemory exported = facade().Export(*block);
  std::vector<SharedPiece> pieces = exported.pieces();
  EXPECT_THROW(facade().Import(kPlace, {}), std::invalid_argument);
  EXPECT_THROW(facade().Import(HostPlace(), pieces), std::invalid_argument);
  pieces.back().bytes = pieces.back().handle_bytes + 1;
  EXPECT_THROW(facade().Import(kPlace, pieces), std::invalid_argument);
  pieces = exported.pieces();
  pieces.front().offset += 256;
  EXPECT_THROW(facade().Import(kPlace, pieces), std::invalid_argument);
  pieces = exported.pieces();
  pieces.front().handle_bytes += 1;
  EXPECT_THROW(facade().Import(kPlace, pieces), std::invalid_argument);
  // The sum of the sizes of the handles wraps around.
  SharedPiece whole = exported.pieces().front();
  whole.offset = 0;
  whole.bytes = whole.handle_bytes;
  SharedPiece huge = whole;
  huge.handle_bytes = huge.bytes = std::size_t{0} - kPage;
  EXPECT_THROW(facade().Import(kPlace, {whole, whole, huge}),
               std::invalid_argument);
}

TEST_F(ExportTest, DeviceThatExportsNoHandlesIsAskedOnce) {
  Build(kMapped);
  Fault(DeviceCall::kCreateMemory, 1, Status::kNotPermitted);
  const AllocationPtr block = Alloc(kPage);
  EXPECT_EQ(Count(DeviceCall::kCreateMemory), 2U);
  EXPECT_THROW(facade().Export(*block), std::invalid_argument);
  const AllocationPtr other = Alloc(kPage);
  EXPECT_EQ(Count(DeviceCall::kCreateMemory), 3U);
}

// If the attribute is set, one of two properties must be dropped.
TEST_F(ExportTest, MemoryIsForNetworkCardsWhereTheDeviceSaysSo) {
  for (const bool has_rdma : {false, true}) {
    PlatformOptions options = DevicesOf(1, "phantom");
    options.sim_memory_bytes = kMemoryBytes;
    options.sim_rdma = has_rdma;
    auto platform = std::make_shared<SimPlatform>(options);
    AllocatorFacade facade(Options::Parse(kMapped), platform);
    FaultRule rule;
    rule.call = DeviceCall::kCreateMemory;
    rule.nth = 2;
    rule.status = Status::kNotSupported;
    platform->sim_device(0).AddFault(rule);
    rule.nth = 1;
    platform->sim_device(0).AddFault(rule);
    Failure failure;
    Request request{kPage};
    request.flags = kNoRetry;
    const AllocationPtr block = facade.TryAlloc(kPlace, request, failure);
    EXPECT_EQ(block != nullptr, has_rdma);
  }
}

TEST_F(ExportTest, OneHandleHoldsOneAllocation) {
  Build(kMapped);
  const AllocationPtr before = Alloc(kPage / 2);
  AllocationPtr block = Alloc(3 * kPage - 1000, kOneHandle);
  const AllocationPtr after = Alloc(kPage / 2);
  const AddressSpan span = facade().GetAddressRange(*block);
  EXPECT_EQ(span.begin, block->data());
  EXPECT_EQ(span.bytes, 3 * kPage);
  EXPECT_EQ(block->size(), 3 * kPage);
  EXPECT_EQ(At(block->data()) % kPage, 0U);
  const ExportedMemory exported = facade().Export(*block);
  ASSERT_EQ(exported.pieces().size(), 1U);
  EXPECT_EQ(exported.pieces()[0].offset, 0U);
  EXPECT_EQ(exported.pieces()[0].bytes, exported.pieces()[0].handle_bytes);
  for (const AllocationPtr* other : {&before, &after}) {
    EXPECT_NE(facade().GetAddressRange(**other).begin, span.begin);
  }
}

TEST_F(ExportTest, FreeHandleOfTheSizeServesAgain) {
  Build(kMapped);
  AllocationPtr block = Alloc(3 * kPage, kOneHandle);
  const void* const data = block->data();
  block.reset();
  const std::uint64_t calls = CountAll();
  block = Alloc(3 * kPage - 5, kOneHandle);
  EXPECT_EQ(block->data(), data);
  EXPECT_EQ(CountAll(), calls);
  block.reset();
  // It serves other requests too.
  block = Alloc(2 * kPage);
  EXPECT_EQ(CountAll(), calls);
}

TEST_F(ExportTest, LargerFreeHandleServesNoOneHandle) {
  Build(kMapped);
  Alloc(3 * kPage, kOneHandle).reset();
  const AllocationPtr block = Alloc(2 * kPage, kOneHandle);
  EXPECT_EQ(facade().GetAddressRange(*block).begin, block->data());
  EXPECT_EQ(facade().GetAddressRange(*block).bytes, 2 * kPage);
}

TEST_F(ExportTest, ExportedHandleServesNoOneElseAlone) {
  Build(kMapped);
  AllocationPtr block = Alloc(kPage, kOneHandle);
  const void* const data = block->data();
  const ExportedMemory exported = facade().Export(*block);
  block.reset();
  block = Alloc(kPage, kOneHandle);
  EXPECT_NE(block->data(), data);
}

TEST_F(ExportTest, OneHandleObeysLimitAndDevice) {
  Build(std::string(kMapped) + ",gpu_memory_limit_mb=16");
  AllocationPtr idle = Alloc(4 * kPage);
  idle.reset();
  // It releases the idle handles first.
  const AllocationPtr block = Alloc(6 * kPage, kOneHandle);
  EXPECT_LE(Reserved(), 8 * kPage);
  EXPECT_THROW(Alloc(4 * kPage, kOneHandle), OutOfMemory);
  EXPECT_LE(Reserved(), 8 * kPage);
}

TEST_F(ExportTest, FailedHandleChangesNothing) {
  Build(kMapped);
  const AllocationPtr kept = Alloc(kPage);
  facade().Release(kPlace);
  const std::size_t reserved = Reserved();
  const auto leaks = device().Leaks();
  for (const DeviceCall call :
       {DeviceCall::kCreateMemory, DeviceCall::kMapRange,
        DeviceCall::kSetAccess}) {
    Fault(call, 1);
    EXPECT_THROW(Alloc(2 * kPage, kOneHandle), DeviceError);
    device().ClearFaults();
    EXPECT_EQ(Reserved(), reserved);
    EXPECT_EQ(device().Leaks(), leaks);
  }
}

TEST_F(ExportTest, StrategyWithoutHandlesRefusesOneHandle) {
  for (const char* const strategy : {"auto_growth", "bfc", "naive_best_fit",
                                     "direct", "pool", "cuda_malloc_async"}) {
    Build(std::string("allocator_strategy=") + strategy);
    EXPECT_THROW(Alloc(kPage, kOneHandle), std::invalid_argument) << strategy;
  }
}

TEST_F(ExportTest, RangeOfAnAllocationIsMapped) {
  Build(kMapped);
  const AllocationPtr before = Alloc(kPage / 2);
  const AllocationPtr block = Alloc(2 * kPage);
  const AddressSpan span = facade().GetAddressRange(*block);
  EXPECT_LE(span.begin, block->data());
  EXPECT_GE(span.begin + span.bytes,
            static_cast<std::byte*>(block->data()) + block->size());
  Access access = Access::kNone;
  for (std::size_t offset = 0; offset < span.bytes; offset += kPage) {
    EXPECT_EQ(device().GetAccess(At(span.begin + offset), {}, &access),
              Status::kSuccess);
  }
}

TEST_F(ExportTest, RangeInAChunkIsTheChunk) {
  Build("allocator_strategy=auto_growth");
  const AllocationPtr block = Alloc(kPage / 4);
  const AddressSpan span = facade().GetAddressRange(*block);
  EXPECT_EQ(span.begin, facade().GetBasePtr(*block));
  EXPECT_EQ(span.bytes, Reserved());
}

TEST_F(ExportTest, LegacyMemoryIsAChunkOfTheSameBudget) {
  Build(std::string(kMapped) + ",gpu_memory_limit_mb=12");
  AllocationPtr mapped = Alloc(3 * kPage);
  AllocationPtr block = Alloc(2 * kPage, kLegacyIpc);
  EXPECT_EQ(Count(DeviceCall::kMemAlloc), 1U);
  const AddressSpan chunk = facade().GetAddressRange(*block);
  EXPECT_EQ(Reserved(), 3 * kPage + chunk.bytes);
  EXPECT_EQ(chunk.begin, facade().GetBasePtr(*block));
  EXPECT_THROW(facade().Export(*block), std::invalid_argument);
  EXPECT_THROW(Alloc(4 * kPage, kLegacyIpc), OutOfMemory);
  // Free mapped memory makes room.
  mapped.reset();
  const AllocationPtr other = Alloc(4 * kPage, kLegacyIpc);
  EXPECT_EQ(Reserved(), 6 * kPage);
}

TEST_F(ExportTest, FreeChunksServeLegacyRequests) {
  Build(kMapped);
  Alloc(4 * kPage).reset();
  AllocationPtr block = Alloc(2 * kPage, kLegacyIpc);
  EXPECT_EQ(Count(DeviceCall::kMemAlloc), 1U);
  const void* const base = facade().GetBasePtr(*block);
  block.reset();
  block = Alloc(2 * kPage, kLegacyIpc);
  EXPECT_EQ(facade().GetBasePtr(*block), base);
  EXPECT_EQ(Count(DeviceCall::kMemAlloc), 1U);
}

TEST_F(ExportTest, FailedLegacyRequestChangesNothing) {
  Build(kMapped);
  Fault(DeviceCall::kMemAlloc, 1);
  EXPECT_THROW(Alloc(kPage, kLegacyIpc), DeviceError);
  EXPECT_EQ(Reserved(), 0U);
  EXPECT_THROW(Alloc(kPage, kLegacyIpc | kOneHandle), std::invalid_argument);
}

TEST_F(ExportTest, DriverPoolsRefuseLegacyRequests) {
  Build("allocator_strategy=cuda_malloc_async");
  EXPECT_THROW(Alloc(kPage, kLegacyIpc), std::invalid_argument);
}

TEST_F(ExportTest, VisitorsHearOfMappingsBeforeTheyGo) {
  Build(kMapped);
  struct Visit {
    void* data;
    std::size_t bytes;
    int change;
  };
  std::vector<Visit> visits;
  bool is_inside = false;
  facade().AddVisitor(
      kPlace, [&](Place, void* data, std::size_t bytes, int change) {
        visits.push_back({data, bytes, change});
        // Mapped and accessible at both times.
        Access access = Access::kNone;
        EXPECT_EQ(device().GetAccess(At(data), {}, &access), Status::kSuccess);
        EXPECT_EQ(access, Access::kReadWrite);
        // No lock is held: the chain answers queries and serves a request. If a
        // callback of a release grew the chain, Release would never end.
        facade().GetStats(kPlace);
        if (change < 0) return;
        if (std::exchange(is_inside, true)) return;
        facade().Alloc(kPlace, 256).reset();
        is_inside = false;
      });
  AllocationPtr block = Alloc(2 * kPage);
  ASSERT_GE(visits.size(), 2U);
  std::size_t mapped = 0;
  for (const Visit& visit : visits) {
    EXPECT_EQ(visit.change, 1);
    mapped += visit.bytes;
  }
  EXPECT_EQ(mapped, Reserved());
  block.reset();
  facade().Release(kPlace);
  for (const Visit& visit : visits) {
    if (visit.change < 0) mapped -= visit.bytes;
  }
  EXPECT_EQ(mapped, 0U);
}

class PeerExportTest : public ExportTest {
 protected:
  PeerExportTest() : ExportTest(2) {}

  Access AccessOfPeer(const AllocationPtr& block) {
    Access access = Access::kNone;
    EXPECT_EQ(device().GetAccess(At(block->data()),
                                 {Location::Kind::kDevice, 1}, &access),
              Status::kSuccess);
    return access;
  }
};

TEST_F(PeerExportTest, PeersReachWhatIsMappedNowAndLater) {
  Build(kMapped);
  const AllocationPtr first = Alloc(2 * kPage);
  AllocationPtr free = Alloc(2 * kPage);
  free.reset();
  const Stream stream = NewStream();
  const AllocationPtr other = facade().Alloc(kPlace, 4 * kPage, stream);
  EXPECT_EQ(AccessOfPeer(first), Access::kNone);
  facade().EnablePeerAccess(kPlace, 1);
  EXPECT_EQ(AccessOfPeer(first), Access::kReadWrite);
  EXPECT_EQ(AccessOfPeer(other), Access::kReadWrite);
  free = Alloc(2 * kPage);
  EXPECT_EQ(AccessOfPeer(free), Access::kReadWrite);
  const AllocationPtr later = Alloc(6 * kPage);
  EXPECT_EQ(AccessOfPeer(later), Access::kReadWrite);
  const std::uint64_t calls = Count(DeviceCall::kSetAccess);
  facade().EnablePeerAccess(kPlace, 1);
  EXPECT_EQ(Count(DeviceCall::kSetAccess), calls);
}

TEST_F(PeerExportTest, PeersReachMemoryThatMoved) {
  Build(kMapped);
  std::vector<AllocationPtr> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(Alloc(4 * kPage));
  facade().EnablePeerAccess(kPlace, 1);
  for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  const AllocationPtr moved = Alloc(16 * kPage);
  EXPECT_EQ(AccessOfPeer(moved), Access::kReadWrite);
}

TEST_F(PeerExportTest, FailedEnableLeavesLaterMappingsAlone) {
  Build(kMapped);
  const AllocationPtr first = Alloc(2 * kPage);
  Fault(DeviceCall::kSetAccess, 1);
  EXPECT_THROW(facade().EnablePeerAccess(kPlace, 1), DeviceError);
  device().ClearFaults();
  const AllocationPtr later = Alloc(2 * kPage);
  EXPECT_EQ(AccessOfPeer(later), Access::kNone);
  facade().EnablePeerAccess(kPlace, 1);
  EXPECT_EQ(AccessOfPeer(first), Access::kReadWrite);
  EXPECT_EQ(AccessOfPeer(later), Access::kReadWrite);
}

// Memory that a growth has mapped belongs to no block yet when visitors run.
TEST_F(PeerExportTest, PeerThatIsEnabledDuringAGrowthReachesItsMemory) {
  Build(kMapped);
  const auto is_enabled = std::make_shared<bool>(false);
  facade().AddVisitor(kPlace,
                      [this, is_enabled](Place, void*, std::size_t, int) {
                        if (!std::exchange(*is_enabled, true)) {
                          facade().EnablePeerAccess(kPlace, 1);
                        }
                      });
  const AllocationPtr block = Alloc(4 * kPage);
  EXPECT_TRUE(*is_enabled);
  EXPECT_EQ(AccessOfPeer(block), Access::kReadWrite);
}

TEST_F(PeerExportTest, PeerThatIsEnabledDuringARefusedReleaseReachesItsMemory) {
  Build(kMapped);
  const auto is_enabled = std::make_shared<bool>(false);
  facade().AddVisitor(
      kPlace, [this, is_enabled](Place, void*, std::size_t, int change) {
        if (change < 0 && !std::exchange(*is_enabled, true)) {
          facade().EnablePeerAccess(kPlace, 1);
        }
      });
  AllocationPtr block = Alloc(4 * kPage);
  block.reset();
  FaultRule rule;
  rule.call = DeviceCall::kUnmapRange;
  rule.every = 1;
  device().AddFault(rule);
  EXPECT_EQ(facade().Release(kPlace), 0U);
  device().ClearFaults();
  block = Alloc(4 * kPage);
  EXPECT_TRUE(*is_enabled);
  EXPECT_EQ(AccessOfPeer(block), Access::kReadWrite);
}

// Another thread ends the stream while the driver grants the access.
TEST_F(PeerExportTest, StreamThatEndsDuringAGrantReleasesItsMemory) {
  Build(kMapped);
  const Stream stream = NewStream();
  facade().Alloc(kPlace, 4 * kPage, stream).reset();
  std::atomic<bool> has_ended{false};
  std::future<void> end;
  device().SetCallObserver([&](const CallRecord& record) {
    if (record.call != DeviceCall::kSetAccess || end.valid()) return;
    end = std::async(std::launch::async, [&] {
      facade().StreamDestroyed(stream);
      has_ended = true;
    });
    // The end waits for the grant, or leaves the memory to a later release.
    for (int i = 0; i < 100000 && !has_ended; ++i) std::this_thread::yield();
  });
  facade().EnablePeerAccess(kPlace, 1);
  device().SetCallObserver(nullptr);
  end.get();
  EXPECT_EQ(Reserved(), 0U);
}

TEST_F(PeerExportTest, OnlyOtherDevicesArePeers) {
  Build(kMapped);
  for (const int peer : {-1, 0, 2}) {
    EXPECT_THROW(facade().EnablePeerAccess(kPlace, peer),
                 std::invalid_argument);
  }
  EXPECT_THROW(facade().EnablePeerAccess(HostPlace(), 1),
               std::invalid_argument);
}

}  // namespace
}  // namespace strata
