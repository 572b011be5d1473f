"""Cases for plugged.py: what programs ask of an allocator beside memory.

Each case receives the library. A wrong result raises an error. `recorded_stream` needs a device
with progress=lazy, `refused_request` one of 192 GiB.
"""

import ctypes

import torch
from torch import nn


def require(condition, text):
    """Ends the program unless the condition holds."""
    if not condition:
        raise AssertionError(f"not so: {text}")


def train(inputs):
    """One step of a small net."""
    model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)).cuda()
    model(inputs).square().mean().backward()


def recorded_stream(_):
    """A block that another stream uses is not reused before that work ends."""
    side = torch.cuda.Stream()
    for is_recorded in (False, True):
        block = torch.empty(1 << 22, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            block.mul_(2)
        if is_recorded:
            block.record_stream(side)
        address = block.data_ptr()
        del block
        after = torch.empty(1 << 22, device="cuda")
        require((after.data_ptr() != address) == is_recorded, "the recorded block waits")
        del after
        torch.cuda.synchronize()
    blocks = [torch.empty(1 << 22, device="cuda") for _ in range(2)]
    require(address in (block.data_ptr() for block in blocks), "the block is reused afterwards")


def announced_graph(strata):
    """A capture that the C ABI announces keeps its memory for the graph."""
    stream, pool = torch.cuda.Stream(), ctypes.c_int64(0)
    inputs = torch.zeros(1 << 22, device="cuda")
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    strata.call("strata_capture_begin", 0, ctypes.c_void_p(stream.cuda_stream),
                ctypes.byref(pool))
    with torch.cuda.graph(graph, stream=stream):
        result = inputs * 2 + 1
    strata.call("strata_capture_end", 0, pool, ctypes.c_void_p(graph.raw_cuda_graph()))
    graph.instantiate()
    for _ in range(3):
        graph.replay()
    address = result.data_ptr()
    del result
    blocks = [torch.empty(1 << 22, device="cuda") for _ in range(8)]
    require(address not in (block.data_ptr() for block in blocks), "the graph keeps its memory")
    torch.cuda.synchronize()
    graph.reset()
    strata.call("strata_graph_pool_remove", pool)


def hooked_graphs(strata):
    """PyTorch announces captures by its hooks; two graphs share a pool, which ends with them."""
    inputs = torch.zeros(1 << 22, device="cuda")
    before = strata.statistics()["reserved_bytes"]
    graphs, addresses, shared = [], [], None
    for _ in range(2):
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], pool=shared):
            result = inputs * 2 + 1
        shared = graphs[-1].pool()
        addresses.append(result.data_ptr())
        graphs[-1].replay()
    del result
    blocks = [torch.empty(1 << 22, device="cuda") for _ in range(8)]
    require(not {block.data_ptr() for block in blocks} & set(addresses), "graphs keep their memory")
    del blocks
    for graph in graphs:
        graph.reset()
    torch.cuda.empty_cache()
    require(strata.statistics()["reserved_bytes"] <= before, "the memory of the graphs goes back")


def mem_pool(strata):
    """Segments of a pool, and of a graph in it, come from Strata; no memory is PyTorch's error."""
    pool = torch.cuda.MemPool(strata.plug("strata_torch_pool_malloc"))
    with torch.cuda.use_mem_pool(pool):
        inputs = torch.zeros(64, 1024, device="cuda")
        train(inputs)
        try:
            torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            pass
        else:
            raise AssertionError("not so: a PiB is refused")
    before = strata.statistics()["in_use_bytes"]
    require(before > 0, "the pool has memory of Strata")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool.id):
        result = inputs.expand(4096, 64, 1024).contiguous()
    require(strata.statistics()["in_use_bytes"] >= before + result.nbytes, "the graph has too")
    for _ in range(3):
        graph.replay()
    require(torch.cuda.memory_stats()["num_ooms"] == 1, "PyTorch keeps its statistics")
    del result, inputs, graph, pool
    # PyTorch 2.11 allocates the workspace of cuBLAS in the pool, and holds it.
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    require(strata.statistics()["in_use_bytes"] == 0, "the pool gives its memory back")


def forked_loader(_):
    """Workers of a data loader, by fork, with pinned memory."""
    data = torch.utils.data.TensorDataset(torch.zeros(256, 1024))
    train(torch.zeros(64, 1024, device="cuda"))
    loader = torch.utils.data.DataLoader(data, 32, num_workers=2, pin_memory=True,
                                         multiprocessing_context="fork")
    for batch in loader:
        require(batch[0].is_pinned(), "the batch is pinned")
        train(batch[0].cuda(non_blocking=True))


def refused_request(strata):
    """A request that is too large raises an error with the numbers; training goes on."""
    inputs = torch.zeros(64, 1024, device="cuda")
    most = torch.empty(64 << 30, dtype=torch.uint8, device="cuda")
    before = strata.statistics()["reserved_bytes"]
    try:
        torch.empty(160 << 30, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        require("cannot allocate 163840.0 MiB" in str(error), f"the size is in: {error}")
    else:
        raise AssertionError("not so: all is refused")
    require(strata.statistics()["reserved_bytes"] == before, "nothing has changed")
    del most
    train(inputs)


CASES = {case.__name__: case
         for case in (recorded_stream, announced_graph, hooked_graphs, mem_pool, forked_loader,
                      refused_request)}
# PyTorch keeps its own allocator there.
BESIDE_PYTORCH = (mem_pool.__name__,)
