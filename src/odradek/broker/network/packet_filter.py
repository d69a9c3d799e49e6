"""Filters of the packets that the kernel takes for a socket: programs of classic BPF, which need no rights."""

import ctypes
from collections.abc import Sequence
from socket import SOL_SOCKET, socket
from struct import pack

LOAD_WORD, LOAD_BYTE, LOAD_LENGTH, TO_INDEX = 0x20, 0x30, 0x80, 0x07
SHIFT_RIGHT, AND, SUBTRACT_INDEX = 0x74, 0x54, 0x1C
JUMP, JUMP_IF_EQUAL, JUMP_IF_SET, RETURN = 0x05, 0x15, 0x45, 0x06
PASS, DROP = 0xFFFFFFFF, 0
_ATTACH, _DETACH = 26, 27  # SO_ATTACH_FILTER, SO_DETACH_FILTER
_TCP_HEADER_WORDS = 12  # in the upper half of the byte
Instruction = tuple[int, int, int, int]
"""Code, instructions to skip if true and if false, operand."""


def packed(program: Sequence[Instruction]) -> bytes:
    return b"".join(pack("=HBBI", *instruction) for instruction in program)


DROP_DATA = packed(
    [
        (LOAD_BYTE, 0, 0, _TCP_HEADER_WORDS),
        (AND, 0, 0, 0xF0),
        (SHIFT_RIGHT, 0, 0, 2),
        (TO_INDEX, 0, 0, 0),
        (LOAD_LENGTH, 0, 0, 0),
        (SUBTRACT_INDEX, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, 0),
        (RETURN, 0, 0, PASS),
        (RETURN, 0, 0, DROP),
    ]
)
"""Program that passes acknowledgements and the end of a connection, and drops what brings data."""


def attach(filtered: socket, program: bytes) -> None:
    """Put the program in the place of the socket's last one. OSError where the kernel lacks it."""
    held = ctypes.create_string_buffer(program, len(program))
    filtered.setsockopt(SOL_SOCKET, _ATTACH, pack("HL", len(program) // 8, ctypes.addressof(held)))


def detach(filtered: socket) -> None:
    filtered.setsockopt(SOL_SOCKET, _DETACH, 0)
