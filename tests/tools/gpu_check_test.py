#!/usr/bin/env python3
"""Tests of tools/gpu_check, with programs that pretend to have a GPU.

usage: gpu_check_test.py <tools/gpu_check>
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import unittest.mock

SCRIPT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPT.parent))
import gpu_pytorch  # pylint: disable=wrong-import-position


def load():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("gpu_check", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
    loader.exec_module(module)
    return module


gpu_check = load()

GTEST_REPORT = {"testsuites": [{"testsuite": [
    {"name": "T1/cuda", "classname": "Events", "status": "RUN", "result": "COMPLETED",
     "time": "0.012s"},
    {"name": "T17/cuda", "classname": "Memory", "status": "RUN", "result": "COMPLETED",
     "time": "0s", "pin_zero_bytes": "0", "time_ns_mem_alloc": "1234"},
    {"name": "T4/cuda", "classname": "Events", "status": "RUN", "result": "SKIPPED",
     "time": "0s", "skipped": [{"message": "needs\ntwo GPUs"}]},
    {"name": "T2/cuda", "classname": "Events", "status": "RUN", "result": "COMPLETED",
     "time": "0s", "failures": [{"failure": "a | b"}]},
    {"name": "T3/sim", "classname": "Events", "status": "NOTRUN", "result": "SUPPRESSED",
     "time": "0s"}]}]}

INFO = """{"devices": [{"name": "cuda:0", "total_bytes": 8, "free_bytes": 4,
           "caps": {"mem_pools": true, "simulated": false, "alloc_alignment_bytes": 256},
           "auto_strategy": {"name": "auto_growth", "why": "nobody looked"}}]}"""
BENCH = """[{"workload": "pair", "allocator": "direct", "ns_median": 31.66, "ns_min": 7,
            "reserved_ratio": 1.5, "note": "", "status": "ok"}]"""

# With a warning, like one of the loader.
STRATA = f"""
    import sys
    print("ERROR: ld.so: [object] cannot be preloaded", file=sys.stderr)
    print({INFO!r} if sys.argv[1] == "info" else {BENCH!r})
    """
STRATA_WITHOUT_BENCH = f"""
    import sys
    print({INFO!r} if sys.argv[1] == "info" else "no bench")
    """
NO_GPU = """
    import sys
    print("strata_platform: cuda: no driver", file=sys.stderr)
    sys.exit(2)
    """
# A test program. A word sets the behaviour of each test: `pass`, `fail`, `crash`,
# `hang` (a code that TestProgramTest treats as a hang), `crash_unbegun` (crashes
# before its name is printed), `crash_in_part` (crashes if it runs with some of the
# other tests, but not with all). With `_at_exit` it crashes when the report is
# written; with `wrong_at_exit` the exit code is 1.
TESTS = """
    import json, os, sys
    words = {words!r}
    options = dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
    if "--gtest_list_tests" in sys.argv:
        print("Suite.", *words, sep="\\n  ")
        sys.exit(0)
    with open(options["--gtest_flagfile"]) as file:
        names = file.read().strip()[len("--gtest_filter="):].split(":")
    with open(__file__ + ".processes", "a") as file:
        print(*[name[len("Suite."):] for name in names], file=file)
    tests = []
    for name in names:
        short = name[len("Suite."):]
        word = words[short]
        if word == "crash_unbegun":
            os.abort()
        print("[ RUN      ]", name, flush=True)
        test = {{"name": short, "classname": "Suite", "status": "RUN", "result": "COMPLETED",
                "time": "0s", "pin_answer": "42"}}
        if word == "fail":
            test["failures"] = [{{"failure": "it is wrong"}}]
        if word in ("crash", "hang") or word == "crash_in_part" and 1 < len(names) < len(words):
            print("noise\\n" * 200 + short + " is about to", flush=True)
            print("give up", file=sys.stderr, flush=True)
            os.abort() if word != "hang" else sys.exit(99)
        print("[  FAILED  ]" if word == "fail" else "[       OK ]", name + ", where", flush=True)
        tests.append(test)
    with open(options["--gtest_output"][len("json:"):], "w") as file:
        json.dump({{"testsuites": [{{"testsuite": tests}}]}}, file)
    if "crash_at_exit" in words.values():
        os.abort()
    sys.exit(1 if {{"fail", "wrong_at_exit"}} & {{words[test["name"]] for test in tests}} else 0)
    """


def write_program(path, text):
    path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(text))
    path.chmod(0o755)


def bench_row(workload, allocator, median=None, least=None, ratio=None, status="ok", note=""):
    return {"workload": workload, "allocator": allocator, "ns_median": median, "ns_min": least,
            "reserved_ratio": ratio, "status": status, "note": note}


class RenderTest(unittest.TestCase):
    def setUp(self):
        self.tests = gpu_check.tests_of(GTEST_REPORT, "conformance_tests")
        self.report = gpu_check.render({"machine": {"host": "here"}, "tests": self.tests,
                                        "bench": {"error": "none"}})

    def test_counts_each_outcome_once(self):
        self.assertIn("2 passed, 1 failed, 1 skipped.", self.report)

    def test_leaves_out_what_did_not_run(self):
        self.assertNotIn("T3/sim", self.report)

    def test_says_why_a_test_was_skipped(self):
        self.assertIn("| Events.T4/cuda | skipped | 0.000 | needs two GPUs |", self.report)

    def test_failure_cannot_break_the_table(self):
        self.assertIn("| conformance_tests | Events.T2/cuda | a \\| b |", self.report)

    def test_recorded_answers_and_times_have_tables_of_their_own(self):
        self.assertIn("| Memory.T17/cuda | pin_zero_bytes | 0 |", self.report)
        self.assertIn("| mem_alloc | 1234 |", self.report)
        self.assertNotIn("| Memory.T17/cuda | time_ns_mem_alloc", self.report)

    def test_bench_that_failed_says_so(self):
        self.assertIn("`strata bench` failed: none", self.report)

    def test_what_a_failure_said_is_kept_longer_than_the_rest(self):
        tests = [gpu_check.lost_test("p", "Suite.Test", "f" * 700),
                 dict(gpu_check.lost_test("p", "Suite.Other", "s" * 700), outcome="skipped")]
        report = gpu_check.render({"machine": {}, "tests": tests, "bench": None})
        self.assertIn("| " + "f" * 597 + "... |", report)
        self.assertIn("| " + "s" * 197 + "... |", report)


class MappedMemoryTest(unittest.TestCase):
    """The report's answers to the questions of --allocator_strategy=auto."""

    def setUp(self):
        self.tests = [
            {"program": "conformance_tests", "name": f"Devices/Some.{name}/cuda", "seconds": 0.0,
             "outcome": "passed", "note": "", "recorded": {}}
            for _, names in gpu_check.MAPPED_MEMORY for name in names]

    def report(self):
        return gpu_check.render({"machine": {}, "tests": self.tests, "bench": None})

    def test_all_that_counts_has_to_hold(self):
        self.assertIn("\n" + gpu_check.CAN_BE_CHOSEN + "\n", self.report())
        self.assertEqual(self.report().count("| holds |"), 3)

    def test_one_failure_is_enough(self):
        for test in self.tests:
            for outcome, word in (("failed", "does not hold"), ("skipped", "was not tested")):
                test["outcome"] = outcome
                self.assertNotIn(gpu_check.CAN_BE_CHOSEN, self.report())
                self.assertEqual(self.report().count(f"| {word} |"), 1)
            test["outcome"] = "passed"

    def test_a_test_that_did_not_run_shows_nothing(self):
        self.tests.pop()
        self.assertNotIn(gpu_check.CAN_BE_CHOSEN, self.report())

    def test_one_gpu_of_several_is_enough_to_fail(self):
        self.tests.append(dict(self.tests[0], outcome="failed"))
        self.assertIn("| does not hold |", self.report())

    def test_the_tests_are_there(self):
        folder = SCRIPT.parent.parent / "tests/conformance"
        text = "".join(path.read_text() for path in folder.glob("*_test.cc"))
        for _, names in gpu_check.MAPPED_MEMORY:
            for name in names:
                self.assertRegex(text, rf"TEST_P\(\w+,\s+{name}\)")

    def test_the_line_is_the_one_that_a_row_of_the_table_needs(self):
        table = SCRIPT.parent.parent / "facade/settings/mapped_memory_reports.def"
        self.assertIn(gpu_check.CAN_BE_CHOSEN, table.read_text())


class RenderBenchTest(unittest.TestCase):
    def test_numbers_have_three_digits(self):
        for value, text in ((31.66, "31.7"), (842.9, "843"), (89777.0, "89800"), (7.5, "7.5"),
                            (1234567.0, "1230000"), (0, "0"), (None, "-")):
            self.assertEqual(gpu_check.rounded(value), text)

    def test_has_a_row_for_each_workload_and_a_column_for_each_allocator(self):
        report = gpu_check.render_bench({"commands": ["--one"], "library": "no library", "rows": [
            bench_row("pair", "null", 3.333, 3.1), bench_row("pair", "bfc", 89777.0, 842.9, 1.256),
            bench_row("lifo", "bfc", 100.44, 99.0, 2)]})
        self.assertIn("`strata bench --one`\n\nno library\n", report)
        header = "| workload | null | bfc |\n|---|---|---|\n"
        self.assertIn(header + "| pair | 3.33 | 89800 |\n| lifo | - | 100 |\n", report)
        self.assertIn(header + "| pair | 3.1 | 843 |\n| lifo | - | 99 |\n", report)
        self.assertIn(header + "| pair | - | 1.26 |\n| lifo | - | 2.00 |\n", report)
        self.assertNotIn("not measured", report)

    def test_lists_what_was_not_measured(self):
        rows = [bench_row("pair", "null", 3, 3),
                bench_row("pair", "bfc", status="failed", note="it fell"),
                bench_row("lifo", "null", status="left_out", note="too large")]
        report = gpu_check.render_bench({"commands": [], "library": "", "error": "pair: it fell",
                                         "rows": rows})
        self.assertIn("`strata bench` failed: pair: it fell\n", report)
        self.assertIn("| pair | 3 | - |", report)
        self.assertIn("| pair | bfc | failed | it fell |\n| lifo | null | left_out | too large |",
                      report)


class TestProgramTest(unittest.TestCase):
    """The results of the tests of one program."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name) / "some_gpu_tests"

    def check(self, **words):
        """(the tests, by name; the arguments of each process)"""
        write_program(self.path, TESTS.format(words=words))
        run = subprocess.run

        def run_until_time_is_up(command, **options):
            done = run(command, **options)
            if done.returncode == 99:
                raise subprocess.TimeoutExpired(command, 7, output=done.stdout.encode())
            return done

        with unittest.mock.patch.object(subprocess, "run", run_until_time_is_up), \
                contextlib.redirect_stdout(io.StringIO()):
            tests = gpu_check.check_program(self.path, "*", 7)
        processes = pathlib.Path(f"{self.path}.processes").read_text().splitlines()
        return {test["name"]: test for test in tests}, processes

    def outcomes(self, tests):
        return {name: test["outcome"] for name, test in tests.items()}

    def test_one_process_is_enough(self):
        tests, processes = self.check(A="pass", B="fail", C="pass")
        self.assertEqual(processes, ["A B C"])
        self.assertEqual(self.outcomes(tests), {"Suite.A": "passed", "Suite.B": "failed",
                                                "Suite.C": "passed"})

    def test_a_crash_costs_two_processes_more(self):
        tests, processes = self.check(A="pass", B="pass", C="crash", D="pass", E="pass")
        self.assertEqual(processes, ["A B C D E", "A B", "D E"])
        self.assertEqual(list(tests), ["Suite.A", "Suite.B", "Suite.C", "Suite.D", "Suite.E"])
        for name, test in tests.items():
            self.assertEqual(test["outcome"], "failed" if name == "Suite.C" else "passed")
            self.assertEqual(test["recorded"], {} if name == "Suite.C" else {"pin_answer": "42"})

    def test_a_crash_has_its_last_lines(self):
        note = self.check(A="pass", B="crash")[0]["Suite.B"]["note"]
        self.assertTrue(note.startswith("exit code -6: ...ise noise"), note)
        self.assertTrue(note.endswith("noise B is about to give up"), note)
        self.assertEqual(len(note), 600)

    def test_every_crash_is_found(self):
        tests, processes = self.check(A="crash", B="pass", C="crash", D="fail", E="crash")
        self.assertEqual(processes, ["A B C D E", "B C D E", "B", "D E", "D"])
        self.assertEqual(self.outcomes(tests), {
            "Suite.A": "failed", "Suite.B": "passed", "Suite.C": "failed", "Suite.D": "failed",
            "Suite.E": "failed"})
        self.assertEqual(tests["Suite.D"]["note"], "it is wrong")

    def test_a_test_that_does_not_end_is_as_one_that_crashes(self):
        tests, processes = self.check(A="pass", B="hang", C="pass")
        self.assertEqual(processes, ["A B C", "A", "C"])
        self.assertTrue(tests["Suite.B"]["note"].startswith("not done after 7 s: ..."))
        self.assertTrue(tests["Suite.B"]["note"].endswith("B is about to give up"))

    def test_a_crash_between_two_tests_is_of_the_next_one(self):
        tests, processes = self.check(A="pass", B="crash_unbegun", C="pass")
        self.assertEqual(processes, ["A B C", "A", "C"])
        self.assertEqual(self.outcomes(tests), {"Suite.A": "passed", "Suite.B": "failed",
                                                "Suite.C": "passed"})

    def test_those_that_do_not_pass_again_run_one_by_one(self):
        tests, processes = self.check(A="pass", B="crash_in_part", C="crash", D="pass")
        self.assertEqual(processes, ["A B C D", "A B", "A", "B", "D"])
        self.assertEqual(self.outcomes(tests), {"Suite.A": "passed", "Suite.B": "passed",
                                                "Suite.C": "failed", "Suite.D": "passed"})

    def test_a_process_that_fails_beside_its_tests_is_a_failure(self):
        for word, end in (("crash_at_exit", "exit code -6"), ("wrong_at_exit", "exit code 1")):
            tests, _ = self.check(A="pass", B=word)
            self.assertEqual(tests["Suite.B"]["outcome"], "passed")
            self.assertTrue(tests["(outside its tests)"]["note"].startswith(end))

    def test_names_may_be_longer_than_a_command_line(self):
        names = [f"{'N' * 100}{i}" for i in range(2000)]
        tests, _ = self.check(**dict.fromkeys(names, "pass"))
        self.assertEqual(len(tests), 2000)

    def test_a_program_that_cannot_start_says_why(self):
        write_program(self.path, """
            import sys
            print("no such library", file=sys.stderr)
            sys.exit(127)
            """)
        tests = gpu_check.check_program(self.path, "*", 7)
        self.assertEqual([test["note"] for test in tests], ["exit code 127: no such library"])

    def test_tests_end_however_gtest_says_so(self):
        for line in ("[       OK ] S.T/0 (3 ms)", "[  SKIPPED ] S.T/0 (0 ms)",
                     "[  FAILED  ] S.T/0 (0 ms)", "cut off[       OK ] S.T/0",
                     "[  FAILED  ] S.T/0, where GetParam() = [ 1 ] (0 ms)"):
            for rest, ended in ((line + "\n", True), ("[       OK ] S.T/01 (3 ms)\n", False)):
                begun, last_ended, said = gpu_check.tests_begun(
                    "[----------] 2 tests\n[ RUN      ] S.R\n[       OK ] S.R (0 ms)\n"
                    "[ RUN      ] S.T/0\n" + rest)
                self.assertEqual((begun, last_ended, said), (["S.R", "S.T/0"], ended, rest))

    def test_a_program_whose_time_is_up_has_no_code(self):
        done = gpu_check.run(["tail", "-f", "/dev/null"], 0.1)
        self.assertEqual(done, (None, "not done after 0.1 s", "", ""))

    def test_no_program_takes_longer_than_all_may(self):
        with unittest.mock.patch.object(gpu_check, "deadline", time.monotonic() + 0.1):
            done = gpu_check.run(["tail", "-f", "/dev/null"], 60)
        self.assertRegex(done.end, "^not done after 0[.0-9e-]+ s$")

    def test_what_is_left_when_the_time_is_up_does_not_run(self):
        with unittest.mock.patch.object(gpu_check, "deadline", time.monotonic()):
            done = gpu_check.run(["false"], 60)
            self.assertEqual(done, (None, "not run: the total time is up", "", ""))
        names = ["Suite.A", "Suite.B"]
        with unittest.mock.patch.object(gpu_check, "list_tests", return_value=(names, None)), \
                unittest.mock.patch.object(gpu_check, "deadline", time.monotonic()):
            tests = gpu_check.check_program(self.path, "*", 7)
        self.assertEqual([(test["name"], test["outcome"], test["note"]) for test in tests],
                         [(name, "failed", "not run: the total time is up") for name in names])


class PytorchHeapTest(unittest.TestCase):
    """Compiles against a fake PyTorch, a fake compiler and a fake CUDA."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        for name in ("packages/torch/include", "packages/torch/lib", "cuda/bin", "cuda/include",
                     "empty", "out"):
            (self.folder / name).mkdir(parents=True)
        self.torch = self.folder / "packages/torch"
        (self.torch / "__init__.py").touch()
        (self.torch / "version.py").write_text("debug = False\n__version__ = '2.4.0+cu121'\n")
        (self.folder / "cuda/include/cuda_runtime_api.h").touch()
        write_program(self.folder / "cuda/bin/nvcc", "")
        self.compiler = self.folder / "compiler"
        self.compile_with("""
            open(sys.argv[sys.argv.index("-o") + 1], "w").write(" ".join(sys.argv))
            """)

    def compile_with(self, text):
        write_program(self.compiler, "import os, sys\n" + textwrap.dedent(text))

    def compile(self, packages="packages"):
        environment = {"PATH": str(self.folder / "cuda/bin"), "CXX": str(self.compiler)}
        # Before the path is patched: Python 3.12 imports modules for it.
        importlib.invalidate_caches()
        with unittest.mock.patch.dict(os.environ, environment), \
                unittest.mock.patch.object(sys, "path", [str(self.folder / packages)]):
            return gpu_check.compile_pytorch_heap(self.folder / "out")

    def lack(self, packages="packages"):
        library, note = self.compile(packages)
        self.assertIsNone(library)
        return note

    def test_is_compiled_and_named_with_its_version(self):
        library, note = self.compile()
        self.assertEqual(note, "`library` is the allocator of PyTorch 2.4.0+cu121.")
        command = library.read_text()
        for argument in (f"-I{self.torch}/include", f"-L{self.torch}/lib", "pytorch_heap.cc",
                         f"-I{self.folder}/cuda/include"):
            self.assertIn(argument, command)

    def test_finds_its_own_header(self):
        self.compile_with("""
            folders = [word[2:] for word in sys.argv if word.startswith("-I")]
            header = "strata/tools/bench/heaps/heap_library.h"
            sys.exit(not any(os.path.exists(os.path.join(folder, header)) for folder in folders))
            """)
        self.assertIsNotNone(self.compile()[0])

    def test_a_version_that_is_written_otherwise_is_no_failure(self):
        (self.torch / "version.py").write_text("from elsewhere import __version__\n")
        self.assertEqual(self.compile()[1], "`library` is the allocator of PyTorch ?.")

    def test_says_what_the_machine_lacks(self):
        self.assertIn("this machine lacks PyTorch.", self.lack("empty"))
        (self.folder / "cuda/include/cuda_runtime_api.h").unlink()
        self.assertIn("this machine lacks CUDA's headers.", self.lack())
        self.compiler.unlink()
        self.assertIn("this machine lacks a C++ compiler.", self.lack())

    def test_a_failure_says_what_the_compiler_said(self):
        self.compile_with("sys.exit('no member named raw_alloc')")
        with self.assertRaisesRegex(RuntimeError,
                                    "does not compile: exit code 1: no member named raw_alloc"):
            self.compile()

    def bench(self, compiled, traces=None):
        """The result of bench, and the arguments of the program in each run."""
        strata = self.folder / "strata"
        write_program(strata, f"""
            import json, os, sys
            allocators = sys.argv[-1].split("=")[1].split(",")
            with open(__file__ + ".asked", "a") as file:
                print(os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "-"), *sys.argv[1:], file=file)
            row = {BENCH!r}
            print(json.dumps([dict(json.loads(row)[0], allocator=name) for name in allocators]))
            """)
        asked = pathlib.Path(f"{strata}.asked")
        asked.unlink(missing_ok=True)
        with unittest.mock.patch.object(gpu_check, "compile_pytorch_heap", **compiled):
            result = gpu_check.bench(strata, traces, 60)
        return result, asked.read_text().splitlines()

    def test_is_measured_beside_the_others(self):
        result, asked = self.bench({"return_value": (pathlib.Path("/heap.so"), "PyTorch 2")})
        self.assertNotIn("error", result)
        self.assertEqual(result["library"], "PyTorch 2")
        self.assertIn("--bench_library=/heap.so", asked[0])
        self.assertRegex(asked[0], "^- bench .*--bench_allocators=null,.*,virtual_memory,.*,library$")

    def test_is_measured_with_expandable_segments_too(self):
        result, asked = self.bench({"return_value": (pathlib.Path("/heap.so"), "PyTorch 2")})
        self.assertEqual(len(asked), 2)
        self.assertRegex(asked[1], "^expandable_segments:True bench .*--bench_library=/heap.so"
                                   ".* --bench_allocators=library$")
        names = [row["allocator"] for row in result["rows"]]
        self.assertEqual(names[-2:], ["library", "library_expandable"])
        self.assertIn("virtual_memory", names)

    def test_without_it_the_others_are_measured(self):
        for compiled, error in (({"return_value": (None, "none")}, None),
                                ({"side_effect": RuntimeError("it is broken")}, "it is broken")):
            result, asked = self.bench(compiled)
            self.assertEqual(len(asked), 1)
            self.assertNotIn("library", asked[0])
            self.assertEqual(len(result["rows"]), len(gpu_check.BENCH_ALLOCATORS))
            self.assertEqual(result.get("error"), error)

    def test_recorded_programs_have_workloads_of_their_own(self):
        traces = self.folder / "traces"
        traces.mkdir()
        for name in ("b.csv.gz", "a.pickle", "gen_c.csv.gz", "README.md"):
            (traces / name).touch()
        result, asked = self.bench({"return_value": (pathlib.Path("/heap.so"), "")}, traces)
        self.assertEqual(len(asked), 4)
        for line, end in ((asked[2], "null,auto_growth,virtual_memory,.*,library"),
                          (asked[3], "library")):
            self.assertIn(f"--bench_trace={traces}/a.pickle,{traces}/b.csv.gz", line)
            self.assertRegex(line, f"--bench_workloads=trace:a,trace:b .*--bench_allocators={end}$")
        self.assertEqual(len(result["commands"]), 2)

    def test_a_folder_without_traces_is_none(self):
        for traces in (None, self.folder / "empty"):
            self.assertEqual(len(self.bench({"return_value": (None, "")}, traces)[1]), 1)


# PyTorch as the part `pytorch` asks for it.
TORCH = """
    class cuda:
        is_available = staticmethod(lambda: {available})
    __version__ = "2.11.0+cu130"
    """
# A program that writes the results of PyTorch, or prints a line and writes nothing.
RECORD = """
    import json, os, sys
    name, path = sys.argv[1:]
    assert os.environ["PYTORCH_ALLOC_CONF"] == "expandable_segments:False"
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    result = {results!r}[name]
    if isinstance(result, dict):
        with open(path, "w") as file:
            json.dump(result, file)
    sys.exit(result if isinstance(result, str) else 0)
    """
OVERHEAD = """
    import json, sys
    MIB = 1 << 20
    with open(sys.argv[1], "w") as file:
        json.dump({"device": "NVIDIA H200", "release": "2.11.0+cu130", "total": 143000 * MIB,
                   "bytes": {"context": 500 * MIB, "first kernel": 10 * MIB,
                             "cuBLAS": MIB // 2, "cuDNN": 0}}, file)
    """


def numbers(reserved=1000, allocations=5, **changed):
    """The result of a program of PyTorch."""
    return {"outcome": "ran", "message": "", "reserved": reserved, "allocations": allocations,
            "release": "2.11.0+cu130", "device": "NVIDIA H200", "capability": "9.0",
            "multiprocessors": 132, "workspaces": {}, **changed}


class PytorchComparisonTest(unittest.TestCase):
    """The numbers of a GPU beside the simulated ones."""

    def difference(self, simulated, real):
        return gpu_pytorch.row_of("mlp", simulated, real, None)["difference"]

    def test_equal_numbers_have_no_difference(self):
        self.assertEqual(self.difference(numbers(), numbers(device="another")), "none")

    def test_each_difference_is_named(self):
        for real, named in ((numbers(1002), "reserved +2"), (numbers(998), "reserved -2"),
                            (numbers(allocations=6), "allocations +1"),
                            (numbers(900, 4), "reserved -100, allocations -1"),
                            (numbers(900, multiprocessors=78),
                             "reserved -100, multiprocessors 78 instead of 132")):
            self.assertEqual(self.difference(numbers(), real), named)

    def test_equal_numbers_are_equal_on_any_number_of_multiprocessors(self):
        self.assertEqual(self.difference(numbers(), numbers(multiprocessors=78)), "none")

    def test_only_like_settings_are_compared(self):
        for changed, named in (({"release": "2.15.0+cu130"}, "PyTorch 2.15.0"),
                               ({"capability": "8.0"}, "compute capability 8.0"),
                               ({"workspaces": {"A": "1"}}, "workspaces {'A': '1'}")):
            self.assertEqual(self.difference(numbers(**changed), numbers()),
                             "not compared: the simulated numbers are of " + named)
        self.assertEqual(self.difference(numbers(release="2.11.0+cu126"), numbers()), "none")

    def test_numbers_of_an_older_check_pytorch_are_not_compared(self):
        kept = {"outcome": "ran", "reserved": 1000, "allocations": 5}
        self.assertIn("PyTorch ?, compute capability ?, workspaces ?",
                      self.difference(kept, numbers()))

    def test_a_simulated_program_without_memory_is_not_compared(self):
        row = gpu_pytorch.row_of("mlp", numbers(outcome="out of memory"), numbers(), None)
        self.assertEqual(row["difference"], "not compared: on the simulated device: out of memory")
        self.assertIsNone(row["simulated"])

    def test_without_simulated_numbers_those_of_the_gpu_are_shown(self):
        rows = [gpu_pytorch.row_of("mlp", None, numbers(), None)]
        report = gpu_pytorch.render({"release": "2.11.0", "rows": rows}, gpu_check.table)
        self.assertIn("| mlp | - | - | 1000 | 5 | not compared: there are no simulated numbers |",
                      report)
        self.assertNotIn("| simulated |", report)

    def test_the_programs_are_there(self):
        folder = gpu_pytorch.find_programs(SCRIPT.parent)
        for name in (*gpu_pytorch.PROGRAMS, "record", "overhead"):
            self.assertTrue((folder / f"{name}.py").exists(), name)

    def test_the_bundle_has_the_programs(self):
        bundle = (SCRIPT.parent / "gpu_bundle").read_text()
        carried = re.search(r"pytorch_programs=\((.*)\)", bundle).group(1).split()
        folder = gpu_pytorch.find_programs(SCRIPT.parent)
        imported = {name for program in carried for name in re.findall(
            r"^(?:import|from) (\w+)", (folder / f"{program}.py").read_text(), re.MULTILINE)
                    if (folder / f"{name}.py").exists()}
        self.assertLessEqual({*gpu_pytorch.PROGRAMS, "record", "overhead", *imported},
                             set(carried))


class PytorchTest(unittest.TestCase):
    """The programs, with a fake PyTorch."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.simulated = self.folder / "simulated"
        self.simulated.mkdir()
        self.have_torch(TORCH.format(available=True))
        write_program(self.folder / "overhead.py", OVERHEAD)
        for name in gpu_pytorch.PROGRAMS:
            (self.simulated / f"{name}_plain.json").write_text(
                json.dumps(numbers(device="Simulated")))

    def have_torch(self, text):
        (self.folder / "torch.py").write_text(textwrap.dedent(text))

    def measure(self, **results):
        """The results of the part, and the report."""
        write_program(self.folder / "record.py", RECORD.format(
            results={**dict.fromkeys(gpu_pytorch.PROGRAMS, numbers()), **results}))
        changed = {"PYTHONPATH": str(self.folder), "CUBLAS_WORKSPACE_CONFIG": ":4096:2",
                   "PATH": str(self.folder)}
        with unittest.mock.patch.dict(os.environ, changed), \
                unittest.mock.patch.object(gpu_pytorch, "find_programs",
                                           return_value=self.folder), \
                contextlib.redirect_stdout(io.StringIO()) as output:
            result = gpu_check.check_pytorch(self.simulated, 60)
        self.output = output.getvalue()
        return result, gpu_check.render({"machine": {}, "tests": [], "bench": None,
                                         "pytorch": result})

    def test_programs_and_overhead_are_in_the_report(self):
        write_program(self.folder / "nvidia-smi", "print('580.159.04\\n580.159.04')")
        result, report = self.measure(streams=numbers(3000, 6))
        self.assertNotIn("error", result)
        self.assertIn("PyTorch 2.11.0+cu130, plain segments", report)
        self.assertIn("| simulated | Simulated | 2.11.0+cu130 | 9.0 | 132 |\n"
                      "| GPU | NVIDIA H200 | 2.11.0+cu130 | 9.0 | 132 |\n", report)
        self.assertIn("| mlp | 1000 | 5 | 1000 | 5 | none |", report)
        self.assertIn("| streams | 1000 | 5 | 3000 | 6 | reserved +2000, allocations +1 |", report)
        self.assertIn("| GPU | driver | PyTorch | memory shown | context | first kernel | cuBLAS "
                      "| cuDNN | together |", report)
        self.assertIn("| NVIDIA H200 | 580.159.04 | 2.11.0+cu130 | 143000 | 500 | 10 | 0.5 | 0 "
                      "| 510.5 |", report)
        self.assertIn("gpu_check: PyTorch: streams: difference: reserved +2000, allocations +1",
                      self.output)

    def test_a_program_that_fails_leaves_the_others(self):
        result, report = self.measure(mlp="no kernel image")
        self.assertEqual(result["error"], "mlp: exit code 1: no kernel image")
        self.assertIn("Failed: mlp: exit code 1: no kernel image\n", report)
        self.assertIn("| mlp | 1000 | 5 | - | - | failed: exit code 1: no kernel image |", report)
        self.assertIn("| transformer | 1000 | 5 | 1000 | 5 | none |", report)
        self.assertIn("| NVIDIA H200 | ? |", report)

    def test_a_program_that_lacks_memory_fails(self):
        result, _ = self.measure(mlp=numbers(outcome="out of memory", message="2 GiB"))
        self.assertEqual(result["error"], "mlp: out of memory: 2 GiB")

    def test_an_overhead_that_fails_leaves_the_programs(self):
        write_program(self.folder / "overhead.py", "import sys; sys.exit('no cuDNN')")
        result, report = self.measure()
        self.assertEqual(result["error"], "overhead: exit code 1: no cuDNN")
        self.assertIn("| mlp | 1000 | 5 | 1000 | 5 | none |", report)
        self.assertNotIn("memory shown", report)

    def test_a_result_counts_however_its_program_ends(self):
        write_program(self.folder / "overhead.py", OVERHEAD + "    sys.exit(3)\n")
        self.assertNotIn("error", self.measure()[0])

    def test_no_simulated_number_is_needed(self):
        for path in self.simulated.iterdir():
            path.unlink()
        result, report = self.measure()
        self.assertNotIn("error", result)
        self.assertEqual(report.count("not compared: there are no simulated numbers"), 3)

    def test_says_why_pytorch_is_left_out(self):
        for torch, why in (("raise ModuleNotFoundError('No module named torch')",
                            "PyTorch cannot be imported: exit code 1: .*No module named torch"),
                           (TORCH.format(available=False), "PyTorch 2.11.0.cu130 finds no GPU")):
            self.have_torch(torch)
            result, report = self.measure()
            self.assertRegex(result["skipped"], why)
            self.assertRegex(report, "## PyTorch\n\nSkipped: " + why)
            self.assertRegex(self.output, "gpu_check: PyTorch: skipped: " + why)

    def test_no_time_is_a_failure(self):
        with unittest.mock.patch.object(gpu_check, "deadline", time.monotonic()):
            result, _ = self.measure()
        self.assertIn("not run: the total time is up", result["error"])

    def test_no_program_takes_longer_than_its_limit(self):
        asked = []

        def run(command, time_limit, **_):
            asked.append(time_limit)
            return gpu_check.Run(0, "", '{"release": "2", "gpu": true}', "")

        for time_limit, seconds in ((60, 60), (300, gpu_pytorch.TIME_LIMIT)):
            asked.clear()
            with unittest.mock.patch.object(gpu_check, "run", run), \
                    unittest.mock.patch.object(gpu_check, "nvidia_smi", return_value=[]), \
                    contextlib.redirect_stdout(io.StringIO()):
                gpu_check.check_pytorch(None, time_limit)
            self.assertEqual(asked, [seconds] * 5)


class RunTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.out = self.folder / "report.md"
        # No PyTorch of this machine is used.
        self.torch = self.folder / "packages/torch.py"
        self.torch.parent.mkdir()
        self.torch.write_text("raise ImportError('no PyTorch here')")

    def program(self, name, text):
        write_program(self.folder / name, text)

    def check(self, *arguments):
        return subprocess.run([str(SCRIPT), "--bin", str(self.folder), "--out", str(self.out),
                               *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(self.torch.parent)})

    def test_without_a_gpu_writes_nothing(self):
        self.program("strata", NO_GPU)
        done = self.check()
        self.assertEqual(done.returncode, 3)
        self.assertIn("no GPU to check: strata_platform: cuda: no driver", done.stderr)
        self.assertFalse(self.out.exists())

    def test_a_program_that_does_not_run_is_a_failure(self):
        for ending in ("sys.exit(1)", "os.kill(os.getpid(), 11)", "sys.exit(2)"):
            self.program("strata", "import os, sys\n" + ending)
            done = self.check()
            self.assertEqual(done.returncode, 1, ending)
            self.assertIn("strata info", done.stderr)
            self.assertIn("exit code", self.out.read_text())

    def test_success_has_a_report(self):
        self.program("strata", STRATA)
        self.program("platform_gpu_tests", TESTS.format(words={"First": "pass"}))
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.out.read_text()
        self.assertIn("1 passed, 0 failed, 0 skipped.", report)
        self.assertIn("| Suite.First | pin_answer | 42 |", report)
        self.assertIn("| workload | direct |\n|---|---|\n| pair | 31.7 |\n", report)
        self.assertIn("mem_pools, alloc_alignment_bytes=256", report)
        self.assertIn("| cuda:0 auto | auto_growth: nobody looked |", report)
        self.assertIn("`virtual_memory` cannot be chosen here.", report)

    def test_failure_is_the_exit_code(self):
        self.program("strata", STRATA)
        self.program("platform_gpu_tests", TESTS.format(words={"First": "fail"}))
        self.assertEqual(self.check().returncode, 1)
        self.assertIn("it is wrong", self.out.read_text())

    def test_example_is_a_test_by_its_exit_code(self):
        for code, outcome in ((0, "2 passed, 0 failed"), (1, "1 passed, 1 failed")):
            self.program("strata", STRATA)
            self.program("platform_gpu_tests", TESTS.format(words={"First": "pass"}))
            self.program("example_eager_mlp", f"""
                import sys
                print("hazards:" if "--strata_platform=cuda" in sys.argv else "no platform")
                sys.exit({code})
                """)
            self.assertEqual(self.check().returncode, code)
            self.assertIn(outcome, self.out.read_text())
        self.assertIn("| example_eager_mlp | example_eager_mlp | exit code 1: hazards: |",
                      self.out.read_text())

    def test_crash_costs_only_its_own_test(self):
        self.program("strata", STRATA)
        self.program("platform_gpu_tests", TESTS.format(words={"First": "pass", "Second": "crash"}))
        self.assertEqual(self.check().returncode, 1)
        report = self.out.read_text()
        self.assertIn("| platform_gpu_tests | Suite.First | passed |", report)
        self.assertIn("| platform_gpu_tests | Suite.Second | exit code -6", report)

    def test_a_part_is_all_that_runs(self):
        self.program("strata", STRATA_WITHOUT_BENCH)
        self.program("platform_gpu_tests", TESTS.format(words={"First": "pass"}))
        self.assertEqual(self.check("--part", "tests").returncode, 0)
        self.assertNotIn("## Bench", self.out.read_text())
        self.assertEqual(self.check("--part", "bench").returncode, 1)
        self.assertIn("`strata bench` failed: exit code 0: no bench", self.out.read_text())
        self.program("strata", STRATA)
        self.program("platform_gpu_tests", TESTS.format(words={"First": "fail"}))
        self.assertEqual(self.check("--part", "bench").returncode, 0)
        self.assertNotIn("Suite.First", self.out.read_text())
        self.assertNotIn("## PyTorch", self.out.read_text())
        self.assertEqual(self.check("--part", "all").returncode, 2)

    def test_without_pytorch_only_its_part_fails(self):
        self.program("strata", STRATA)
        self.program("platform_gpu_tests", TESTS.format(words={"First": "pass"}))
        self.assertEqual(self.check().returncode, 0)
        self.assertRegex(self.out.read_text(), "## PyTorch\n\nSkipped: .*no PyTorch here")
        self.assertEqual(self.check("--part", "pytorch").returncode, 1)
        self.assertRegex(self.out.read_text(), "## PyTorch\n\nSkipped: .*no PyTorch here")
        self.assertNotIn("## Bench", self.out.read_text())

    def test_a_program_of_pytorch_that_fails_is_a_failure(self):
        self.program("strata", STRATA)
        self.program("platform_gpu_tests", TESTS.format(words={"First": "pass"}))
        # The programs need more of PyTorch than this.
        self.torch.write_text(textwrap.dedent(TORCH.format(available=True)))
        self.assertEqual(self.check().returncode, 1)
        self.assertIn("Failed: mlp: exit code 1", self.out.read_text())
        self.assertEqual(self.check("--part", "pytorch").returncode, 1)

    def test_a_bench_that_measured_nothing_is_a_failure(self):
        for rows in ("[]", BENCH.replace('"ok"', '"left_out"'), BENCH.replace('"ok"', '"failed"')):
            self.program("strata", STRATA.replace(repr(BENCH), repr(rows)))
            self.assertEqual(self.check("--part", "bench").returncode, 1, rows)

    def test_the_total_time_is_heeded(self):
        self.program("strata", STRATA)
        self.assertEqual(self.check("--total-time", "0").returncode, 1)
        self.assertIn("not run: the total time is up", self.out.read_text())

    def test_traces_that_are_not_there_are_wrong_usage(self):
        self.program("strata", STRATA)
        self.assertEqual(self.check("--traces", str(self.folder / "none")).returncode, 2)

    def test_simulated_numbers_that_are_not_there_are_wrong_usage(self):
        self.program("strata", STRATA)
        self.assertEqual(self.check("--simulated", str(self.folder / "none")).returncode, 2)

    def test_no_tests_are_no_success(self):
        self.program("strata", STRATA)
        self.assertEqual(self.check().returncode, 1)

    def test_no_programs_are_wrong_usage(self):
        self.assertEqual(self.check().returncode, 2)


if __name__ == "__main__":
    unittest.main()
