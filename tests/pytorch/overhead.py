"""Measures the memory of a device that contexts and libraries take beside PyTorch's allocator.

usage: overhead.py RESULT

A second process with a context of its own reads the free memory before this process uses the
device. Then this process creates its context, launches a first kernel, calls cuBLAS, calls cuDNN,
and reads the free memory after each step. RESULT is a JSON file: the bytes of each step, without
the bytes that PyTorch's allocator reserved. Nothing else may use the device meanwhile.
"""

import json
import subprocess
import sys

import torch

OBSERVE = "--observe"


def free_bytes():
    """The free memory of the device, after all work."""
    torch.cuda.synchronize()
    return torch.cuda.mem_get_info()[0]


def observe():
    """Prints the free memory, and holds the context until the input ends."""
    print(free_bytes(), flush=True)
    sys.stdin.read()


def launch_kernel():
    """Launches a kernel of PyTorch."""
    torch.ones(1024, device="cuda").add_(1)


def call_cublas():
    """Multiplies two matrices."""
    matrix = torch.ones(256, 256, device="cuda")
    torch.mm(matrix, matrix)


def call_cudnn():
    """Convolves an image."""
    torch.nn.functional.conv2d(torch.ones(1, 8, 32, 32, device="cuda"),
                               torch.ones(8, 8, 3, 3, device="cuda"))


STEPS = (("context", torch.cuda.init), ("first kernel", launch_kernel), ("cuBLAS", call_cublas),
         ("cuDNN", call_cudnn))


def measure(free_before):
    """The bytes of each step."""
    sizes, before = {}, 0
    with torch.no_grad():
        for name, step in STEPS:
            step()
            # Waits for the device: in the first step, this creates the context.
            taken = free_before - free_bytes() - torch.cuda.memory_reserved()
            sizes[name] = taken - before
            before = taken
    return sizes


def main():
    """Runs the program of the command line."""
    # If this process is killed, the input of the observer ends, and so does the observer.
    with subprocess.Popen([sys.executable, __file__, OBSERVE], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as observer:
        sizes = measure(int(observer.stdout.readline()))
        observer.stdin.close()
    result = {"device": torch.cuda.get_device_name(), "release": torch.__version__,
              "total": torch.cuda.mem_get_info()[1], "bytes": sizes}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    if sys.argv[1:] == [OBSERVE]:
        observe()
    else:
        main()
