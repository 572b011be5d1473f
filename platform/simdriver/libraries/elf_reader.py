"""Reads the names that a shared library of x86-64 Linux takes from other libraries."""

import dataclasses
import mmap
import struct

SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
DYNAMIC = struct.Struct("<qQ")
NEEDED_FILE = struct.Struct("<HHIII")
NEEDED_VERSION = struct.Struct("<IHHII")

DYNSYM, DYNAMIC_SECTION, VERNEED, VERSYM = 11, 6, 0x6FFFFFFE, 0x6FFFFFFF
DT_NEEDED, DT_SONAME = 1, 14
STT_OBJECT = 1


@dataclasses.dataclass(frozen=True)
class Import:
    """A name that a library takes from another one."""

    name: str
    soname: str  # of the library that must have it; empty if the name has no version
    version: str
    is_object: bool


@dataclasses.dataclass
class Library:
    """The part of a library that the loader reads."""

    soname: str
    needed: list
    imports: list
    exports: list


class NotElf(Exception):
    """The file is no complete shared library of x86-64 with section headers."""


def _text(data, offset):
    end = data.find(b"\0", offset)
    if end < 0:
        raise NotElf
    return data[offset:end].decode()


def _sections(data):
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != 62:
        raise NotElf
    offset = struct.unpack_from("<Q", data, 40)[0]
    count = struct.unpack_from("<H", data, 60)[0]
    if offset == 0 or count == 0:
        raise NotElf
    return [SECTION.unpack_from(data, offset + i * SECTION.size) for i in range(count)]


def _versions(data, sections):
    """(file, version) by the number that a symbol has for it."""
    found = {}
    for section in sections:
        if section[1] != VERNEED:
            continue
        strings = sections[section[6]][4]
        at = section[4]
        while True:
            _, count, file, first, step = NEEDED_FILE.unpack_from(data, at)
            version_at = at + first
            for _ in range(count):
                _, _, number, name, version_step = NEEDED_VERSION.unpack_from(data, version_at)
                found[number & 0x7FFF] = (_text(data, strings + file), _text(data, strings + name))
                version_at += version_step
            if step == 0:
                break
            at += step
    return found


def _read(data):
    sections = _sections(data)
    versions = _versions(data, sections)
    numbers_at = next((s[4] for s in sections if s[1] == VERSYM), None)
    library = Library("", [], [], [])
    for section in sections:
        strings = sections[section[6]][4] if section[6] < len(sections) else 0
        if section[1] == DYNAMIC_SECTION:
            for at in range(section[4], section[4] + section[5], DYNAMIC.size):
                tag, value = DYNAMIC.unpack_from(data, at)
                if tag == DT_NEEDED:
                    library.needed.append(_text(data, strings + value))
                elif tag == DT_SONAME:
                    library.soname = _text(data, strings + value)
        elif section[1] == DYNSYM:
            for index in range(1, section[5] // SYMBOL.size):
                name, info, _, where, _, _ = SYMBOL.unpack_from(
                    data, section[4] + index * SYMBOL.size)
                text = _text(data, strings + name)
                if where != 0:
                    library.exports.append(text)
                    continue
                number = 0
                if numbers_at is not None:
                    number = struct.unpack_from("<H", data, numbers_at + 2 * index)[0] & 0x7FFF
                soname, version = versions.get(number, ("", ""))
                library.imports.append(Import(text, soname, version, info & 15 == STT_OBJECT))
    return library


def library_of(data):
    """Returns the Library in the bytes of a file; raises NotElf if they are something else."""
    try:
        return _read(data)
    except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as error:
        raise NotElf from error


def read_library(path):
    """Returns the Library in the file; raises NotElf if it is something else."""
    with open(path, "rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:  # an empty file
            raise NotElf from error
        with data:
            return library_of(data)
