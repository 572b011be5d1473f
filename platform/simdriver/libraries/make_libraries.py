#!/usr/bin/env python3
"""Writes stand-ins for the libraries of CUDA that programs are linked to.

usage: make_libraries.py --out FOLDER [--helpers FOLDER] [--option NAME=NUMBER]... [FILE]...

FILE is a shared library of the program, or a folder of them. For every table in tables/, the
names that these libraries import from the library of the table become functions that report
success; function_table.py describes the lines of a table. Nothing is compiled or linked.
"""

import argparse
import collections
import os
import pathlib
import sys

from elf_reader import NotElf, read_library
from elf_writer import Export, library_bytes
from function_table import WrongTable, read_table

TABLES = pathlib.Path(__file__).resolve().parent / "tables"
KERNEL_HELPER = "libstrata_sim_kernel.so"  # has KERNEL_FUNCTION of elf_writer
OPTIONS = {"cudnn_workspace": 0}  # name: value, if the command line has none


def _files(paths):
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*.so*") if p.is_file())
        else:
            yield path


def _libraries(paths):
    for path in _files(paths):
        try:
            yield read_library(path)
        except NotElf:
            continue


class Wanted:
    """The names that libraries import, by the library that should have them."""

    def __init__(self, libraries):
        self.by_soname = collections.defaultdict(dict)  # soname: name: Import
        self.unversioned = {}
        self.sonames = set()
        for library in libraries:
            self.sonames.update(library.needed)
            for one in library.imports:
                if one.soname:
                    self.sonames.add(one.soname)
                    self.by_soname[one.soname][one.name] = one
                else:
                    self.unversioned[one.name] = one

    def names_of(self, soname, prefixes):
        """{name: Import} for one library."""
        names = {name: one for name, one in self.unversioned.items()
                 if any(name.startswith(prefix) for prefix in prefixes)}
        names.update(self.by_soname[soname])
        return names


def _sonames_of(table, wanted):
    found = {s for s in wanted.sonames if s == f"{table.stem}.so" or s.startswith(f"{table.stem}.so.")}
    return sorted(found | set(table.sonames))


def make_library(table, soname, wanted, helpers):
    """Returns the bytes of one stand-in."""
    names = wanted.names_of(soname, table.prefixes)
    elsewhere = set()
    needed = []
    if table.helper:
        helper = helpers / table.helper
        elsewhere = set(read_library(helper).exports)
        needed.append(str(helper))
    versions = {one.version for one in names.values()}
    version = versions.pop() if len(versions) == 1 else ""
    exports = []
    for name in sorted(set(names) | set(table.own_names())):
        if name in elsewhere:
            continue
        one = names.get(name)
        if one is not None and one.is_object:
            exports.append(Export(name, one.version, None))
        else:
            exports.append(Export(name, one.version if one else version, table.body_of(name)))
    if any(one.body is not None and one.body.is_kernel for one in exports):
        needed.append(str(helpers / KERNEL_HELPER))
    return library_bytes(soname, exports, needed)


def make_libraries(paths, out, helpers, options):
    """Writes the stand-ins into `out`; returns {soname: number of bytes}."""
    wanted = Wanted(_libraries(paths))
    out.mkdir(parents=True, exist_ok=True)
    written = {}
    for path in sorted(TABLES.glob("*.txt")):
        table = read_table(path, options)
        for soname in _sonames_of(table, wanted):
            data = make_library(table, soname, wanted, helpers)
            (out / soname).write_bytes(data)
            written[soname] = len(data)
            plain = out / f"{table.stem}.so"
            if not plain.exists():
                plain.symlink_to(soname)
    return written


def _option(text):
    name, equals, value = text.partition("=")
    if not equals or name not in OPTIONS:
        raise argparse.ArgumentTypeError(f"'{text}' is no option")
    return name, int(value, 0)


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--helpers", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--option", type=_option, action="append", default=[])
    parser.add_argument("files", type=pathlib.Path, nargs="*")
    arguments = parser.parse_args()
    try:
        written = make_libraries(arguments.files, arguments.out,
                                 pathlib.Path(os.path.abspath(arguments.helpers)),
                                 OPTIONS | dict(arguments.option))
    except (OSError, WrongTable) as error:
        print(f"make_libraries.py: {error}", file=sys.stderr)
        return 1
    for soname, size in written.items():
        print(f"{size:8} {soname}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
