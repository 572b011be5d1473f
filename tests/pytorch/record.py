"""Runs a program of this folder, and writes the actions of PyTorch's allocator.

usage: record.py PROGRAM RESULT [SNAPSHOT]

PROGRAM is the name of a module here with a function main(). RESULT is a JSON file: the outcome,
PyTorch's own numbers, the time, the properties of PyTorch and of the device on which the numbers
depend, and the copies to the host that the stand-in driver counted. SNAPSHOT is a file for `strata
replay`; without it nothing is recorded.
"""

import importlib
import json
import os
import resource
import sys
import time

import torch
from driver_report import host_reads

MOST_ENTRIES = 10_000_000
# Variables that set the sizes of workspaces, which PyTorch allocates for cuBLAS.
WORKSPACES = ("CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE",
              "TORCH_CUBLASLT_UNIFIED_WORKSPACE")


def setting():
    """The properties on which the numbers of a program depend."""
    device = torch.cuda.get_device_properties()
    return {"release": torch.__version__, "device": device.name,
            "capability": f"{device.major}.{device.minor}",
            "multiprocessors": device.multi_processor_count,
            "workspaces": {name: os.environ[name] for name in WORKSPACES if name in os.environ}}


def main():
    """Runs the program of the command line."""
    name, result_path, *rest = sys.argv[1:]
    program = importlib.import_module(name)
    if rest:
        torch.cuda.memory._record_memory_history(context=None, max_entries=MOST_ENTRIES)
    begin = time.monotonic()
    result = {"outcome": "ran", "message": ""}
    try:
        program.main()
        torch.cuda.synchronize()
    except torch.cuda.OutOfMemoryError as error:
        result = {"outcome": "out of memory", "message": str(error)}
    stats = torch.cuda.memory_stats()
    result.update(
        reserved=torch.cuda.max_memory_reserved(),
        allocations=stats["num_device_alloc"],
        retries=stats["num_alloc_retries"],
        requested=stats["requested_bytes.all.peak"],
        requests=stats["allocation.all.allocated"],
        total_requested=stats["requested_bytes.all.allocated"],
        seconds=round(time.monotonic() - begin, 2),
        host_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
        **setting(), **host_reads())
    if rest:
        torch.cuda.memory._dump_snapshot(rest[0])
    with open(result_path, "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
