"""Runs a program of this folder with Strata in the place of PyTorch's allocator.

usage: plugged.py LIBRARY PROGRAM RESULT

LIBRARY is a libstrata.so that STRATA_OPTIONS configures. PROGRAM is the name of a module here with
a function main(), or a case of this file. RESULT is a JSON file: the outcome, and Strata's peaks.
"""

import ctypes
import importlib
import json
import sys

import torch
from torch import nn


class Strata:
    """The library, with the functions that the cases call."""

    def __init__(self, path):
        self.path = path
        self.library = ctypes.CDLL(path)
        self.library.strata_torch_facade.restype = ctypes.c_void_p
        self.library.strata_last_error.restype = ctypes.c_char_p
        self.library.strata_stats_json.argtypes = (ctypes.c_void_p, ctypes.c_char_p,
                                                   ctypes.c_size_t, ctypes.c_void_p)
        self.library.strata_capture_begin.argtypes = (ctypes.c_void_p, ctypes.c_int32,
                                                      ctypes.c_void_p, ctypes.c_void_p)
        self.library.strata_capture_end.argtypes = (ctypes.c_void_p, ctypes.c_int32,
                                                    ctypes.c_int64, ctypes.c_void_p)

    def call(self, name, *arguments):
        """Calls a function of the C ABI for the facade of PyTorch."""
        facade = self.library.strata_torch_facade()
        if not facade or getattr(self.library, name)(facade, *arguments) != 0:
            raise RuntimeError(self.library.strata_last_error().decode())

    def address(self, name):
        """The address of a function."""
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value

    def replace_allocator(self):
        """Makes Strata the allocator of the process."""
        plug = torch.cuda.memory.CUDAPluggableAllocator(self.path, "strata_torch_malloc",
                                                        "strata_torch_free")
        plug.allocator().set_record_stream_fn(self.address("strata_torch_record_stream"))
        plug.allocator().set_reset_fn(self.address("strata_torch_empty_cache"))
        torch.cuda.memory.change_current_allocator(plug)

    def statistics(self):
        """The statistics of the first device."""
        buffer = ctypes.create_string_buffer(1 << 20)
        self.call("strata_stats_json", buffer, len(buffer), None)
        return json.loads(buffer.value)


if __name__ == "__main__":
    s = Strata(sys.argv[1])
    s.replace_allocator()
    m = importlib.import_module(sys.argv[2])
    m.main()
    torch.cuda.synchronize()
    print(json.dumps(s.statistics(), indent=1))
