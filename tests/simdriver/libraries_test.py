"""Tests of the stand-ins of CUDA's math libraries.

usage: libraries_test.py HELPERS HEADERS [unittest arguments]

HELPERS is the folder of the compiled libraries beside the stand-in driver; HEADERS has those of the
CUDA toolkit.
"""

import contextlib
import ctypes
import fnmatch
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "platform" / "simdriver" / "libraries"))

from elf_reader import NotElf, library_of, read_library  # noqa: E402
from elf_writer import Export, library_bytes  # noqa: E402
from function_table import WrongTable, read_table  # noqa: E402
from machine_code import Body  # noqa: E402
import make_libraries  # noqa: E402

HELPERS = pathlib.Path()
HEADERS = pathlib.Path()

# The headers of a table. Those that a toolkit lacks are not read.
HEADERS_OF = {
    "cublas": ("cublas_api.h",), "cublas_lt": ("cublasLt.h",),
    "cudnn": ("cudnn_graph.h", "cudnn_ops.h", "cudnn_cnn.h", "cudnn_adv.h"),
    "cufft": ("cufft.h", "cufftXt.h"), "cupti": ("cupti_activity.h", "cupti_callbacks.h"),
    "curand": ("curand.h",), "cusolver": ("cusolverDn.h",), "cusparse": ("cusparse.h",),
    "cusparse_lt": ("cusparseLt.h",), "nccl": ("nccl.h",), "nvjitlink": ("nvJitLink.h",),
    "nvrtc": ("nvrtc.h",),
}
# The stand-ins of libraries that programs look for by name.
FOUND_BY_NAME = {"libcublasLt.so.13", "libnvJitLink.so.13", "libnvidia-ml.so.1", "libnvrtc.so.13"}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|^[ \t]*#[^\n]*", re.DOTALL | re.MULTILINE)
PROTOTYPE = re.compile(r"\b(\w+)\s*\(([^()]*)\)\s*;")


def prototypes(names):
    """{function: types of the arguments} of headers."""
    found = {}
    for path in (HEADERS / name for name in names):
        text = COMMENT.sub("", path.read_text(errors="replace")) if path.exists() else ""
        for function, arguments in PROTOTYPE.findall(text):
            found.setdefault(function, [one.strip() for one in arguments.split(",")])
    return found


class UniqueId(ctypes.Structure):
    """As NCCL passes it: by value."""
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Files(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.written = 0

    def library(self, exports, needed=()):
        """Writes a library and loads it."""
        self.written += 1
        path = self.folder / f"libtest{self.written}.so"
        path.write_bytes(library_bytes("libtest.so.1", exports, needed))
        return ctypes.CDLL(str(path))

    def table(self, text):
        """Reads a table of this text."""
        path = self.folder / "table.txt"
        path.write_text(text)
        return read_table(path, {"size": 1 << 40})


class TableTest(Files):
    """The effect of the lines of a table on functions."""

    def function(self, actions):
        """The function of a table with one line."""
        body = self.table(f"library libtest\ncall f {actions}\n").body_of("f")
        return self.library([Export("f", "", body)]).f

    def test_returns_numbers_and_texts(self):
        self.assertEqual(self.function("success")(), 0)
        self.assertEqual(self.function("return 17")(), 17)
        self.assertEqual(self.function("return -3")(), -3)
        function = self.function("text two words")
        function.restype = ctypes.c_char_p
        self.assertEqual(function(), b"two words")

    def test_stores_through_every_argument(self):
        for bits, kind in ((32, ctypes.c_uint32), (64, ctypes.c_uint64)):
            for argument in range(1, 21):
                values = [(kind * 3)(1, 1, 1) for _ in range(20)]
                offset = bits // 8
                function = self.function(f"store{bits} {argument}+{offset} 123456, return 4")
                self.assertEqual(function(*map(ctypes.byref, values)), 4)
                for index, value in enumerate(values, 1):
                    self.assertEqual(list(value), [1, 123456 if index == argument else 1, 1])

    def test_stores_options(self):
        value = ctypes.c_uint64()
        self.assertEqual(self.function("store64 2 @size")(None, ctypes.byref(value)), 0)
        self.assertEqual(value.value, 1 << 40)

    def test_stores_nothing_through_null(self):
        self.assertEqual(self.function("store32 1 5, store64 9 5, handle 2")(*[None] * 9), 0)

    def test_handle_points_to_zeros(self):
        handle = ctypes.c_void_p()
        self.function("handle 3")(None, None, ctypes.byref(handle))
        self.assertEqual(ctypes.string_at(handle, 4096), bytes(4096))

    def test_kernel_without_a_driver_does_nothing(self):
        value = ctypes.c_uint32(1)
        self.assertEqual(self.function("kernel")(), 0)
        self.assertEqual(self.function("store32 1 7, kernel, return 4")(ctypes.byref(value)), 4)
        self.assertEqual(value.value, 7)

    def test_first_pattern_holds(self):
        table = self.table("library libtest\ncall f_size return 2\ncall f* return 1\n")
        results = [table.body_of(name).result for name in ("f_size", "f_other", "g")]
        self.assertEqual(results, [2, 1, 0])
        self.assertEqual(table.own_names(), ["f_size"])

    def test_names_the_line_that_is_wrong(self):
        for line in ("call f handle 0", "call f store32 0+4 1", "call f store64 -1 1",
                     "call f jump 3", "call f store32 3", "call f return @other", "call f kernel 1",
                     "cal f", "call f"):
            with self.assertRaisesRegex(WrongTable, "table.txt:2"):
                self.table(f"library libtest\n{line}\n")
        with self.assertRaisesRegex(WrongTable, "no line 'library'"):
            self.table("prefix f\n")


class HeaderTest(unittest.TestCase):
    """The tables beside the headers of the libraries."""

    def check(self, function, arguments, store):
        """A store goes through a pointer to a number or a handle of its size."""
        self.assertLessEqual(store.argument, len(arguments), function)
        kind = arguments[store.argument - 1]
        self.assertTrue("*" in kind or "[]" in kind, f"{function}: {kind}")
        if store.is_handle:
            return
        self.assertNotIn("const", kind, function)
        if store.offset == 0 and "Perf" not in kind:
            is_wide = any(word in kind for word in ("64", "size_t", "Stream_t"))
            self.assertEqual(is_wide, store.bits == 64, f"{function}: {kind}")

    def test_stores_go_through_pointers(self):
        seen = 0
        for path in sorted(make_libraries.TABLES.glob("*.txt")):
            table = read_table(path, make_libraries.OPTIONS)
            for function, arguments in prototypes(HEADERS_OF.get(path.stem, ())).items():
                body = next((body for pattern, body in table.calls
                             if fnmatch.fnmatchcase(function, pattern)), None)
                for store in body.stores if body else ():
                    seen += 1
                    self.check(function, arguments, store)
        if seen == 0:
            self.skipTest("the toolkit has no headers of these libraries")


class LibraryTest(Files):
    """The files that are written and read."""

    def test_finds_every_function_among_many(self):
        exports = [Export(f"name{i}", "", Body(result=i)) for i in range(3000)]
        library = self.library(exports)
        for i in range(3000):
            self.assertEqual(getattr(library, f"name{i}")(), i)
        with self.assertRaises(AttributeError):
            getattr(library, "name3000")

    def test_calls_a_function_of_another_library(self):
        (self.folder / "note.c").write_text("int notes; void strataSimNoteKernel() { ++notes; }\n")
        note = self.folder / "libnote.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", note, self.folder / "note.c"], check=True)
        notes = ctypes.c_int.in_dll(ctypes.CDLL(str(note)), "notes")
        for version in ("", "V1"):
            library = self.library([Export("f", version, Body(result=3, is_kernel=True)),
                                    Export("g", version, Body()), Export("data", "", None)],
                                   [str(note)])
            self.assertEqual((library.f(), library.g(), library.f()), (3, 0, 3))
        self.assertEqual(notes.value, 4)

    def test_reads_what_it_wrote(self):
        exports = [Export("b", "V1", Body()), Export("a", "V2", Body()), Export("c", "", None)]
        self.library(exports, ["libc.so.6"])
        library = read_library(self.folder / "libtest1.so")
        self.assertEqual((library.soname, library.needed), ("libtest.so.1", ["libc.so.6"]))
        self.assertEqual(sorted(library.exports), ["a", "b", "c"])

    def test_reads_imports_with_their_versions(self):
        library = read_library(HELPERS / "libstrata_sim_nccl.so")
        found = {one.name: one for one in library.imports}
        self.assertEqual(found["free"].soname, "libc.so.6")
        self.assertRegex(found["free"].version, "^GLIBC_")

    def test_serves_names_that_a_linked_library_imports(self):
        (self.folder / "use.c").write_text(
            "int cufftFirst(void); int cufftSecond(void);\n"
            "int use(void) { return cufftFirst() + cufftSecond(); }\n")
        (self.folder / "fake.c").write_text("int cufftFirst(void) { return 1; }\n"
                                            "int cufftSecond(void) { return 1; }\n")
        (self.folder / "map").write_text("libcufft.so.12 { global: cufft*; };\n")
        compile_it = ["cc", "-shared", "-fPIC", "-o"]
        fake = self.folder / "libcufft.so.12"
        subprocess.run([*compile_it, fake, self.folder / "fake.c", "-Wl,-soname,libcufft.so.12",
                        f"-Wl,--version-script={self.folder}/map"], check=True)
        subprocess.run([*compile_it, self.folder / "libuse.so", self.folder / "use.c", fake],
                       check=True)
        fake.unlink()
        written = make_libraries.make_libraries([self.folder / "libuse.so"], self.folder / "out",
                                                HELPERS, make_libraries.OPTIONS)
        self.assertEqual(set(written), {"libcufft.so.12", *FOUND_BY_NAME})
        ctypes.CDLL(str(self.folder / "out" / "libcufft.so.12"), ctypes.RTLD_GLOBAL)
        self.assertEqual(ctypes.CDLL(str(self.folder / "libuse.so")).use(), 0)

    def test_serves_functions_that_a_program_looks_up(self):
        written = make_libraries.make_libraries([], self.folder, HELPERS, make_libraries.OPTIONS)
        self.assertEqual(set(written), FOUND_BY_NAME)
        nvrtc = ctypes.CDLL(str(self.folder / "libnvrtc.so.13"))
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        self.assertEqual(nvrtc.nvrtcCreateProgram(ctypes.byref(program), b"", b"", 0, None, None), 0)
        self.assertEqual(nvrtc.nvrtcCompileProgram(program, 0, None), 0)
        self.assertEqual(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), 0)
        self.assertEqual(size.value, 8)

    def test_refuses_other_files(self):
        for data in (b"", b"text", b"\x7fELF\x02\x01" + bytes(100)):
            (self.folder / "file").write_bytes(data)
            with self.assertRaises(NotElf):
                read_library(self.folder / "file")

    def test_refuses_a_library_without_its_end(self):
        exports = [Export("b", "V1", Body()), Export("a", "V2", Body())]
        whole = library_bytes("libtest.so.1", exports, ["libc.so.6"])
        compiled = (HELPERS / "libstrata_sim_nccl.so").read_bytes()
        refused = 0
        for data, step in ((whole, 1), (compiled, 61)):
            for length in range(0, len(data), step):
                try:
                    library_of(data[:length])
                except NotElf:
                    refused += 1
        self.assertGreater(refused, len(whole) // 2)
        (self.folder / "file").write_bytes(whole[:-1])
        with self.assertRaises(NotElf):
            read_library(self.folder / "file")

    def test_refuses_a_library_with_wrong_offsets(self):
        whole = library_bytes("libtest.so.1", [Export("a", "V1", Body())], ["libc.so.6"])
        for at in range(0, len(whole) - 8, 4):
            for word in (b"\xff" * 8, b"\xf0" + bytes(7), bytes(6) + b"\x80\x00"):
                with contextlib.suppress(NotElf):
                    library_of(whole[:at] + word + whole[at + 8:])


class HelperTest(Files):
    """The compiled helpers behind the stand-ins, and the audit."""

    def setUp(self):
        super().setUp()
        make_libraries.make_libraries([], self.folder, HELPERS, make_libraries.OPTIONS)

    def run_audited(self, code, more_folders=""):
        """Runs Python code with the stand-ins in place of the libraries."""
        return subprocess.run(
            [sys.executable, "-c", f"import ctypes\n{code}"], capture_output=True, text=True,
            check=False, env=os.environ | {
                "STRATA_SIM_LIBRARIES": f"{self.folder}{more_folders}",
                "STRATA_SIM_DRIVER": "devices=3",
                "LD_AUDIT": str(HELPERS / "libstrata_sim_audit.so")})

    def test_serves_a_library_by_name_and_by_path(self):
        for name in ("libnvidia-ml.so.1", "/nowhere/libnvidia-ml.so.1"):
            done = self.run_audited(
                f"nvml = ctypes.CDLL('{name}'); count = ctypes.c_int()\n"
                "print(nvml.nvmlInit_v2(), nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)),"
                " count.value)")
            self.assertEqual((done.stdout, done.stderr), ("0 0 3\n", ""))

    def test_refuses_a_library_of_nvidia(self):
        path = self.folder.parent / f"{self.folder.name}_other"
        path.mkdir()
        self.addCleanup(path.rmdir)
        library = path / "libcublas.so.13"
        self.addCleanup(library.unlink)
        library.write_bytes(library_bytes("libcublas.so.13", [], []))
        done = self.run_audited(f"ctypes.CDLL('{library}'); print('loaded')")
        self.assertEqual((done.returncode, done.stdout), (127, ""), done.stderr)
        self.assertIn(str(library), done.stderr)
        self.assertIn("sim_run --libraries FOLDER\n", done.stderr)

    def test_refuses_a_list_that_is_too_long(self):
        for more, text in ((":/f" * 8, "more than 8 folders"), (":" + "f" * 4096, "4096 bytes")):
            done = self.run_audited("print('started')", more)
            self.assertEqual((done.returncode, done.stdout), (127, ""))
            self.assertRegex(done.stderr, f"^strata: STRATA_SIM_LIBRARIES [^\n]*{text}[^\n]*\n$")
        self.assertEqual(self.run_audited("print('started')", ":/f" * 7 + "::").stdout, "started\n")

    def test_serves_no_folder(self):
        done = self.run_audited("try: ctypes.CDLL('nowhere/')\nexcept OSError as e: print(e)")
        self.assertIn("nowhere/: ", done.stdout)

    def test_kernel_of_a_library_makes_a_number_unknown(self):
        driver = HELPERS.parent / "libcuda.so.1"
        done = self.run_audited(
            "cuda, pointer = ctypes.CDLL('libcuda.so.1'), ctypes.c_uint64()\n"
            "blas, value = ctypes.CDLL('libcublasLt.so.13'), ctypes.c_int(42)\n"
            "context = ctypes.c_void_p()\n"
            "blas.cublasLtMatmul()\n"
            "assert cuda.cuInit(0) == 0\n"
            "assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0\n"
            "assert cuda.cuCtxSetCurrent(context) == 0\n"
            "assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(512)) == 0\n"
            "four, at = ctypes.c_size_t(4), ctypes.byref(value)\n"
            "assert cuda.cuMemcpyHtoD_v2(pointer, at, four) == 0\n"
            "for call in (blas.cublasLtGetVersion, blas.cublasLtMatmul):\n"
            "  call()\n"
            "  assert cuda.cuMemcpyDtoH_v2(at, pointer, four) == 0\n"
            "  print(value.value)\n", f":{driver.parent}")
        self.assertEqual(done.stdout, "42\n0\n", done.stderr)

    def test_nvml_refuses_null(self):
        nvml = ctypes.CDLL(str(HELPERS / "libstrata_sim_nvml.so"))
        one, text = ctypes.c_void_p(1), ctypes.c_char_p(b"0:1:0")
        out = ctypes.byref(ctypes.c_void_p())
        calls = {
            "DeviceGetCount_v2": [(None,)], "DeviceGetHandleByIndex_v2": [(0, None)],
            "DeviceGetHandleByPciBusId_v2": [(text, None), (None, out)],
            "DeviceGetHandleByUUID": [(text, None), (None, out)],
            "DeviceGetUUID": [(one, None, 99)], "DeviceGetIndex": [(one, None)],
            "DeviceGetName": [(one, None, 99)],
            "DeviceGetCudaComputeCapability": [(one, None, out), (one, out, None)],
            "DeviceGetMemoryInfo": [(one, None)], "DeviceGetMemoryInfo_v2": [(one, None)],
            "SystemGetDriverVersion": [(None, 99)], "SystemGetCudaDriverVersion_v2": [(None,)]}
        for name, all_arguments in calls.items():
            for arguments in all_arguments:
                self.assertEqual(getattr(nvml, f"nvml{name}")(*arguments), 2, name)

    def test_nvml_knows_the_number_of_a_device(self):
        done = self.run_audited(
            "nvml = ctypes.CDLL('libnvidia-ml.so.1')\n"
            "device, index = ctypes.c_void_p(), ctypes.c_uint()\n"
            "for i in range(4):\n"
            "  print(nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(device)),"
            " nvml.nvmlDeviceGetIndex(device, ctypes.byref(index)), index.value)")
        self.assertEqual(done.stdout, "0 0 0\n0 0 1\n0 0 2\n6 0 2\n", done.stderr)

    def test_exports_the_names_of_its_library_alone(self):
        prefixes = {"nccl": "nccl", "cudnn": "cudnn", "nvml": "nvml", "audit": "la_",
                    "kernel": "strataSim"}
        for name, prefix in prefixes.items():
            library = read_library(HELPERS / f"libstrata_sim_{name}.so")
            exports = [one for one in library.exports if not one.startswith("_")]
            self.assertNotEqual(exports, [])
            self.assertEqual([one for one in exports if not one.startswith(prefix)], [])
            self.assertEqual([one for one in library.needed if "strata" in one or "cuda" in one], [])

    def test_rank_without_peers_knows_its_number(self):
        nccl = ctypes.CDLL(str(HELPERS / "libstrata_sim_nccl.so"))
        whole, part, number = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        self.assertEqual(nccl.ncclCommInitRank(ctypes.byref(whole), 8, UniqueId(), 5), 0)
        excluded = (ctypes.c_int * 2)(1, 7)
        self.assertEqual(
            nccl.ncclCommShrink(whole, excluded, 2, ctypes.byref(part), None, 0), 0)
        for comm, count, rank in ((whole, 8, 5), (part, 6, 4)):
            nccl.ncclCommCount(comm, ctypes.byref(number))
            self.assertEqual(number.value, count)
            nccl.ncclCommUserRank(comm, ctypes.byref(number))
            self.assertEqual(number.value, rank)
            nccl.ncclCommDestroy(comm)
        self.assertEqual(nccl.ncclCommInitRank(ctypes.byref(whole), 8, UniqueId(), 8), 4)

    def test_part_has_the_ranks_of_its_color(self):
        def color_of(ranks):
            """Of new_group: distributed_c10d.py, _process_group_color."""
            return abs(hash(tuple(ranks))) % 2**31

        nccl = ctypes.CDLL(str(HELPERS / "libstrata_sim_nccl.so"))

        def split(rank, color, key):
            """The number of ranks of the part, and the number of the rank in it."""
            whole, part = ctypes.c_void_p(), ctypes.c_void_p()
            count, number = ctypes.c_int(), ctypes.c_int()
            nccl.ncclCommInitRank(ctypes.byref(whole), 64, UniqueId(), rank)
            self.assertEqual(nccl.ncclCommSplit(whole, color, key, ctypes.byref(part), None), 0)
            nccl.ncclCommCount(part, ctypes.byref(count))
            nccl.ncclCommUserRank(part, ctypes.byref(number))
            nccl.ncclCommDestroy(part)
            nccl.ncclCommDestroy(whole)
            return count.value, number.value

        rows = [range(first, first + 8) for first in range(0, 64, 8)]
        columns = [range(first, 64, 8) for first in range(8)]
        for ranks in [*rows, *columns, range(64), [5], [1, 3, 5]]:
            for key, rank in enumerate(ranks):
                self.assertEqual(split(rank, color_of(ranks), key), (len(ranks), key), ranks)
        # A color of a program of its own.
        self.assertEqual(split(9, 1, 1), (64, 9))
        self.assertEqual(split(9, color_of([2, 3, 9]), 2), (64, 9))

    def test_part_has_the_announced_size(self):
        done = self.run_audited(
            "import os; os.environ['STRATA_SIM_NCCL_PARTS'] = '2,4'\n"
            "class UniqueId(ctypes.Structure): _fields_ = [('bytes', ctypes.c_char * 128)]\n"
            f"nccl = ctypes.CDLL('{HELPERS}/libstrata_sim_nccl.so')\n"
            "whole, part, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()\n"
            "nccl.ncclCommInitRank(ctypes.byref(whole), 8, UniqueId(), 0)\n"
            "for i in range(3):\n"
            "  nccl.ncclCommSplit(whole, 0, 0, ctypes.byref(part), None)\n"
            "  nccl.ncclCommCount(part, ctypes.byref(count))\n"
            "  print(count.value)\n")
        self.assertEqual(done.stdout, "2\n4\n8\n", done.stderr)

    def test_ranks_that_cannot_be_made_leave_none(self):
        done = self.run_audited(
            "import resource\n"
            f"nccl = ctypes.CDLL('{HELPERS}/libstrata_sim_nccl.so')\n"
            "comms = (ctypes.c_void_p * 4000000)()\n"
            "pages = int(open('/proc/self/statm').read().split()[0])\n"
            "most = pages * resource.getpagesize() + (64 << 20)\n"
            "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
            "print(nccl.ncclCommInitAll(comms, len(comms), None), any(comms))\n"
            "comm = ctypes.c_void_p()\n"
            "print(nccl.ncclCommInitAll(ctypes.byref(comm), 1, None), comm.value is None)\n")
        self.assertEqual(done.stdout, "2 False\n0 False\n", done.stderr)

    def test_rank_knows_the_current_device(self):
        driver = HELPERS.parent / "libcuda.so.1"
        if not driver.exists():
            self.skipTest(f"the build has no {driver}")
        done = self.run_audited(
            "class UniqueId(ctypes.Structure): _fields_ = [('bytes', ctypes.c_char * 128)]\n"
            f"nccl = ctypes.CDLL('{HELPERS}/libstrata_sim_nccl.so')\n"
            "comm, device, context = ctypes.c_void_p(), ctypes.c_int(9), ctypes.c_void_p()\n"
            "def rank():\n"
            "  nccl.ncclCommInitRank(ctypes.byref(comm), 1, UniqueId(), 0)\n"
            "  nccl.ncclCommCuDevice(comm, ctypes.byref(device))\n"
            "  nccl.ncclCommDestroy(comm)\n"
            "  print(device.value)\n"
            "rank()\n"  # without a driver
            f"cuda = ctypes.CDLL('{driver}')\n"
            "assert cuda.cuInit(0) == 0\n"
            "rank()\n"  # without a context
            "assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 2) == 0\n"
            "assert cuda.cuCtxSetCurrent(context) == 0\n"
            "rank()\n", f":{driver.parent}")
        self.assertEqual(done.stdout, "0\n0\n2\n", done.stderr)


def load_sim_run():
    """tools/sim_run as a module."""
    loader = importlib.machinery.SourceFileLoader("sim_run", str(ROOT / "tools" / "sim_run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class SimRunTest(Files):
    """The folders of stand-ins that tools/sim_run makes."""

    def setUp(self):
        super().setUp()
        self.sim_run = load_sim_run()
        self.cache = self.folder / "cache"
        self.sim = self.folder / "sim"
        self.sim.mkdir()
        (self.sim / "libcuda.so.1").touch()
        (self.sim / "helpers").symlink_to(HELPERS)
        self.now = time.time()

    def stand_ins(self, *folders):
        """The folder of stand-ins for the libraries in `folders`."""
        return self.sim_run.stand_ins(list(folders), self.sim, self.cache, [])

    def folder_of_age(self, name, days):
        """A folder in the cache that was used so long ago."""
        path = self.cache / name
        (path / "part").mkdir(parents=True)
        os.utime(path, (self.now - days * 24 * 3600,) * 2)
        return path

    def test_names_a_program_that_is_not_there(self):
        for name in ("python9", str(self.folder)):
            with self.assertRaisesRegex(self.sim_run.SimRunError, f"^{name}: [A-Z]"):
                self.sim_run.torch_libraries(name)

    def test_skips_links_without_a_target(self):
        libraries = self.folder / "libraries"
        libraries.mkdir()
        (libraries / "libgone.so").symlink_to("nowhere")
        (libraries / "folder.so").mkdir()
        self.assertTrue((self.stand_ins(libraries) / "libnvidia-ml.so.1").exists())

    def test_removes_folders_that_are_unused_for_long(self):
        old = [self.folder_of_age(name, 31) for name in ("0" * 16, "f" * 16 + ".killed")]
        other = [self.folder_of_age("1" * 16, 29), self.folder_of_age("2" * 16 + ".made", 1),
                 self.folder_of_age("of_a_user", 31)]
        made = self.stand_ins()
        self.assertEqual(sorted(self.cache.iterdir()), sorted([*other, made]))
        self.assertEqual([path for path in old if path.exists()], [])

    def test_use_makes_a_folder_young(self):
        first = self.stand_ins()
        os.utime(first, (self.now - 31 * 24 * 3600,) * 2)
        old = self.folder_of_age("0" * 16, 31)
        self.assertEqual(self.stand_ins(), first)
        self.assertTrue(old.exists())
        libraries = self.folder / "libraries"
        libraries.mkdir()
        (libraries / "libuse.so").write_bytes(b"text")
        second = self.stand_ins(libraries)
        self.assertEqual(sorted(self.cache.iterdir()), sorted([first, second]))


if __name__ == "__main__":
    HELPERS = pathlib.Path(sys.argv.pop(1)).resolve()
    HEADERS = pathlib.Path(sys.argv.pop(1))
    unittest.main()
