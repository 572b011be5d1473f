#!/usr/bin/env python3
"""Tests of tools/check_pytorch, without PyTorch.

usage: check_pytorch_test.py <tools/check_pytorch>
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SCRIPT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPT.parent))  # as if the script ran


def load():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("check_pytorch", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module  # for dataclasses
    loader.exec_module(module)
    return module


check_pytorch = load()
CheckError = check_pytorch.CheckError


def printed(function, *arguments):
    """Returns the result of a function and its output."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        return function(*arguments), output.getvalue()


class Files(unittest.TestCase):
    """A test with a folder of its own, which is the current one."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)


class CommandLineTest(Files):
    """Arguments, and the exit code."""

    def run_script(self, *arguments):
        """Runs the script with a release that is installed, so that it only looks for a library."""
        complete = self.folder / "releases" / check_pytorch.RELEASES["newest"] / "complete"
        complete.parent.mkdir(parents=True, exist_ok=True)
        complete.touch()
        return subprocess.run([sys.executable, str(SCRIPT), "--folder", "releases", *arguments],
                              capture_output=True, text=True, check=False)

    def test_refuses_a_case_without_plugged(self):
        done = self.run_script("forked_loader")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("forked_loader: a case of --plugged", done.stderr)

    def test_resolves_relative_paths(self):
        done = self.run_script("--plugged", "--library", "gone.so")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"in {self.folder}/releases/", done.stdout)
        self.assertIn(f"there is no {self.folder}/gone.so", done.stderr)


class InstallTest(Files):
    """The folder of the releases, without pip."""

    def install(self, version, pip):
        """Installs a release with `pip` in the place of pip_install."""
        with unittest.mock.patch.object(check_pytorch, "pip_install", pip), \
                unittest.mock.patch.object(check_pytorch, "triton_requirement"):
            return printed(check_pytorch.install, version, self.folder)[0]

    def test_removes_the_other_release_last(self):
        newest, older = check_pytorch.RELEASES.values()
        self.install(older, lambda *_: None)
        self.assertTrue((self.folder / older / "complete").exists())

        def fail(*_):
            raise CheckError("no network")

        with self.assertRaisesRegex(CheckError, "no network"):
            self.install(newest, fail)
        self.assertTrue((self.folder / older / "complete").exists())
        self.assertFalse((self.folder / newest / "complete").exists())
        self.install(newest, lambda *_: None)
        self.assertTrue((self.folder / newest / "complete").exists())
        self.assertFalse((self.folder / older).exists())

    def test_one_process_installs_at_a_time(self):
        code = ("import fcntl, sys\n"
                "fcntl.flock(open(sys.argv[1], 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)\n")
        codes = []

        def try_lock(*_):
            codes.append(subprocess.run([sys.executable, "-c", code, self.folder / "lock"],
                                        capture_output=True, check=False).returncode)

        self.install("2.15.0", try_lock)
        self.assertEqual(codes, [1, 1])
        try_lock()
        self.assertEqual(codes[-1], 0)


class RunTest(Files):
    """Results of the programs."""

    def test_names_a_build_that_is_older_than_the_tree(self):
        checker = check_pytorch.Checker(self.folder, self.folder, self.folder)
        real = {"outcome": "ran", "reserved": 1, "allocations": 1}
        with unittest.mock.patch.object(checker, "run", return_value=real):
            row = checker.row("mlp", "plain", False)
        self.assertEqual(row.error, "the build is older than this tree: build strata_sim")


class PluggedTest(Files):
    """Strata beside PyTorch's allocator."""

    def compare(self, differences):
        """Compares programs with these differences of the peaks; returns exit code and output."""
        results = []
        for difference in differences.values():
            if isinstance(difference, CheckError):
                results.append(difference)
                continue
            native = {"reserved": 8 << 20, "requests": 3, "total_requested": 5}
            results.append((native, native | {"reserved": (8 << 20) + difference, "at_end": 0,
                                              "device_at_end": 0}))
        return printed(check_pytorch.compare_plugged, list(differences), results)

    def test_sum_of_all_programs_must_be_lower(self):
        names = check_pytorch.PLUGGED
        code, output = self.compare({name: 0 for name in names})
        self.assertEqual(code, 1)
        self.assertIn("  Strata reserves no less than PyTorch in all programs together\n", output)
        code, output = self.compare({name: -1 for name in names})
        self.assertEqual((code, "no less" in output), (0, False))

    def test_sum_of_some_programs_may_be_equal(self):
        code, output = self.compare({"mlp": 0})
        self.assertEqual((code, "no less" in output), (0, False))
        self.assertEqual(self.compare({})[0], 0)

    def test_peak_of_each_program_is_bounded(self):
        code, output = self.compare({"mlp": check_pytorch.STEP + 1, "fsdp": -check_pytorch.STEP})
        self.assertEqual(code, 1)
        self.assertIn("above PyTorch", output)

    def test_program_that_cannot_run_is_no_difference(self):
        different = check_pytorch.STEP + 1
        for values in ((CheckError("mlp: no end"), different),
                       (different, CheckError("fsdp: no end"))):
            code, output = self.compare(dict(zip(("mlp", "fsdp"), values)))
            self.assertEqual(code, 2)
            self.assertIn("no end", output)

    def test_case_that_does_not_hold_is_no_error(self):
        show = check_pytorch.show_case
        self.assertEqual(printed(show, "mem_pool", {"reserved": 0})[0], 0)
        code, output = printed(show, "mem_pool", {"fault": "not so: it returns"})
        self.assertEqual((code, "not so: it returns" in output), (1, True))
        code, output = printed(show, "mem_pool", CheckError("mem_pool: no end"))
        self.assertEqual((code, "no end" in output), (2, True))


class ReplayTest(Files):
    """Results of `strata replay`."""

    PEER = "peer:pytorch"
    ROW = {"strategy": PEER, "peak_reserved_bytes": 7, "device_calls": {}, "fit_bytes": 6}

    def replay(self, output, code=0, fit=True):
        """Reads this output of a program in the place of `strata`."""
        done = subprocess.CompletedProcess([], code, output, "the message")
        checker = check_pytorch.Checker(self.folder, self.folder, self.folder)
        with unittest.mock.patch.object(check_pytorch.subprocess, "run", return_value=done):
            return checker.replay("mlp", "plain", fit)

    def test_returns_the_row_of_the_peer(self):
        rows = [{"strategy": "recorded"}, self.ROW]
        self.assertEqual(self.replay(json.dumps(rows)), self.ROW)
        without = {name: value for name, value in self.ROW.items() if name != "fit_bytes"}
        self.assertEqual(self.replay(json.dumps([without]), fit=False), without)

    def test_names_the_program_of_a_replay_that_failed(self):
        rows = json.dumps([self.ROW])
        for code in (1, 2, 3, -11):
            with self.assertRaisesRegex(CheckError, f"^mlp: .*exit code {code}: the message"):
                self.replay(rows, code)

    def test_names_the_program_of_an_output_without_its_row(self):
        rows = ([], [{"strategy": "recorded"}], [{}], [3], 3, None, {"strategy": 3})
        for output in ("", "no JSON", *map(json.dumps, rows)):
            with self.assertRaisesRegex(CheckError, f"^mlp: .*no row of {self.PEER}"):
                self.replay(output)

    def test_names_what_a_row_lacks(self):
        for name in ("peak_reserved_bytes", "device_calls", "fit_bytes"):
            for row in (self.ROW | {name: None}, dict(self.ROW)):
                if row[name] is not None:
                    del row[name]
                with self.assertRaisesRegex(CheckError, f"^mlp: .*lacks {name}"):
                    self.replay(json.dumps([row]))


if __name__ == "__main__":
    unittest.main()
