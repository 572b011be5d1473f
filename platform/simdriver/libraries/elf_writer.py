"""Writes a shared library of x86-64 Linux, without a compiler or a linker."""

import dataclasses
import struct

from machine_code import function_code

PAGE = 0x1000
ZEROS_BYTES = 4096  # the target of a handle, and an object that a library imports
HEADERS = 5
FUNCTION, OBJECT = 2, 1
GLOBAL, WEAK = 16, 32
# The function that a kernel of a library calls, if a library that is loaded has it.
KERNEL_FUNCTION = "strataSimNoteKernel"
FILL_SLOT = 6  # R_X86_64_GLOB_DAT


@dataclasses.dataclass
class Export:
    """A name of the library."""

    name: str
    version: str  # empty for none
    body: object  # machine_code.Body, or None for an object


class _Strings:
    def __init__(self):
        self.data = bytearray(b"\0")
        self._known = {"": 0}

    def add(self, text):
        if text not in self._known:
            self._known[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self._known[text]


def _hash(name):
    """The hash of System V, of names of symbols and of versions."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def _hash_table(names):
    """The section .hash for symbols 1 to len(names)."""
    buckets = max(1, len(names))
    first = [0] * buckets
    chain = [0] * (len(names) + 1)
    for index, name in enumerate(names, 1):
        bucket = _hash(name) % buckets
        chain[index], first[bucket] = first[bucket], index
    return struct.pack(f"<{2 + buckets + len(chain)}I", buckets, len(chain), *first, *chain)


def _version_table(soname, versions, strings):
    """The section .gnu.version_d: the base, then the versions."""
    data = b""
    names = [soname, *versions]
    for index, name in enumerate(names, 1):
        step = 0 if index == len(names) else 28
        data += struct.pack("<HHHHIII", 1, int(index == 1), index, 1, _hash(name), 20, step)
        data += struct.pack("<II", strings.add(name), 0)
    return data


def _align(data, to):
    return data + b"\0" * (-len(data) % to)


def _code(exports, code_at, texts_at, zeros_at, slot_at):
    """Returns the code, and the offset of each function in it."""
    texts = b""
    for export in exports:
        if export.body is not None and export.body.text is not None:
            texts += export.body.text.encode() + b"\0"
    code = b""
    offsets = []
    text_at = texts_at
    for export in exports:
        offsets.append(len(code))
        if export.body is None:
            continue
        code = _align(
            code + function_code(export.body, code_at + len(code), zeros_at, text_at, slot_at), 16)
        if export.body.text is not None:
            text_at += len(export.body.text.encode()) + 1
    return code, texts, offsets


def library_bytes(soname, exports, needed=()):
    """Returns the file: `exports` in order, `needed` as names or paths."""
    exports = sorted(exports, key=lambda export: export.name)
    imports = [KERNEL_FUNCTION] if any(one.body and one.body.is_kernel for one in exports) else []
    names = [*(export.name for export in exports), *imports]
    versions = sorted({export.version for export in exports} - {""})
    strings = _Strings()
    dynamic = [(14, strings.add(soname))] + [(1, strings.add(name)) for name in needed]
    for name in names:
        strings.add(name)
    version_table = _version_table(soname, versions, strings) if versions else b""
    numbers = {"": 1, **{name: number for number, name in enumerate(versions, 2)}}
    version_numbers = struct.pack(f"<{len(names) + 1}H", 0,
                                  *(numbers[export.version] for export in exports),
                                  *(numbers[""] for _ in imports))

    # The first page group, which the loader reads.
    at = 64 + 56 * HEADERS
    symbols_at = at
    strings_at = symbols_at + 24 * (len(names) + 1)
    hash_at = -(-(strings_at + len(strings.data)) // 8) * 8
    hash_table = _align(_hash_table(names), 8)
    numbers_at = hash_at + len(hash_table)
    versions_at = numbers_at + len(_align(version_numbers, 8))
    relocations_at = -(-(versions_at + len(version_table)) // 8) * 8
    texts_at = relocations_at + 24 * len(imports)
    # The code has the same length wherever the texts and the zeros are.
    code, texts, offsets = _code(exports, 0, 0, 0, 0)
    code_at = -(-(texts_at + len(texts)) // PAGE) * PAGE
    data_at = -(-(code_at + len(code)) // PAGE) * PAGE

    dynamic += [(4, hash_at), (5, strings_at), (10, len(strings.data)), (6, symbols_at), (11, 24)]
    if versions:
        dynamic += [(0x6FFFFFF0, numbers_at), (0x6FFFFFFC, versions_at),
                    (0x6FFFFFFD, len(versions) + 1)]
    if imports:
        dynamic += [(7, relocations_at), (8, 24 * len(imports)), (9, 24)]
    dynamic.append((0, 0))
    dynamic_table = b"".join(struct.pack("<qQ", *entry) for entry in dynamic)
    zeros_at = -(-(data_at + len(dynamic_table)) // 64) * 64
    slot_at = zeros_at + ZEROS_BYTES
    data_end = slot_at + 8 * len(imports)
    code, texts, offsets = _code(exports, code_at, texts_at, zeros_at, slot_at)
    relocations = b"".join(
        struct.pack("<QQq", slot_at + 8 * index, len(exports) + 1 + index << 32 | FILL_SLOT, 0)
        for index in range(len(imports)))

    symbols = bytes(24)
    for export, offset in zip(exports, offsets):
        kind, section, where, size = FUNCTION, 6, code_at + offset, 0
        if export.body is None:
            kind, section, where, size = OBJECT, 8, zeros_at, ZEROS_BYTES
        symbols += struct.pack("<IBBHQQ", strings.add(export.name), GLOBAL | kind, 0, section,
                               where, size)
    for name in imports:
        symbols += struct.pack("<IBBHQQ", strings.add(name), WEAK | FUNCTION, 0, 0, 0, 0)

    image = bytearray(data_at)
    for where, part in ((symbols_at, symbols), (strings_at, strings.data), (hash_at, hash_table),
                        (numbers_at, version_numbers), (versions_at, version_table),
                        (relocations_at, relocations), (texts_at, texts), (code_at, code)):
        image[where:where + len(part)] = part
    image[data_at:] = dynamic_table
    dynamic_end = len(image)

    section_names = _Strings()
    sections = [(section_names.add(""), 0, 0, 0, 0, 0, 0, 0, 0, 0)]

    def section(name, kind, flags, where, size, link=0, info=0, alignment=8, entry=0):
        sections.append((section_names.add(name), kind, flags, where, where, size, link, info, alignment,
                         entry))

    section(".dynsym", 11, 2, symbols_at, len(symbols), 2, 1, 8, 24)
    section(".dynstr", 3, 2, strings_at, len(strings.data), alignment=1)
    section(".hash", 5, 2, hash_at, len(hash_table), 1, 0, 8, 4)
    section(".gnu.version", 0x6FFFFFFF if versions else 1, 2, numbers_at, len(version_numbers), 1, 0, 2, 2)
    section(".gnu.version_d", 0x6FFFFFFD if versions else 1, 2, versions_at, len(version_table), 2,
            len(versions) + 1 if versions else 0)
    section(".text", 1, 6, code_at, len(code), alignment=16)
    section(".dynamic", 6, 3, data_at, dynamic_end - data_at, 2, 0, 8, 16)
    section(".bss", 8, 3, zeros_at, data_end - zeros_at, alignment=64)
    name_at = len(image)
    section(".shstrtab", 3, 0, name_at, 0, alignment=1)
    names_size = len(section_names.data)
    sections[-1] = (*sections[-1][:5], names_size, *sections[-1][6:])
    image += section_names.data
    image += bytes(-len(image) % 8)
    table_at = len(image)
    for entry in sections:
        image += struct.pack("<IIQQQQIIQQ", *entry)

    image[:64] = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, table_at,
                             0, 64, 56, HEADERS, 64, len(sections), len(sections) - 1)
    headers = (
        (1, 4, 0, code_at, code_at, PAGE),
        (1, 5, code_at, len(code), len(code), PAGE),
        (1, 6, data_at, dynamic_end - data_at, data_end - data_at, PAGE),
        (2, 6, data_at, len(dynamic_table), len(dynamic_table), 8),
        (0x6474E551, 6, 0, 0, 0, 16),  # the stack holds no code
    )
    for index, (kind, flags, where, size, memory, alignment) in enumerate(headers):
        image[64 + 56 * index:120 + 56 * index] = struct.pack(
            "<IIQQQQQQ", kind, flags, where, where, where, size, memory, alignment)
    return bytes(image)
