"""Runs a program of this folder with Strata in the place of PyTorch's allocator.

usage: plugged.py LIBRARY PROGRAM RESULT

LIBRARY is a libstrata.so; STRATA_OPTIONS configures it. PROGRAM is the name of a module here with a
function main(), or of a case of plugged_cases.py. RESULT is a JSON file with Strata's bytes, or
with the `fault` of a case that does not hold.
"""

import ctypes
import importlib
import json
import sys

import plugged_cases
import torch


class Strata:
    """The library behind PyTorch's pluggable allocator."""

    def __init__(self, path):
        self.path = path
        self.library = ctypes.CDLL(path)
        self.library.strata_torch_facade.restype = ctypes.c_void_p
        self.library.strata_last_error.restype = ctypes.c_char_p

    def plug(self, allocate):
        """An allocator for PyTorch."""
        made = torch.cuda.memory.CUDAPluggableAllocator(self.path, allocate, "strata_torch_free")
        return made.allocator()

    def replace_allocator(self):
        """Makes Strata the allocator of the process."""
        plug = torch.cuda.memory.CUDAPluggableAllocator(self.path, "strata_torch_malloc",
                                                        "strata_torch_free")
        for setter, name in (("set_record_stream_fn", "strata_torch_record_stream"),
                             ("set_reset_fn", "strata_torch_empty_cache"),
                             ("set_begin_allocate_to_pool", "strata_torch_begin_pool"),
                             ("set_end_allocate_to_pool_fn", "strata_torch_end_pool"),
                             ("set_release_pool", "strata_torch_release_pool")):
            function = ctypes.cast(getattr(self.library, name), ctypes.c_void_p)
            getattr(plug.allocator(), setter)(function.value)
        torch.cuda.memory.change_current_allocator(plug)

    def call(self, name, *arguments):
        """Calls a function of the C ABI; `arguments` are of types of ctypes."""
        facade = ctypes.c_void_p(self.library.strata_torch_facade())
        if not facade or getattr(self.library, name)(facade, *arguments) != 0:
            raise RuntimeError(self.library.strata_last_error().decode())

    def statistics(self):
        """The statistics of the first device."""
        buffer = ctypes.create_string_buffer(1 << 20)
        self.call("strata_stats_json", buffer, ctypes.c_size_t(len(buffer)), None)
        return json.loads(buffer.value)["device:0"]


def run(strata, name):
    """Runs a program or a case; returns its result."""
    if name not in plugged_cases.CASES:
        importlib.import_module(name).main()
    else:
        try:
            plugged_cases.CASES[name](strata)
        except AssertionError as error:
            return {"fault": str(error) or repr(error)}
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    statistics = strata.statistics()
    return {"reserved": statistics["peak_reserved_bytes"],
            "requests": statistics["allocations"],
            "total_requested": statistics["total_requested_bytes"],
            "at_end": statistics["reserved_bytes"], "device_at_end": total - free}


def main():
    """Runs the program of the command line."""
    path, name, result_path = sys.argv[1:]
    strata = Strata(path)
    if name not in plugged_cases.BESIDE_PYTORCH:
        strata.replace_allocator()
    result = run(strata, name)
    with open(result_path, "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
