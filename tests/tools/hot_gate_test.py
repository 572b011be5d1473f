#!/usr/bin/env python3
"""Tests of tools/hot_gate, with fake measuring tools.

usage: hot_gate_test.py <tools/hot_gate>
"""

import importlib.machinery
import importlib.util
import json
import os
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
    loader = importlib.machinery.SourceFileLoader("hot_gate", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("hot_gate", loader))
    loader.exec_module(module)
    return module


hot_gate = load()

PROFILE = """\
# callgrind format
positions: instr line
events: Ir
summary: 99

ob=(1) /bin/program
fl=(1) ???
fn=(1) Alloc
0x10 0 5
+4 0 5
* 0 2
cob=(2) /lib/libc.so.6
cfi=(2)
cfn=(2) malloc
calls=5 0x900
+8 0 700
+0x4 0 5

ob=(2)
fn=(2)
0x900 12 5
-2 +1 3

ob=(1)
fn=(3) Alloc again
0x10 0 1
totals: 99
"""

DISASSEMBLY = """
/bin/program:     file format elf64-x86-64

0000000000000010 <Alloc>:
      10:\tlock xadd %eax,(%rdi)
      14:\txchg   %ax,%ax
      16:\txchg   %al,(%rdi)
      18:\txchg   %rax,%rbx
      20:\tlock cmpxchg %ecx,0x8(%rdi)
      24:\tcall   900 <block>
      28:\tmov    0x8(%rdi),%rax
"""

# Writes profiles with a given number of instructions per pair, and a given
# number of executions of the locked instruction at 0x10.
VALGRIND = """
    for argument in "$@"; do
      case $argument in
        --callgrind-out-file=*) out=${{argument#*=}} ;;
        --bench_operations=*) pairs=${{argument#*=}} ;;
      esac
    done
    unlocked={unlocked} locked={locked}
    case "$*" in *" bench run {slow} "*) unlocked={slow_unlocked} locked={slow_locked} ;; esac
    {{
      echo "ob=(1) $0"
      echo "0x14 0 $((1000 + pairs * unlocked))"
      echo "0x10 0 $((7 + pairs * locked))"
    }} >"$out"
    """
OBJDUMP = r"""
    printf '  10:\tlock incl (%%rax)\n  14:\tincl (%%rax)\n'
    """


class ParseTest(unittest.TestCase):
    def test_adds_up_what_each_instruction_ran_without_what_it_called(self):
        self.assertEqual(hot_gate.executions_of(PROFILE), {
            ("/bin/program", 0x10): 6, ("/bin/program", 0x14): 7, ("/bin/program", 0x20): 5,
            ("/lib/libc.so.6", 0x900): 5, ("/lib/libc.so.6", 0x8fe): 3})

    def test_knows_what_is_locked(self):
        self.assertEqual(hot_gate.locked_in(DISASSEMBLY), {0x10, 0x16, 0x20})

    def test_a_pair_is_the_difference_of_two_runs(self):
        short = {("p", 1): 100, ("p", 2): 10, ("q", 1): 7}
        long = {("p", 1): 160, ("p", 2): 40, ("q", 1): 7, ("p", 3): 20}
        asked = []

        def locked_of(name):
            asked.append(name)
            return {2, 3}

        self.assertEqual(hot_gate.per_pair(short, long, 10, locked_of),
                         {"instructions": 11.0, "locked": 5.0})
        self.assertEqual(asked, ["p"])  # q did not run more


class CompareTest(unittest.TestCase):
    BASELINE = {"a pair": {"instructions": 100.0, "locked": 2.0}}

    def compare(self, instructions, locked):
        return hot_gate.compare({"a pair": {"instructions": instructions, "locked": locked}},
                                self.BASELINE)

    def test_three_percent_more_is_allowed(self):
        self.assertEqual(self.compare(103.0, 2.0), ([], []))
        self.assertEqual(self.compare(103.1, 2.0)[0],
                         ["a pair: from 100.0 to 103.1 instructions a pair"])

    def test_no_locked_instruction_more_is_allowed(self):
        self.assertEqual(self.compare(100.0, 2.04), ([], []))
        self.assertEqual(self.compare(100.0, 3.0)[0],
                         ["a pair: from 2.0 to 3.0 locked instructions a pair"])

    def test_what_is_better_is_told(self):
        self.assertEqual(self.compare(50.0, 1.0),
                         ([], ["a pair: from 100.0 to 50.0 instructions a pair",
                               "a pair: from 2.0 to 1.0 locked instructions a pair"]))

    def test_what_only_one_side_has_is_refused(self):
        worse, _ = hot_gate.compare({"b pair": {"instructions": 1.0, "locked": 0.0}},
                                    self.BASELINE)
        self.assertEqual(worse, ["a pair: in the baseline, but not counted",
                                 "b pair: not in the baseline"])


class RunTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.baseline = self.folder / "baseline.json"
        self.program("build/bin/strata", "")
        self.program("bin/g++", "echo 12.2.0")
        self.program("bin/objdump", OBJDUMP)
        self.counting()
        (self.folder / "build" / "CMakeCache.txt").write_text(
            f"CMAKE_CXX_COMPILER:FILEPATH={self.folder}/bin/g++\n")

    def program(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + textwrap.dedent(text))
        path.chmod(0o755)

    def counting(self, slow="nothing", unlocked=198, locked=2):
        """The counts of valgrind from now on: 200 instructions, 2 of them locked."""
        self.program("bin/valgrind", VALGRIND.format(
            unlocked=198, locked=2, slow=slow, slow_unlocked=unlocked, slow_locked=locked))

    def gate(self, *arguments):
        return subprocess.run(
            [str(SCRIPT), "--baseline", str(self.baseline), *arguments,
             str(self.folder / "build" / "bin" / "strata")],
            env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    def test_what_it_writes_it_accepts(self):
        self.assertEqual(self.gate("--update").returncode, 0)
        written = json.loads(self.baseline.read_text())
        self.assertEqual(written["compiler"], "g++ 12")
        self.assertEqual(written["pairs"]["auto_growth pair"],
                         {"instructions": 200.0, "locked": 2.0})
        done = self.gate()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("c:auto_growth training: 200.0 instructions a pair, 2.0 locked",
                      done.stdout)

    def test_refuses_more_instructions_and_names_the_workload(self):
        self.gate("--update")
        self.counting("bfc training", unlocked=205)
        done = self.gate()
        self.assertEqual(done.returncode, 1)
        self.assertIn("worse: bfc training: from 200.0 to 207.0 instructions a pair", done.stdout)
        self.assertEqual(done.stdout.count("worse:"), 1)

    def test_refuses_another_lock_and_names_the_workload(self):
        self.gate("--update")
        self.counting("auto_growth random_1000", unlocked=197, locked=3)
        done = self.gate()
        self.assertEqual(done.returncode, 1)
        self.assertIn("worse: auto_growth random_1000: from 2.0 to 3.0 locked instructions",
                      done.stdout)

    def test_another_compiler_is_not_compared(self):
        self.gate("--update")
        self.program("bin/g++", "echo 13")
        self.counting("bfc pair", unlocked=900)
        done = self.gate()
        self.assertEqual(done.returncode, 0)
        self.assertIn("the baseline is of g++ 12, the program of g++ 13", done.stdout)

    def test_where_no_thread_can_own_a_lock_that_is_not_compared(self):
        self.gate("--update")
        before = self.baseline.read_text()
        self.counting("auto_growth pair", unlocked=199)
        with open(self.folder / "bin" / "valgrind", "a", encoding="ascii") as valgrind:
            valgrind.write('case "$*" in *=biased*) echo "so that no thread can own a lock" ;; esac\n')
        done = self.gate()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("auto_growth pair owned: not counted", done.stdout)
        self.assertIn("auto_growth pair: 201.0 instructions", done.stdout)
        done = self.gate("--update")
        self.assertEqual(done.returncode, 2)
        self.assertIn("that a thread can own", done.stderr)
        self.assertEqual(self.baseline.read_text(), before)

    def test_says_what_it_could_not_run(self):
        self.gate("--update")
        self.program("bin/valgrind", "echo no memory\nexit 3")
        done = self.gate()
        self.assertEqual(done.returncode, 2)
        self.assertIn("exit code 3: no memory", done.stderr)

    def test_the_baseline_of_the_tree_has_every_pair(self):
        baseline = json.loads((SCRIPT.parent / "hot_gate.json").read_text())
        names = {f"{allocator} {workload}"
                 for allocator, workloads in hot_gate.SERVED for workload in workloads}
        self.assertEqual(set(baseline["pairs"]), names)


if __name__ == "__main__":
    unittest.main()
