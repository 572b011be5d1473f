"""Part `pytorch` of tools/gpu_check: programs of tests/pytorch on a GPU, beside the numbers of the
simulated device, and the memory that contexts and libraries take.
"""

import json
import pathlib
import tempfile

PROGRAMS = ("mlp", "transformer", "streams")
STEPS = ("context", "first kernel", "cuBLAS", "cuDNN")
SETTING = ("device", "release", "capability", "multiprocessors")
TIME_LIMIT = 90  # seconds, for one program
MIB = 1 << 20
# Prints the version of PyTorch, and whether it can use a GPU.
PROBE = """
import json, torch
print(json.dumps({"release": torch.__version__, "gpu": torch.cuda.is_available()}))
"""
# Plain segments, and workspaces of the default sizes. None removes a variable.
ENVIRONMENT = {"PYTORCH_ALLOC_CONF": "expandable_segments:False", "PYTORCH_CUDA_ALLOC_CONF": None,
               "PYTORCH_NO_CUDA_MEMORY_CACHING": None, "CUBLAS_WORKSPACE_CONFIG": None,
               "CUBLASLT_WORKSPACE_SIZE": None, "TORCH_CUBLASLT_UNIFIED_WORKSPACE": None}


def find_programs(here):
    """The folder of the programs: in a bundle, or in the tree."""
    return next(folder for folder in (here / "pytorch", here.parent / "tests/pytorch")
                if (folder / "record.py").exists())


def find_simulated(here):
    """The folder of the simulated numbers in a bundle; None if there is none."""
    folder = here / "pytorch" / "simulated"
    return folder if folder.is_dir() else None


def read_json(path):
    """The content of a file; None if it is not there, or is cut."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


# ---- comparison --------------------------------------------------------------

def public_release(numbers):
    """The version without the version of CUDA."""
    return numbers.get("release", "?").partition("+")[0]


def why_not_compared(simulated, real):
    """The reason why two results cannot be compared; None if they can."""
    if simulated is None:
        return "there are no simulated numbers"
    if simulated["outcome"] != "ran":
        return f'on the simulated device: {simulated["outcome"]}'
    unlike = [f"{name} {value(simulated)}" for name, value in (
        ("PyTorch", public_release),
        ("compute capability", lambda numbers: numbers.get("capability", "?")),
        ("workspaces", lambda numbers: numbers.get("workspaces", "?")))
              if value(simulated) != value(real)]
    return "the simulated numbers are of " + ", ".join(unlike) if unlike else None


def difference(simulated, real):
    """The differences, GPU minus simulated device, in words; `none` if there is none."""
    named = [f"{name} {real[name] - simulated[name]:+}" for name in ("reserved", "allocations")
             if real[name] != simulated[name]]
    if not named:
        return "none"
    counts = [numbers.get("multiprocessors") for numbers in (simulated, real)]
    if counts[0] != counts[1]:
        named.append(f"multiprocessors {counts[1]} instead of {counts[0]}")
    return ", ".join(named)


def row_of(program, simulated, real, why):
    """A row of the report. `real` is None if the program failed for the reason `why`."""
    row = {"program": program, "simulated": simulated, "real": real}
    if real is None:
        return dict(row, difference=f"failed: {why}")
    reason = why_not_compared(simulated, real)
    if reason is not None:
        return dict(row, difference=f"not compared: {reason}",
                    simulated=simulated if simulated and simulated["outcome"] == "ran" else None)
    return dict(row, difference=difference(simulated, real))


# ---- running -----------------------------------------------------------------

def run_program(python, arguments):
    """(the result that a program wrote, None) or (None, the reason why there is none)"""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "result.json"
        _, _, why = python([*arguments, str(path)], ENVIRONMENT, TIME_LIMIT)
        # A program of PyTorch may abort at its end, after it has written the result.
        result = read_json(path)
    if result is None:
        return None, why
    if result.get("outcome", "ran") != "ran":
        return None, f'{result["outcome"]}: {result["message"]}'
    return result, None


def measure(python, programs, simulated):
    """The results of the part. `python` runs Python with (arguments, environment, time limit), and
    returns (exit code, output, description of the end); the code is None if no time was left.

    The result has a `skipped` if PyTorch is not there, and an `error` if a program failed."""
    code, output, why = python(["-c", PROBE], ENVIRONMENT, TIME_LIMIT)
    if code is None:
        return {"error": why}
    if code != 0:
        return {"skipped": f"PyTorch cannot be imported: {why}"}
    probe = json.loads(output.splitlines()[-1])
    if not probe["gpu"]:
        return {"skipped": f'PyTorch {probe["release"]} finds no GPU'}
    result = {"release": probe["release"], "rows": [], "overhead": None}
    for program in PROGRAMS:
        print(f"gpu_check: PyTorch: {program}", flush=True)
        real, why = run_program(python, [str(programs / "record.py"), program])
        kept = read_json(simulated / f"{program}_plain.json") if simulated else None
        row = row_of(program, kept, real, why)
        result["rows"].append(row)
        print(f'gpu_check: PyTorch: {program}: difference: {row["difference"]}', flush=True)
        if real is None:
            result.setdefault("error", f"{program}: {why}")
    print("gpu_check: PyTorch: overhead", flush=True)
    result["overhead"], why = run_program(python, [str(programs / "overhead.py")])
    if why is not None:
        result.setdefault("error", f"overhead: {why}")
    return result


# ---- the report --------------------------------------------------------------

def numbers_of(numbers):
    """The cells of one device: bytes reserved, allocations."""
    return ("-", "-") if numbers is None else (numbers["reserved"], numbers["allocations"])


def mib(size):
    """Bytes in MiB, without a fraction if there is none."""
    return f"{size / MIB:.1f}".replace(".0", "")


def overhead_row(overhead, driver):
    """A row of the table in docs/simulated_pytorch.md, without its source."""
    sizes = [overhead["bytes"][step] for step in STEPS]
    return (overhead["device"], driver, overhead["release"], mib(overhead["total"]),
            *map(mib, sizes), mib(sum(sizes)))


def render(result, table):
    """The section of the report. `table` makes a table of a header and rows."""
    if "skipped" in result:
        return f'Skipped: {result["skipped"]}\n'
    parts = [f'Failed: {result["error"]}\n'] if "error" in result else []
    rows = result.get("rows", [])
    if rows:
        parts.append(f'PyTorch {result["release"]}, plain segments: the most bytes that its '
                     "allocator reserved, and its device allocations.\n")
        parts.append(table(("numbers", *SETTING), [
            (title, *(numbers.get(key, "?") for key in SETTING))
            for device, title in (("simulated", "simulated"), ("real", "GPU"))
            for numbers in [row[device] for row in rows if row[device]][:1]]))
        parts.append(table(
            ("program", "simulated: reserved", "allocations", "GPU: reserved", "allocations",
             "difference"),
            [(row["program"], *numbers_of(row["simulated"]), *numbers_of(row["real"]),
              row["difference"]) for row in rows]))
    if result.get("overhead"):
        parts.append("Memory of the device that is in use beside PyTorch's allocator, in MiB, by "
                     "the step that took it. The simulated device takes none.\n")
        parts.append(table(("GPU", "driver", "PyTorch", "memory shown", *STEPS, "together"),
                           [overhead_row(result["overhead"], result["driver"])]))
    return "\n".join(parts)
