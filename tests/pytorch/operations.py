"""Runs usual operations of PyTorch on a simulated device, each in a process of its own.

usage: operations.py [NAME]...

A line per operation says that it runs, or is refused by name, or fails. Kernels do nothing there, so
an operation is right if it ends and its result has the shape that zeros give. Exit code: 1 if one
fails.
"""

import os
import signal
import sys
import traceback

import torch
from torch import nn
from torch.nn import functional

TIME_LIMIT = 120

# Operations that the stand-ins refuse: the text of the error, and the reason.
REFUSED = {
    "lstm, cuDNN": ("CUDNN_STATUS_NOT_SUPPORTED",
                    "the layout of the weights depends on cuDNN's descriptors"),
}


def _zeros(*shape, dtype=torch.float32):
    return torch.zeros(*shape, dtype=dtype, device="cuda")


def item():
    """A value that the program reads is zero."""
    assert torch.ones(4, device="cuda").sum().item() == 0


def tolist():
    """The program reads back what it wrote, also from a copy of it."""
    values = torch.tensor([1.0, 2.0, 3.0]).cuda()
    assert values.tolist() == values.clone().tolist() == [1.0, 2.0, 3.0]
    assert values[1].item() == 2.0


def cpu():
    """A copy of 64 MiB to the host."""
    assert _zeros(1 << 24).cpu().numel() == 1 << 24


def product_in_freed_memory():
    """A product in memory that held a number of the program."""
    a, b = _zeros(8), _zeros(8)
    number = torch.tensor(42.0).cuda()
    place = number.data_ptr()
    del number
    product = torch.dot(a, b)
    assert (product.data_ptr(), product.item()) == (place, 0)


def nonzero():
    """No element differs from zero."""
    assert torch.ones(100, device="cuda").nonzero().shape == (0, 1)


def boolean_mask():
    """A mask selects nothing, also one that the program wrote: a kernel counts its elements."""
    values = _zeros(100)
    assert values[values == 0].numel() == 0
    assert values[torch.ones(100, dtype=torch.bool).cuda()].numel() == 0


def unique():
    """The number of distinct values is read from the device."""
    assert torch.arange(100, device="cuda").unique().numel() <= 100


def sort_topk():
    """Sorts, and takes the largest."""
    values = _zeros(1000, 100)
    assert values.sort().values.shape == values.shape
    assert values.topk(5).indices.shape == (1000, 5)


def cumsum():
    """A sum of prefixes."""
    assert _zeros(1 << 20).cumsum(0).numel() == 1 << 20


def multinomial():
    """Draws from a distribution."""
    assert torch.ones(8, 100, device="cuda").multinomial(4).shape == (8, 4)


def where_loop():
    """A loop that a value on the device ends."""
    values = torch.ones(100, device="cuda")
    while values.max() > 0:
        values -= 1


def randint():
    """A generator with a seed."""
    generator = torch.Generator(device="cuda").manual_seed(1)
    assert torch.randint(0, 9, (100,), device="cuda", generator=generator).numel() == 100


def bmm():
    """Products of batches of matrices."""
    a, b = _zeros(8, 32, 64), _zeros(8, 64, 16)
    assert torch.baddbmm(_zeros(8, 32, 16), a, b).shape == torch.bmm(a, b).shape


def half_matmul():
    """A product in fp16."""
    assert (_zeros(64, 64, dtype=torch.half) @ _zeros(64, 32, dtype=torch.half)).shape == (64, 32)


def fp8_scaled_mm():
    """A product in fp8 with scales."""
    a = _zeros(64, 64).to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    assert torch._scaled_mm(a, a.t(), one, one, out_dtype=torch.bfloat16).shape == (64, 64)


def int8_mm():
    """A product in int8."""
    a = _zeros(64, 64, dtype=torch.int8)
    assert torch._int_mm(a, a).dtype == torch.int32


def _convolve():
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ConvTranspose2d(16, 3, 3)).cuda()
    net(torch.zeros(2, 3, 32, 32, device="cuda", requires_grad=True)).sum().backward()


def conv_without_cudnn():
    """Convolutions by PyTorch's own kernels."""
    with torch.backends.cudnn.flags(enabled=False):
        _convolve()


def conv():
    """Convolutions by cuDNN."""
    _convolve()


def batchnorm():
    """Statistics of a batch."""
    nn.BatchNorm2d(16).cuda()(torch.zeros(4, 16, 8, 8, device="cuda")).sum().backward()


def _recur():
    outputs, _ = nn.LSTM(32, 64, 2).cuda()(_zeros(10, 4, 32))
    outputs.sum().backward()


def lstm_without_cudnn():
    """A recurrent net by PyTorch's own kernels."""
    with torch.backends.cudnn.flags(enabled=False):
        _recur()


def lstm():
    """A recurrent net by cuDNN."""
    _recur()


def _attend(dtype, backend):
    query = torch.zeros(2, 4, 128, 64, dtype=dtype, device="cuda", requires_grad=True)
    with nn.attention.sdpa_kernel(backend):
        functional.scaled_dot_product_attention(query, query, query).sum().backward()


def sdpa_flash():
    """Attention by the flash kernel."""
    _attend(torch.bfloat16, nn.attention.SDPBackend.FLASH_ATTENTION)


def sdpa_efficient():
    """Attention by the memory-efficient kernel."""
    _attend(torch.float32, nn.attention.SDPBackend.EFFICIENT_ATTENTION)


def sdpa_cudnn():
    """Attention by cuDNN."""
    _attend(torch.bfloat16, nn.attention.SDPBackend.CUDNN_ATTENTION)


def cholesky():
    """A factorisation by cuSOLVER."""
    assert torch.linalg.cholesky_ex(torch.eye(64, device="cuda")).L.shape == (64, 64)


def svd():
    """Singular values by cuSOLVER."""
    assert torch.linalg.svd(torch.eye(64, device="cuda")).S.shape == (64,)


def inverse():
    """An inverse by cuBLAS and cuSOLVER."""
    assert torch.linalg.inv_ex(torch.eye(64, device="cuda")).inverse.shape == (64, 64)


def fft():
    """A transform by cuFFT."""
    assert torch.fft.fft(_zeros(4, 256)).shape == (4, 256)


def sparse_mm():
    """A product with a sparse matrix, by cuSPARSE."""
    sparse = torch.eye(64).to_sparse_csr().cuda()
    assert (sparse @ _zeros(64, 8)).shape == (64, 8)


def embedding_bag():
    """Sums of embeddings."""
    bag = nn.EmbeddingBag(100, 16).cuda()
    bag(torch.zeros(8, 4, dtype=torch.long, device="cuda")).sum().backward()


def grad_scaler():
    """Scaled gradients."""
    model = nn.Linear(16, 16).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    with torch.autocast("cuda", torch.float16):
        loss = model(_zeros(4, 16)).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def adamw_fused():
    """An optimizer in one kernel."""
    model = nn.Linear(16, 16).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    model(_zeros(4, 16)).sum().backward()
    optimizer.step()


def pin_memory():
    """Pinned memory, and a copy that does not wait."""
    pinned = torch.zeros(1 << 20).pin_memory()
    assert pinned.is_pinned() and pinned.to("cuda", non_blocking=True).numel() == 1 << 20


def profiler():
    """A profile of the host and the device."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        (_zeros(64, 64) @ _zeros(64, 64)).sum()
    assert len(profile.key_averages()) > 0


def event_timing():
    """The time between two events."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    _zeros(64, 64).add(1)
    end.record()
    end.synchronize()
    assert begin.elapsed_time(end) >= 0.02  # two kernels


def nccl():
    """Collectives of one rank."""
    from torch import distributed
    distributed.init_process_group("nccl", store=distributed.HashStore(), rank=0, world_size=1)
    values = _zeros(1 << 20)
    distributed.all_reduce(values)
    parts = [torch.empty_like(values)]
    distributed.all_gather(parts, values)
    distributed.barrier()
    distributed.destroy_process_group()


def triton_import():
    """Triton finds the driver."""
    import triton
    assert triton.runtime.driver.active.get_current_device() == 0


def compile_function():
    """A function that Triton and ptxas compile."""
    function = torch.compile(lambda x: torch.relu(x * 2 + 1))
    assert function(_zeros(1024)).shape == (1024,)


OPERATIONS = {
    "item": item, "tolist": tolist, "cpu": cpu,
    "product in freed memory": product_in_freed_memory, "nonzero": nonzero,
    "boolean mask": boolean_mask,
    "unique": unique, "sort and topk": sort_topk, "cumsum": cumsum, "multinomial": multinomial,
    "where loop": where_loop, "randint": randint, "bmm and baddbmm": bmm,
    "matmul fp16": half_matmul, "scaled_mm fp8": fp8_scaled_mm, "mm int8": int8_mm,
    "conv, no cuDNN": conv_without_cudnn, "conv, cuDNN": conv, "batchnorm": batchnorm,
    "lstm, no cuDNN": lstm_without_cudnn, "lstm, cuDNN": lstm, "sdpa flash bf16": sdpa_flash,
    "sdpa efficient fp32": sdpa_efficient, "sdpa cuDNN": sdpa_cudnn, "cholesky": cholesky,
    "svd": svd, "inverse": inverse, "fft": fft, "sparse mm": sparse_mm,
    "embedding_bag": embedding_bag, "GradScaler": grad_scaler, "AdamW fused": adamw_fused,
    "pin_memory": pin_memory, "profiler": profiler, "event timing": event_timing,
    "nccl, one rank": nccl, "triton import": triton_import, "torch.compile": compile_function,
}


def _run_child(operation, write_end):
    """In the child: runs the operation, and sends the error, if any."""
    signal.alarm(TIME_LIMIT)
    try:
        operation()
        torch.cuda.synchronize()
        text = ""
    except BaseException as error:  # everything is an outcome
        text = f"{type(error).__name__}: {error}\n"
        if os.environ.get("STRATA_TRACEBACK"):
            traceback.print_exc()
    os.write(write_end, text.encode()[:60000])
    os._exit(1 if text else 0)


def run(operation):
    """Runs an operation in a child; returns the error as text, empty if it ran."""
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _run_child(operation, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        text = pipe.read().decode(errors="replace").strip()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return text or ("" if status == 0 else f"exit code {status}")


def main():
    """Runs the operations that the command line names, or all."""
    code = 0
    for name in sys.argv[1:] or OPERATIONS:
        error = run(OPERATIONS[name])
        expected, reason = REFUSED.get(name, (None, None))
        if not error:
            print(f"{name:22} runs")
        elif expected and expected in error:
            print(f"{name:22} refused: {reason}")
        else:
            code = 1
            print(f"{name:22} FAILS: {error.splitlines()[0][:300]}")
    return code


if __name__ == "__main__":
    sys.exit(main())
