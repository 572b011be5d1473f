"""Runs CuPy on a simulated device, and compares its numbers with the driver's.

usage: cupy_client.py

A line is `NAME NUMBER NUMBER`: bytes as CuPy counts them, and as the driver does; or the name of a
case and its outcome. The device must be one with `data=backed`, for the copies. The exit code is 1
if two numbers differ, or if a case has another outcome than its table says.
"""

import gc
import sys

import cupy
import cupyx.scipy.sparse
import numpy
from cupy.cuda import runtime

MEBIBYTE = 1 << 20
KERNEL = 'extern "C" __global__ void f(float* x) { x[0] = 1; }'
differences = []


def driver_bytes():
    """Bytes of the device that are in use."""
    free, total = runtime.memGetInfo()
    return total - free


def compare(name, counted, driver):
    """Prints two numbers that must be equal."""
    print(f"{name:24} {counted:12} {driver:12}", flush=True)
    if counted != driver:
        differences.append(name)


def check_pool():
    """CuPy's pool takes each size from the device as it is, and returns idle chunks."""
    pool = cupy.get_default_memory_pool()
    first = cupy.empty(64 * MEBIBYTE, cupy.uint8)
    second = cupy.empty(6 * MEBIBYTE, cupy.uint8)
    compare("pool", pool.total_bytes(), driver_bytes())
    compare("pool, used", pool.used_bytes(), driver_bytes())
    del first
    compare("pool, one is freed", pool.used_bytes(), second.nbytes)
    compare("pool, one is idle", pool.total_bytes(), driver_bytes())
    pool.free_all_blocks()
    compare("pool, idle is released", pool.total_bytes(), driver_bytes())
    with cupy.cuda.Stream(non_blocking=True):
        third = cupy.empty(6 * MEBIBYTE, cupy.uint8)
    compare("pool of a stream", pool.total_bytes(), driver_bytes())
    del second, third
    pool.free_all_blocks()
    compare("pool, all is released", pool.total_bytes(), driver_bytes())


def check_async_pool():
    """The pool of the driver, as CuPy reports it."""
    pool = cupy.cuda.MemoryAsyncPool()
    with cupy.cuda.using_allocator(pool.malloc):
        block = cupy.empty(40 * MEBIBYTE, cupy.uint8)
    compare("async, used", pool.used_bytes(), block.nbytes)
    compare("async, total", pool.total_bytes(), driver_bytes())
    del block
    pool.free_all_blocks()
    compare("async, all is released", pool.total_bytes(), driver_bytes())


def check_limits():
    """A refused request raises CuPy's error, and changes nothing."""
    pool = cupy.cuda.MemoryPool()
    kept = pool.malloc(2 * MEBIBYTE)
    refused = 0
    for limit, size in ((0, 1 << 40), (4 * MEBIBYTE, 8 * MEBIBYTE)):
        pool.set_limit(size=limit)
        try:
            pool.malloc(size)
        except cupy.cuda.memory.OutOfMemoryError:
            refused += 1
    compare("refused", refused, 2)
    compare("refused, pool", pool.total_bytes(), driver_bytes())
    del kept
    pool.free_all_blocks()


def check_copies():
    """The device holds the bytes of the host, from pageable and from pinned memory."""
    host = numpy.arange(MEBIBYTE, dtype=numpy.float32)
    pinned = cupyx.empty_pinned(MEBIBYTE, numpy.float32)
    pinned[:] = host
    stream = cupy.cuda.Stream(non_blocking=True)
    pageable, other = cupy.asarray(host), cupy.empty_like(host)
    other.set(pinned, stream=stream)
    stream.synchronize()
    for name, array in (("pageable", pageable), ("pinned", other)):
        compare(f"copy, {name}", int((array.get() != host).sum()), 0)
    between = cupy.empty_like(pageable)
    between.data.copy_from_device_async(pageable.data, host.nbytes)
    compare("copy, device", int((between.get() != host).sum()), 0)


def managed():
    """A pool of managed memory."""
    pool = cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
    block = pool.malloc(MEBIBYTE)
    attributes = runtime.pointerGetAttributes(block.ptr)
    assert attributes.type == runtime.memoryTypeManaged, attributes.type


def streams_and_events():
    """Events order streams and time them."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        begin.record()
        cupy.empty(1000).fill(1)
        end.record()
        cupy.cuda.Stream.null.wait_event(end)
    called = []
    stream.launch_host_func(called.append, 1)
    stream.synchronize()
    assert called == [1] and end.done
    assert cupy.cuda.get_elapsed_time(begin, end) >= 0


def graph():
    """A capture becomes a graph that is launched."""
    with cupy.cuda.Stream(non_blocking=True) as stream:
        values = cupy.empty(1000)
        stream.begin_capture()
        values *= 2
        assert stream.is_capturing()
        captured = stream.end_capture()
        captured.upload(stream)
        captured.launch(stream)
    stream.synchronize()


def raw_kernel():
    """NVRTC compiles to an empty program; the launch does nothing."""
    kernel = cupy.RawKernel(KERNEL, "f")
    kernel((1,), (1,), (cupy.zeros(4, cupy.float32),))


def array():
    """A matrix for the operations."""
    return cupy.zeros((8, 8))


def sparse():
    """A dense matrix becomes a sparse one without elements."""
    sparse_array = cupyx.scipy.sparse.csr_matrix(cupy.zeros((8, 8)))
    sparse_array.toarray()


def texture():
    """An array for a texture."""
    kind = runtime.cudaChannelFormatKindFloat
    cupy.cuda.texture.CUDAarray(cupy.cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, kind), 64)


# Name: the case, and the error that it must raise, or None.
CASES = {
    "managed": (managed, None),
    "streams and events": (streams_and_events, None),
    "graph": (graph, None),
    "raw kernel": (raw_kernel, None),
    "elementwise": (lambda: array() * 2 + 1, None),
    "fused": (lambda: cupy.fuse(lambda x: x * 2 + 1)(array()), None),
    "reduction": (lambda: array().sum(axis=1).get(), None),
    "cumsum": (lambda: cupy.cumsum(array()), None),
    "cuBLAS, product": (lambda: array() @ array(), None),
    "cuBLAS, einsum": (lambda: cupy.einsum("ij,jk->ik", array(), array()), None),
    "cuSOLVER, Cholesky": (lambda: cupy.linalg.cholesky(array()), None),
    "cuSOLVER, SVD": (lambda: cupy.linalg.svd(array()), None),
    "cuSOLVER, inverse": (lambda: cupy.linalg.inv(array()), None),
    "cuSPARSE": (sparse, None),
    "cuFFT": (lambda: cupy.fft.fft2(array()), None),
    "cuRAND": (lambda: cupy.random.rand(10), None),
    "DLPack": (lambda: cupy.from_dlpack(array()), None),
    # Thrust is in a module of CuPy with a static runtime.
    "Thrust, sort": (lambda: cupy.sort(array()), "cudaErrorInvalidDevice"),
    "texture": (texture, "cudaErrorNotSupported"),
    "IPC": (lambda: runtime.ipcGetMemHandle(array().data.ptr), "cudaErrorNotSupported"),
}


def check_case(name):
    """Runs a case; prints whether it runs, or is refused, as its table says."""
    case, expected = CASES[name]
    try:
        case()
        outcome = "runs"
    except Exception as error:  # pylint: disable=broad-exception-caught
        outcome = f"{type(error).__name__}: {error}"
    good = outcome == "runs" if expected is None else expected in outcome
    print(f"{name:24} {outcome if expected is None or not good else f'refused: {expected}'}",
          flush=True)
    if not good:
        differences.append(name)


def main():
    """Runs all checks."""
    for check in (check_pool, check_async_pool, check_limits, check_copies):
        check()
    for name in CASES:
        check_case(name)
    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    if differences:
        print(f"not as expected: {', '.join(differences)}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
