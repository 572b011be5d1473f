"""Tests of the places in Python at which values of the device are read.

usage: python_reads_test.py DRIVER [unittest arguments]

DRIVER is the path of the stand-in driver.
"""

import ctypes
import inspect
import os
import pathlib
import subprocess
import sys
import threading
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pytorch"))

from driver_report import host_reads  # noqa: E402

DRIVER = ""


def start(driver):
    """cuInit, and a context; returns the address of 4 MiB."""
    context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4 << 20)) == 0
    return pointer


def read(driver, pointer):
    """Reads four bytes; the line of the read."""
    value = ctypes.c_int()
    line = inspect.currentframe().f_lineno + 1
    assert driver.cuMemcpyDtoH_v2(ctypes.byref(value), pointer, ctypes.c_size_t(4)) == 0
    return f"{__file__}:{line}"


class Places(unittest.TestCase):
    """Each test is a process of its own: a driver starts once."""

    def run_child(self, name, options=""):
        """Runs one of the functions below in a process."""
        environment = os.environ | {"STRATA_SIM_DRIVER": f"memory=64MiB {options}"}
        done = subprocess.run([sys.executable, __file__, DRIVER, "--child", name], check=False,
                              env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_thread_that_holds_the_lock_is_at_its_line(self):
        """PyDLL keeps Python's lock."""
        self.run_child("with_lock")

    def test_the_main_thread_needs_no_lock(self):
        """CDLL releases Python's lock, as PyTorch does."""
        self.run_child("without_lock")

    def test_a_copy_that_runs_later_has_a_line(self):
        """It counts when the program waits for it."""
        self.run_child("later", "progress=lazy")

    def test_a_subinterpreter_may_exist(self):
        """PyGILState_Check is always true from then on."""
        self.run_child("after_subinterpreter")

    def test_another_thread_without_the_lock_has_no_place(self):
        """It counts all the same."""
        self.run_child("in_thread")

    def test_an_error_that_is_raised_stays(self):
        """The driver is called while Python raises an error, by a destructor."""
        self.run_child("in_destructor")


def with_lock():
    """Three reads, one of which is of written bytes."""
    driver = ctypes.PyDLL(DRIVER)
    pointer = start(driver)
    for _ in range(2):
        place = read(driver, pointer)
    value = ctypes.c_int(7)
    assert driver.cuMemcpyHtoD_v2(pointer, ctypes.byref(value), ctypes.c_size_t(4)) == 0
    read(driver, pointer)
    expect(driver, 3, 1, [f"2 of unknown bytes at {place}"])


def without_lock():
    """The same place."""
    driver = ctypes.CDLL(DRIVER)
    pointer = start(driver)
    for _ in range(3):
        place = read(driver, pointer)
    expect(driver, 3, 0, [f"3 of unknown bytes at {place}"])


def later():
    """A copy to pinned memory, and the line that waits for it."""
    driver = ctypes.CDLL(DRIVER)
    pointer = start(driver)
    host = ctypes.c_void_p()
    assert driver.cuMemHostAlloc(ctypes.byref(host), ctypes.c_size_t(4096), 0) == 0
    assert driver.cuMemcpyDtoHAsync_v2(host, pointer, ctypes.c_size_t(4), None) == 0
    assert host_reads(driver)["host_reads"] == 0
    line = inspect.currentframe().f_lineno + 1
    assert driver.cuStreamSynchronize(None) == 0
    expect(driver, 1, 0, [f"1 of unknown bytes at {__file__}:{line}"])


def after_subinterpreter():
    """As without_lock."""
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    interpreters.create()
    without_lock()


def in_thread():
    """Only the main thread runs calls for others."""
    driver = ctypes.CDLL(DRIVER)
    pointer = start(driver)

    def run():
        start(driver)
        read(driver, pointer)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    expect(driver, 1, 0, ["1 of unknown bytes without a line"])


def in_destructor():
    """A destructor that reads when an error leaves its function."""
    driver = ctypes.PyDLL(DRIVER)
    pointer = start(driver)

    class Reader:
        """Reads at its end."""

        def __del__(self):
            read(driver, pointer)

    def fail():
        reader = Reader()
        raise KeyError(id(reader))

    try:
        fail()
    except KeyError:
        pass
    else:
        raise AssertionError("no error")
    assert host_reads(driver)["host_reads"] == 1


def expect(driver, reads, written, places):
    """Compares the numbers of the driver."""
    found = host_reads(driver)
    expected = {"host_reads": reads, "written_host_reads": written, "host_read_places": places}
    assert found == expected, (found, expected)


if __name__ == "__main__":
    DRIVER = sys.argv.pop(1)
    if sys.argv[1:2] == ["--child"]:
        globals()[sys.argv[2]]()
    else:
        unittest.main()
