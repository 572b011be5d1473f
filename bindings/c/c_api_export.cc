// The C ABI: memory for other processes and for network cards.

#include <memory>
#include <vector>

#include "strata/bindings/c/c_api_call.h"
#include "strata/strategy/virtual_memory/sharing/exported_memory.h"
#include "strata/strategy/virtual_memory/sharing/imported_memory.h"

struct strata_exported {
  strata::ExportedMemory memory;
  std::vector<strata_piece> pieces;
};

struct strata_imported {
  strata::ImportedMemory memory;
};

strata_status strata_address_range(strata_facade* facade, void* pointer,
                                   void** base, size_t* bytes) {
  return strata::FacadeCall("strata_address_range", facade, [&] {
    strata::Require(base, "base");
    strata::Require(bytes, "bytes");
    const strata::AddressSpan span =
        facade->facade.GetAddressRange(strata::FindPointer(*facade, pointer));
    *base = span.begin;
    *bytes = span.bytes;
  });
}

strata_status strata_export(strata_facade* facade, void* pointer,
                            strata_exported** exported,
                            const strata_piece** pieces, size_t* count) {
  return strata::FacadeCall("strata_export", facade, [&] {
    strata::Require(exported, "exported");
    strata::Require(pieces, "pieces");
    strata::Require(count, "count");
    auto made = std::make_unique<strata_exported>();
    made->memory = facade->facade.Export(strata::FindPointer(*facade, pointer));
    for (const strata::SharedPiece& piece : made->memory.pieces()) {
      made->pieces.push_back(
          {piece.fd, piece.handle_bytes, piece.offset, piece.bytes});
    }
    *pieces = made->pieces.data();
    *count = made->pieces.size();
    *exported = made.release();
  });
}

strata_status strata_exported_close(strata_exported* exported) {
  return strata::GuardCall("strata_exported_close", [&] {
    const std::unique_ptr<strata_exported> ended(exported);
  });
}

strata_status strata_import(strata_facade* facade, strata_place place,
                            const strata_piece* pieces, size_t count,
                            strata_imported** imported, void** pointer,
                            size_t* bytes) {
  return strata::FacadeCall("strata_import", facade, [&] {
    strata::Require(pieces, "pieces");
    strata::Require(imported, "imported");
    strata::Require(pointer, "pointer");
    strata::Require(bytes, "bytes");
    std::vector<strata::SharedPiece> list;
    for (size_t i = 0; i < count; ++i) {
      list.push_back({pieces[i].fd, pieces[i].handle_bytes, pieces[i].offset,
                      pieces[i].bytes});
    }
    auto made = std::make_unique<strata_imported>();
    made->memory = facade->facade.Import(strata::PlaceOf(place), list);
    *pointer = made->memory.data();
    *bytes = made->memory.size();
    *imported = made.release();
  });
}

strata_status strata_imported_close(strata_imported* imported) {
  return strata::GuardCall("strata_imported_close", [&] {
    const std::unique_ptr<strata_imported> ended(imported);
  });
}
