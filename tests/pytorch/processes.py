"""Runs programs with threads, child processes and sudden ends on a simulated device.

usage: processes.py [NAME]...

Each must end within a minute, and leave no file in /tmp and /dev/shm. Exit code: 1 if one fails.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

TIME_LIMIT = 120

PREAMBLE = "import os, signal, threading, torch\nfrom torch import nn\n"

# PyTorch's own thread runs the backward. It may release the state of the backward after
# `backward` has returned, and takes Python's lock for it (torch/autograd/graph.py keeps a Python
# object there). If Python is ending by then, the process aborts: "terminate called without an
# active exception". That thread runs its tasks in order, so a further backward without such an
# object waits for the release.
DRAIN = """
def drain():
    loss = torch.zeros(1, device="cuda", requires_grad=True).sum()
    torch.autograd.Variable._execution_engine.run_backward(
        (loss,), (torch.ones_like(loss),), False, False, (), allow_unreachable=True,
        accumulate_grad=True)
"""

TRAIN = DRAIN + """
def train(steps=3):
    model = nn.Linear(512, 512).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        model(torch.zeros(64, 512, device="cuda")).sum().backward()
        optimizer.step()
    torch.cuda.synchronize()
    drain()
"""

THREADS = """
threads = [threading.Thread(target=train) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

LOADER = """
train()
data = torch.utils.data.TensorDataset(torch.zeros(256, 512))
loader = torch.utils.data.DataLoader(data, 32, num_workers=2, pin_memory=True,
                                     multiprocessing_context="fork")
total = sum(batch[0].cuda(non_blocking=True).shape[0] for batch in loader)
assert total == 256
"""

FORK = """
train()
child = os.fork()
if child == 0:
    try:
        torch.zeros(1, device="cuda")
    except RuntimeError as error:
        os._exit(0 if "fork" in str(error) else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0
train()
"""

GRAPHS = DRAIN + """
def capture():
    model = nn.Linear(256, 256).cuda()
    batch = torch.zeros(32, 256, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        model(batch).sum().backward()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        model(batch).sum()
    for _ in range(3): graph.replay()
    torch.cuda.synchronize()
    drain()
torch.zeros(1, device="cuda")
threads = [threading.Thread(target=capture) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

# Name: the program, and the exit code that it must have.
PROGRAMS = {
    "threads": (TRAIN + THREADS, 0),
    "loader by fork": (TRAIN + LOADER, 0),
    "use after fork": (TRAIN + FORK, 0),
    "graphs in two threads": (GRAPHS, 0),
    "exception": (TRAIN + "train()\nraise SystemExit(7)", 7),
    "exit in a capture": (TRAIN + "train()\ngraph = torch.cuda.CUDAGraph()\n"
                          "with torch.cuda.graph(graph):\n    os._exit(5)", 5),
    "SIGKILL": (TRAIN + "train()\nos.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
}


def _files(scratch):
    """What a program may leave behind; other processes use these folders too."""
    # PyTorch keeps a cache of kernels there.
    names = {str(path) for path in pathlib.Path(scratch).iterdir()
             if not path.name.startswith("torchinductor_")}
    return names | {f"/dev/shm/{name}" for name in os.listdir("/dev/shm")
                    if "strata" in name or "torch" in name}


def run(program, code):
    """Returns a sentence about what is wrong, empty if nothing is."""
    with tempfile.TemporaryDirectory() as scratch:
        before = _files(scratch)
        # The errors of threads end a program like others.
        hook = "threading.excepthook = lambda args: (sys.excepthook(*args[:3]), os._exit(9))\n"
        try:
            done = subprocess.run([sys.executable, "-c", f"import sys\n{PREAMBLE}{hook}{program}"],
                                  env=os.environ | {"TMPDIR": scratch}, capture_output=True,
                                  text=True, check=False, timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            return "does not end"
        if done.returncode != code:
            return f"exit code {done.returncode}: {done.stderr.strip()[-600:]}"
        stray = _files(scratch) - before
        return f"leaves {', '.join(sorted(stray))}" if stray else ""


def main():
    """Runs the programs that the command line names, or all."""
    result = 0
    for name in sys.argv[1:] or PROGRAMS:
        wrong = run(*PROGRAMS[name])
        result |= bool(wrong)
        print(f"{name:22} {'FAILS: ' + wrong if wrong else 'ends as it should'}", flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
