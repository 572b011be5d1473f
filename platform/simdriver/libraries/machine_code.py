"""Writes the x86-64 code of a function that stores constants and returns one.

A function that stands for a kernel also calls another function.

The calling convention is the System V one: six arguments in registers, the others on the stack.
"""

import dataclasses
import struct

# The numbers of rdi, rsi, rdx, rcx, r8 and r9.
REGISTERS = (7, 6, 2, 1, 8, 9)
FIRST_ON_STACK = 8  # behind the return address


@dataclasses.dataclass
class Store:
    """Stores through a pointer argument, if it is not null."""

    argument: int  # from 1
    offset: int
    bits: int  # 32 or 64
    value: int  # ignored for a handle
    is_handle: bool = False  # the address of zeros in the library


@dataclasses.dataclass
class Body:
    """A function: the stores, then the result."""

    stores: list = dataclasses.field(default_factory=list)
    result: int = 0
    text: str = None  # the result is the address of this text
    is_kernel: bool = False  # calls the function whose address is in the slot


def _load_argument(argument):
    """Code that brings a pointer argument into r11."""
    if argument <= len(REGISTERS):
        register = REGISTERS[argument - 1]
        return bytes([0x49 if register < 8 else 0x4D, 0x89, 0xC3 | (register & 7) << 3])
    offset = FIRST_ON_STACK + 8 * (argument - 1 - len(REGISTERS))
    return b"\x4c\x8b\x9c\x24" + struct.pack("<i", offset)


def _store(store, at, zeros):
    load = _load_argument(store.argument) + b"\x4d\x85\xdb"  # test r11, r11
    jump = 2
    begin = at + len(load) + jump
    if store.is_handle:
        # lea rax, [rip + …]; mov [r11 + offset], rax
        write = b"\x48\x8d\x05" + struct.pack("<i", zeros - (begin + 7))
        write += b"\x49\x89\x83" + struct.pack("<i", store.offset)
    elif store.bits == 64:
        # movabs rax, value; mov [r11 + offset], rax
        write = b"\x48\xb8" + struct.pack("<Q", store.value & (1 << 64) - 1)
        write += b"\x49\x89\x83" + struct.pack("<i", store.offset)
    else:
        # mov dword [r11 + offset], value
        write = b"\x41\xc7\x83" + struct.pack("<iI", store.offset, store.value & (1 << 32) - 1)
    return load + b"\x74" + bytes([len(write)]) + write


def _call(slot, at):
    """Code that calls the function at the address in `slot`, if it is not null."""
    # sub rsp, 8; call rax; add rsp, 8
    call = b"\x48\x83\xec\x08\xff\xd0\x48\x83\xc4\x08"
    # mov rax, [rip + …]; test rax, rax; jz
    load = b"\x48\x8b\x05" + struct.pack("<i", slot - (at + 7)) + b"\x48\x85\xc0"
    return load + b"\x74" + bytes([len(call)]) + call


def function_code(body, at, zeros, text_at, slot):
    """Returns the code of `body` at address `at`; the other arguments are addresses."""
    code = b""
    for store in body.stores:
        code += _store(store, at + len(code), zeros)
    if body.is_kernel:
        code += _call(slot, at + len(code))
    if body.text is not None:
        code += b"\x48\x8d\x05" + struct.pack("<i", text_at - (at + len(code) + 7))
    else:
        code += b"\xb8" + struct.pack("<I", body.result & (1 << 32) - 1)
    return code + b"\xc3"
