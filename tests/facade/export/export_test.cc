// Memory of virtual_memory that is exported to other processes and network
// cards.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/facade/graphs/capture_guard.h"
#include "strata/tests/facade/export/export_fixture.h"
#include "strata/tests/testing/second_process.h"

namespace strata {
namespace {

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

// Both make calls that end a capture unless the thread is relaxed.
TEST_F(ExportedBytesTest, CapturesContinue) {
  Build(kMapped);
  const AllocationPtr block = Alloc(2 * kPage);
  CaptureGuard guard(facade(), NewStream(), 0, CaptureMode::kGlobal);
  const ExportedMemory exported = facade().Export(*block);
  const ImportedMemory imported = facade().Import(kPlace, exported.pieces());
  const Graph graph = guard.End();
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
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

}  // namespace
}  // namespace strata
