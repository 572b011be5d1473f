#!/usr/bin/env python3
"""Tests of tools/gpu_check, with programs that only claim to have a GPU.

usage: gpu_check_test.py <tools/gpu_check>
"""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

SCRIPT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True


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
           "caps": {"mem_pools": true, "simulated": false, "alloc_alignment_bytes": 256}}]}"""
BENCH = """[{"workload": "pair", "allocator": "direct", "ns_median": 7.5, "ns_min": 7,
            "note": "", "status": "ok"}]"""

# With a warning, as one of the loader is.
STRATA = f"""
    import sys
    print("ERROR: ld.so: [object] cannot be preloaded", file=sys.stderr)
    print({INFO!r} if sys.argv[1] == "info" else {BENCH!r})
    """
NO_GPU = """
    import sys
    print("strata_platform: cuda: no driver", file=sys.stderr)
    sys.exit(2)
    """
# Two tests. Mode `crash`: the second takes its process down; `fail`: the first
# fails.
TESTS = """
    import json, os, sys
    options = dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
    if "--gtest_list_tests" in sys.argv:
        print("Suite.\\n  First\\n  Second")
        sys.exit(0)
    wanted = options["--gtest_filter"]
    mode = "{mode}"
    if mode == "crash" and wanted != "Suite.First":
        os.abort()
    tests = [{{"name": "First", "classname": "Suite", "status": "RUN",
              "result": "COMPLETED", "time": "0s", "pin_answer": "42"}}]
    if mode == "fail":
        tests[0]["failures"] = [{{"failure": "it is wrong"}}]
    with open(options["--gtest_output"][len("json:"):], "w") as file:
        json.dump({{"testsuites": [{{"testsuite": tests}}]}}, file)
    sys.exit(1 if mode == "fail" else 0)
    """


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


class RunTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.out = self.folder / "report.md"

    def program(self, name, text):
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(text))
        path.chmod(0o755)

    def check(self):
        return subprocess.run([str(SCRIPT), "--bin", str(self.folder), "--out", str(self.out)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)

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
        self.program("platform_gpu_tests", TESTS.format(mode="pass"))
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.out.read_text()
        self.assertIn("1 passed, 0 failed, 0 skipped.", report)
        self.assertIn("| Suite.First | pin_answer | 42 |", report)
        self.assertIn("| pair | direct | 7.5 | 7 | ok |", report)
        self.assertIn("mem_pools, alloc_alignment_bytes=256", report)

    def test_failure_is_the_exit_code(self):
        self.program("strata", STRATA)
        self.program("platform_gpu_tests", TESTS.format(mode="fail"))
        self.assertEqual(self.check().returncode, 1)
        self.assertIn("it is wrong", self.out.read_text())

    def test_example_is_a_test_by_its_exit_code(self):
        for code, outcome in ((0, "2 passed, 0 failed"), (1, "1 passed, 1 failed")):
            self.program("strata", STRATA)
            self.program("platform_gpu_tests", TESTS.format(mode="pass"))
            self.program("example_eager_mlp", f"""
                import sys
                print("hazards:" if "--strata_platform=cuda" in sys.argv else "no platform")
                sys.exit({code})
                """)
            self.assertEqual(self.check().returncode, code)
            self.assertIn(outcome, self.out.read_text())
        self.assertIn("| example_eager_mlp | example_eager_mlp | hazards: |", self.out.read_text())

    def test_crash_costs_only_its_own_test(self):
        self.program("strata", STRATA)
        self.program("platform_gpu_tests", TESTS.format(mode="crash"))
        self.assertEqual(self.check().returncode, 1)
        report = self.out.read_text()
        self.assertIn("| platform_gpu_tests | Suite.First | passed |", report)
        self.assertIn("| platform_gpu_tests | Suite.Second | exit code -6", report)

    def test_no_tests_are_no_success(self):
        self.program("strata", STRATA)
        self.assertEqual(self.check().returncode, 1)

    def test_no_programs_are_wrong_usage(self):
        self.assertEqual(self.check().returncode, 2)


if __name__ == "__main__":
    unittest.main()
