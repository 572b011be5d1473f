#!/usr/bin/env python3
"""Writes traces in the formats of other programs, and malformed ones, for the tests.

usage: make_snapshot.py FOLDER [--operations N]

It writes these files to FOLDER. Python's own pickle module writes the PyTorch snapshots.

  whole.pN.pickle   the complete history of two devices, in protocol N = 2 to 5
  cut.pN.pickle     likewise, with only the last third of the entries
  whole.csv         the operations of device 0 as an RMM log
  cut.csv           likewise, from the remaining entries of cut.pN.pickle
  umpire.old.log    the operations of device 0 in the log format of Umpire up to version 6
  umpire.new.log    likewise, in the format of later versions
  umpire.csv        likewise, as an RMM log without streams
  bad/NAME.pickle   malformed snapshots
  bad/NAME.error    the end of the error message for each of them

Equal arguments produce equal bytes.
"""

import argparse
import json
import pathlib
import pickle
import random
import struct

BASE = 0x7F0000000000
SEGMENT_BYTES = 20 << 20
STREAMS = (0, 0, 0, 0x55D0C0A0)


class Device:
    """A toy caching allocator, sufficient for consistent records."""

    def __init__(self, index, seed):
        self.index = index
        self.random = random.Random(seed)
        self.entries = []
        self.segments = []
        self.free = {}  # stream: [(address, size)]
        self.live = {}  # address: block
        self.pending = []  # blocks freed that wait for an event
        # As in PyTorch: frames are shared between stacks.
        frames = [
            {"filename": f"/model/layer_{i}.py", "line": i, "name": f"forward_{i}"}
            for i in range(20)
        ]
        self.stacks = [frames[i : i + 8] for i in range(12)]

    def record(self, action, **fields):
        """One entry, with the keys in PyTorch's order."""
        entry = {"action": action}
        entry.update(fields)
        entry["time_us"] = 1700000000000000 + 7 * len(self.entries)
        entry["compile_context"] = "N/A"
        entry["user_metadata"] = ""
        entry["frames"] = self.stacks[len(self.entries) % len(self.stacks)]
        self.entries.append(entry)

    def grow(self, stream, size):
        """A segment for a block of this size."""
        total = max(SEGMENT_BYTES, size)
        address = BASE + (self.index << 40) + sum(s["total_size"] + 4096 for s in self.segments)
        self.segments.append(
            {"address": address, "total_size": total, "stream": stream, "is_expandable": False}
        )
        self.record("segment_alloc", addr=address, size=total, stream=stream)
        self.free.setdefault(stream, []).append((address, total))

    def allocate(self):
        """First fit, with a split."""
        requested = int(2 ** (self.random.random() * 22)) + 1
        size = (requested + 511) // 512 * 512
        stream = self.random.choice(STREAMS)
        while True:
            holes = sorted(self.free.get(stream, []))
            hole = next((hole for hole in holes if hole[1] >= size), None)
            if hole is not None:
                break
            self.grow(stream, size)
        self.free[stream].remove(hole)
        if hole[1] > size:
            self.free[stream].append((hole[0] + size, hole[1] - size))
        self.live[hole[0]] = (requested, size, stream)
        self.record("alloc", addr=hole[0], size=requested, stream=stream)

    def release(self):
        """Frees a live block: at once, or after an event."""
        address = self.random.choice(sorted(self.live))
        requested, size, stream = self.live.pop(address)
        self.record("free_requested", addr=address, size=requested, stream=stream)
        if self.random.random() < 0.1:
            self.pending.append((address, requested, size, stream))
        else:
            self.complete((address, requested, size, stream))

    def complete(self, block):
        """Makes the memory of a block available to others."""
        address, requested, size, stream = block
        self.record("free_completed", addr=address, size=requested, stream=stream)
        holes = self.free[stream]
        holes.append((address, size))
        holes.sort()
        starts = {segment["address"] for segment in self.segments}
        merged = []
        for start, length in holes:
            if merged and sum(merged[-1]) == start and start not in starts:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((start, length))
        self.free[stream] = merged

    def run(self, operations):
        """Allocations and frees, with a failure among them."""
        for i in range(operations):
            if self.pending and self.random.random() < 0.2:
                self.complete(self.pending.pop(0))
            if not self.live or self.random.random() < 0.5 + 20 / (20 + i):
                self.allocate()
            else:
                self.release()
            if i == operations // 2:
                self.record("oom", device_free=12345, size=1 << 40, stream=0)
        self.record("snapshot", addr=0, size=0, stream=0)

    def segment_dicts(self):
        """The state at the end, in the format of `segments`."""
        waiting = {block[0]: block for block in self.pending}
        result = []
        for segment in sorted(self.segments, key=lambda segment: segment["address"]):
            end = segment["address"] + segment["total_size"]
            blocks = []
            parts = {address: size for holes in self.free.values() for address, size in holes}
            parts.update({address: block[1] for address, block in self.live.items()})
            parts.update({address: block[2] for address, block in waiting.items()})
            for address in sorted(a for a in parts if segment["address"] <= a < end):
                state, requested = "inactive", 0
                if address in self.live:
                    state, requested = "active_allocated", self.live[address][0]
                elif address in waiting:
                    state, requested = "active_pending_free", waiting[address][1]
                blocks.append(
                    {
                        "address": address,
                        "size": parts[address],
                        "requested_size": requested,
                        "state": state,
                        "frames": self.stacks[3] if state != "inactive" else [],
                    }
                )
            active = [block for block in blocks if block["state"] == "active_allocated"]
            result.append(
                {
                    "device": self.index,
                    "address": segment["address"],
                    "total_size": segment["total_size"],
                    "allocated_size": sum(block["size"] for block in active),
                    "active_size": sum(b["size"] for b in blocks if b["state"] != "inactive"),
                    "requested_size": sum(block["requested_size"] for block in active),
                    "stream": segment["stream"],
                    "segment_type": "large",
                    "segment_pool_id": (0, 0),
                    "is_expandable": segment["is_expandable"],
                    "frames": self.stacks[0],
                    "blocks": blocks,
                }
            )
        return result


def snapshot_of(devices, cut):
    """The dict that _dump_snapshot pickles; device 1 has no entries."""
    traces = [[] for _ in range(devices[-1].index + 1)]
    segments = []
    for device in devices:
        entries = device.entries
        traces[device.index] = entries[len(entries) * 2 // 3 :] if cut else entries
        segments += device.segment_dicts()
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": "",
            "max_split_size": 2**64 - 1,
            "garbage_collection_threshold": 0.5,
            "expandable_segments": False,
            "roundup_power2_divisions": {"1": 0, "2": 0},
        },
        "external_annotations": [{"name": "step", "stage": "START", "device": 0, "time_us": 1}],
    }


def rmm_log(device, cut, streams=True):
    """The operations of a device in the form of RMM, in the order to replay."""
    entries = device.entries
    if cut:
        entries = entries[len(entries) * 2 // 3 :]
    operations = {"alloc": "allocate", "free_requested": "free"}
    if not streams:
        known = [entry for entry in entries if entry["action"] in operations]
        entries = [dict(entry, stream=0) for entry in known]
    seen, before = set(), []
    for entry in entries:
        if entry["action"] in operations and entry["addr"] not in seen:
            seen.add(entry["addr"])
            if entry["action"] == "free_requested":
                before.append((entry["addr"], entry["size"], entry["stream"]))
    for address, (requested, _, stream) in device.live.items():
        if address not in seen:
            before.append((address, requested, stream))
    lines = ["Thread,Time,Action,Pointer,Size,Stream"]
    for address, size, stream in sorted(before):
        lines.append(f"1,0,allocate,{address:#x},{size},{stream}")
    for entry in entries:
        if entry["action"] == "oom":
            lines.append(f"1,0,allocate failure,(nil),{entry['size']},{entry['stream']}")
        elif entry["action"] in operations:
            name = operations[entry["action"]]
            lines.append(f"1,0,{name},{entry['addr']:#x},{entry['size']},{entry['stream']}")
    return "\n".join(lines) + "\n"


def umpire_log(device, is_new):
    """The operations of a device in a log of Umpire, with those of the host between."""
    lines = []

    def call(name, strings, numbers=None, tags=None, old=None, result=None):
        """One call; old: its name and payload in the old form."""
        time = 1700000000000000000 + len(lines)
        if is_new:
            record = {"category": "operation", "name": name, "numeric_args": numbers or {}}
            record.update({"string_args": strings, "tags": tags or {}, "timestamp": time})
            lines.append(json.dumps(record, separators=(",", ":")))
            return
        record = {"kind": "replay", "uid": 1, "timestamp": time, "event": old[0], "payload": old[1]}
        if result is not None:
            if old[0] != "makeMemoryResource":
                lines.append(json.dumps(record))
            record["result"] = result
        lines.append(json.dumps(record))

    def make_resource(name, reference):
        call(
            "make_memory_resource",
            {"allocator_ref": reference},
            tags={"allocator_name": name, "replay": "true"},
            old=("makeMemoryResource", {"name": name}),
            result=reference,
        )

    def make_allocator(name, reference, parent):
        payload = {"type": "QuickPool", "with_introspection": True}
        payload.update({"allocator_name": name, "args": [parent, 64, 16]})
        call(
            "make_allocator",
            {"allocator_ref": reference, "type": "QuickPool", "arg0": parent},
            tags={"allocator_name": name, "replay": "true"},
            old=("makeAllocator", payload),
            result={"allocator_ref": reference},
        )

    def allocate(reference, address, size):
        call(
            "allocate",
            {"allocator_ref": reference, "pointer": f"{address:#x}"},
            {"size": size},
            old=("allocate", {"allocator_ref": reference, "size": size}),
            result={"memory_ptr": f"{address:#x}"},
        )

    def deallocate(reference, address):
        payload = {"allocator_ref": reference, "memory_ptr": f"{address:#x}"}
        strings = {"allocator_ref": reference, "pointer": f"{address:#x}"}
        call("deallocate", strings, old=("deallocate", payload))

    make_resource("HOST", "0xa0")
    make_resource("DEVICE", "0xa1")
    make_allocator("pool", "0xb0", "DEVICE")
    make_allocator("safe pool", "0xb1", "pool")
    allocate("0xa0", BASE, 64)
    for record in device.entries:
        if record["action"] == "alloc":
            allocate("0xb1", record["addr"], record["size"])
        elif record["action"] == "free_requested":
            deallocate("0xb1", record["addr"])
    deallocate("0xa0", BASE)
    return "\n".join(["# A comment."] + lines) + "\n"


class Command:
    """Unpickled by Python, it would run a command."""

    def __reduce__(self):
        import os

        return os.system, ("echo executed",)


def entry(action="alloc", **fields):
    """An entry with usual fields, some replaced; None removes one."""
    result = {"action": action, "addr": BASE, "size": 512, "stream": 0}
    result.update(fields)
    return {key: value for key, value in result.items() if value is not None}


def segment(blocks, **fields):
    """A segment of device 0."""
    result = {"device": 0, "address": BASE, "total_size": 2 << 20, "stream": 0, "blocks": blocks}
    result.update(fields)
    return {key: value for key, value in result.items() if value is not None}


def block(**fields):
    """A live block."""
    result = {"address": BASE + 4096, "size": 512, "requested_size": 500}
    result.update({"state": "active_allocated", "frames": []})
    result.update(fields)
    return {key: value for key, value in result.items() if value is not None}


def history(*entries, segments=()):
    """A snapshot of one device, pickled."""
    return pickle.dumps({"segments": list(segments), "device_traces": [list(entries)]}, 4)


def bad_snapshots():
    """(name, content, end of the message) of each malformed snapshot."""
    good = history(entry())
    own_list, own_dict = [], {}
    own_list.append(own_list)
    own_dict["segments"] = own_dict
    first, second = [], []
    first.append(second)
    second.append(first)
    yield "truncated", good[:-9], "the file ends inside it"
    yield "truncated_before_stop", good[:-1], "the file ends before STOP"
    yield "header_only", b"\x80\x04", "the file ends before STOP"
    yield "protocol_alone", b"\x80", "PROTO (0x80): the file ends inside it"
    yield "protocol_6", b"\x80\x06" + good[2:], "PROTO (0x80): protocol 6; 2 to 5 are read"
    yield "protocol_0_inside", b"\x80\x04I1\n.", (
        "offset 2: INT (0x49): is of protocol 0; protocols 2 to 5 are read"
    )
    yield "unknown_opcode", b"\x80\x04\xff.", (
        "offset 2: opcode (0xff): pickle has no such opcode"
    )
    yield "reduce_os_system", pickle.dumps({"segments": Command()}, 4), (
        "'posix.system' reaches outside the file; a snapshot is plain data"
    )
    yield "reduce_os_system_protocol_2", pickle.dumps({"segments": Command()}, 2), (
        "GLOBAL (0x63): 'posix.system' reaches outside the file; a snapshot is plain data"
    )
    yield "bare_reduce", b"\x80\x04)R.", (
        "offset 3: REDUCE (0x52): reaches outside the file; a snapshot is plain data"
    )
    yield "build", b"\x80\x04}}b.", (
        "BUILD (0x62): reaches outside the file; a snapshot is plain data"
    )
    yield "persistent_id", b"\x80\x04Nq\x00Q.", (
        "BINPERSID (0x51): reaches outside the file; a snapshot is plain data"
    )
    yield "extension", b"\x80\x04\x82\x01.", (
        "EXT1 (0x82): reaches outside the file; a snapshot is plain data"
    )
    yield "set", pickle.dumps({"segments": {1}}, 4), (
        "EMPTY_SET (0x8f): has no place in a snapshot"
    )
    yield "list_in_itself", pickle.dumps(own_list, 4), (
        "APPEND (0x61): a container would hold itself"
    )
    yield "dict_in_itself", pickle.dumps(own_dict, 4), (
        "SETITEM (0x73): a container would hold itself"
    )
    yield "cycle_of_two", pickle.dumps(first, 2), (
        "adds to a container that another one holds: a cycle"
    )
    yield "memo_not_set", b"\x80\x04h\x05.", "BINGET (0x68): the memo has no entry 5"
    yield "memo_index_huge", b"\x80\x04Nr\xff\xff\xff\xff.", (
        "LONG_BINPUT (0x72): memo index 4294967295 is out of all proportion"
    )
    yield "empty_stack", b"\x80\x04.", "offset 2: STOP (0x2e): the stack is empty"
    yield "values_left", b"\x80\x04NN.", "STOP (0x2e): values are left on the stack"
    yield "no_mark", b"\x80\x04]Ne.", "APPENDS (0x65): there is no mark"
    yield "append_to_dict", b"\x80\x04}Na.", "APPEND (0x61): adds to a dict"
    yield "key_without_value", b"\x80\x04}(Nu.", "SETITEMS (0x75): a key without a value"
    yield "key_is_a_list", b"\x80\x04}]Ns.", "SETITEM (0x73): a key is a list"
    yield "long_of_negative_length", b"\x80\x04\x8b" + struct.pack("<i", -1) + b".", (
        "LONG4 (0x8b): the length is negative"
    )
    yield "text_longer_than_the_file", b"\x80\x04X" + struct.pack("<I", 1 << 20) + b"abc", (
        "BINUNICODE (0x58): the file ends inside it"
    )
    yield "text_of_exabytes", b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"abc", (
        "BINUNICODE8 (0x8d): a text of 1152921504606846976 bytes"
    )
    yield "data_after_stop", good + good, "more data after STOP"
    yield "a_list", pickle.dumps([1, 2], 4), "a memory snapshot is a dict, this is a list"
    yield "no_traces", pickle.dumps({"segments": []}, 4), "no device_traces"
    yield "no_segments", pickle.dumps({"device_traces": [[entry()]]}, 4), "no segments"
    yield "traces_are_a_text", pickle.dumps({"device_traces": "x"}, 4), (
        "device_traces is a text, not a list"
    )
    yield "no_entries", history(), (
        "no entries: the program did not call "
        "torch.cuda.memory._record_memory_history() before it allocated"
    )
    yield "entry_is_an_int", history(7), "entry 1: an int instead of a dict"
    yield "no_action", history(entry(action=None)), "entry 1: no action"
    yield "unknown_action", history(entry(), entry("teleport")), (
        "entry 2: unknown action 'teleport'"
    )
    yield "size_negative", history(entry(size=-512)), "entry 1: size is negative"
    yield "size_of_80_bits", history(entry(size=1 << 80)), "entry 1: size exceeds 64 bits"
    yield "size_is_a_float", history(entry(size=1.5)), "entry 1: size is a float, not an int"
    yield "no_size", history(entry(size=None)), "entry 1: no size"
    yield "address_negative", history(entry(addr=-4096)), "entry 1: addr is negative"
    yield "stream_is_a_text", history(entry(stream="default")), (
        "entry 1: stream is a text, not an int"
    )
    yield "allocated_twice", history(entry(), entry()), (
        "entry 2: allocate of 0x7f0000000000, which is live"
    )
    yield "freed_twice", history(entry(), entry("free_requested"), entry("free_requested")), (
        "entry 3: free of 0x7f0000000000, which is not live"
    )
    yield "sizes_overflow", history(entry(size=1 << 63), entry(addr=1, size=1 << 63)), (
        "entry 2: more than 2^64 bytes are live"
    )
    yield "bytes_at_null", history(entry(addr=0)), "entry 1: allocate of 512 bytes at (nil)"
    yield "segment_is_a_list", history(entry(), segments=[[]]), (
        "segment 1: a list instead of a dict"
    )
    yield "segment_without_device", history(entry(), segments=[segment([], device=None)]), (
        "segment 1: no device"
    )
    yield "segments_at_one_address", history(entry(), segments=[segment([]), segment([])]), (
        "segment 2: its address is that of another"
    )
    yield "block_of_unknown_state", history(entry(), segments=[segment([block(state="x")])]), (
        "segment 1: block 1: unknown state 'x'"
    )
    yield "block_of_negative_size", history(entry(), segments=[segment([block(size=-1)])]), (
        "segment 1: block 1: size is negative"
    )
    yield "block_beyond_64_bits", history(
        entry(), segments=[segment([block(size=(1 << 64) - 1)])]
    ), "segment 1: block 1: its end exceeds 64 bits"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--operations", type=int, default=1500)
    arguments = parser.parse_args()
    devices = [Device(0, 1), Device(2, 2)]
    devices[0].run(arguments.operations)
    devices[1].run(arguments.operations // 10)
    bad = arguments.folder / "bad"
    bad.mkdir(parents=True, exist_ok=True)
    for name, cut in (("whole", False), ("cut", True)):
        snapshot = snapshot_of(devices, cut)
        for protocol in range(2, 6):
            path = arguments.folder / f"{name}.p{protocol}.pickle"
            path.write_bytes(pickle.dumps(snapshot, protocol))
        (arguments.folder / f"{name}.csv").write_text(rmm_log(devices[0], cut))
    (arguments.folder / "umpire.csv").write_text(rmm_log(devices[0], False, streams=False))
    for name, is_new in (("old", False), ("new", True)):
        (arguments.folder / f"umpire.{name}.log").write_text(umpire_log(devices[0], is_new))
    for name, content, error in bad_snapshots():
        (bad / f"{name}.pickle").write_bytes(content)
        (bad / f"{name}.error").write_text(error + "\n")


if __name__ == "__main__":
    main()
