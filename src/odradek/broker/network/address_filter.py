"""Addresses whose connection attempts the kernel drops before anybody accepts them, each for a while.

A flood of connections fills the queue of the listening socket, in which those of others wait too: held or refused one
by one, its connections would still be accepted one by one. A filter on the socket (classic BPF, which needs no rights)
drops the first packet of an attempt, and the client's system tries again later. Connections that exist are not touched.
Used by one acceptor.
"""

import ctypes
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, ip_address
from struct import pack, unpack

from odradek.base.logs import get_logger

log = get_logger(__name__)

ADDRESSES_MAX = 100
_ATTACH, _DETACH = 26, 27  # SO_ATTACH_FILTER, SO_DETACH_FILTER
_LOAD_WORD, _LOAD_BYTE, _SHIFT_RIGHT = 0x20, 0x30, 0x74
_JUMP, _JUMP_IF_EQUAL, _JUMP_IF_SET, _RETURN = 0x05, 0x15, 0x45, 0x06
_IP_HEADER = 0xFFF00000  # SKF_NET_OFF; offsets without it begin at the TCP header
_TCP_FLAGS, _SYN = 13, 0x02
_SOURCE_4, _SOURCE_6 = 12, 8
_PASS, _DROP = 0xFFFFFFFF, 0
_Instruction = tuple[int, int, int, int]
"""Code, instructions to skip if true and if false, operand."""


def drop_attempts_of(addresses: Iterable[str]) -> bytes:
    """A program that drops the SYN packets of these addresses, and passes every other packet."""
    known = [ip_address(address) for address in addresses]
    older: list[_Instruction] = [(_LOAD_WORD, 0, 0, _IP_HEADER + _SOURCE_4)]
    newer: list[_Instruction] = []
    for address in known:
        if isinstance(address, IPv4Address):
            older += [(_JUMP_IF_EQUAL, 0, 1, int(address)), (_RETURN, 0, 0, _DROP)]
            continue
        for number, word in enumerate(unpack(">4I", address.packed)):
            newer += [
                (_LOAD_WORD, 0, 0, _IP_HEADER + _SOURCE_6 + 4 * number),
                (_JUMP_IF_EQUAL, 0, 7 - 2 * number, word),
            ]
        newer.append((_RETURN, 0, 0, _DROP))
    older.append((_RETURN, 0, 0, _PASS))
    newer.append((_RETURN, 0, 0, _PASS))
    program: list[_Instruction] = [
        (_LOAD_BYTE, 0, 0, _TCP_FLAGS),
        (_JUMP_IF_SET, 1, 0, _SYN),
        (_RETURN, 0, 0, _PASS),
        (_LOAD_BYTE, 0, 0, _IP_HEADER),
        (_SHIFT_RIGHT, 0, 0, 4),
        (_JUMP_IF_EQUAL, 1, 0, 4),
        (_JUMP, 0, 0, len(older)),
        *older,
        *newer,
    ]
    return b"".join(pack("=HBBI", *instruction) for instruction in program)


class AddressFilter:
    def __init__(self, listening: socket.socket) -> None:
        self._socket = listening
        self._until: dict[str, float] = {}
        self._is_usable = True

    def drop(self, address: str, until: float) -> None:
        """Drop its attempts until this time. Where that can't be, nothing changes."""
        if not self._is_usable or address in self._until or len(self._until) >= ADDRESSES_MAX:
            return
        self._until[address] = until
        self._attach()

    def end(self, now: float) -> None:
        """Let those attempt again whose time is over."""
        over = [address for address, until in self._until.items() if until <= now]
        if over:
            for address in over:
                del self._until[address]
            self._attach()

    @property
    def next_end(self) -> float | None:
        return min(self._until.values(), default=None)

    def _attach(self) -> None:
        try:
            if not self._until:
                self._socket.setsockopt(socket.SOL_SOCKET, _DETACH, 0)
                return
            program = drop_attempts_of(self._until)
            held = ctypes.create_string_buffer(program, len(program))
            self._socket.setsockopt(socket.SOL_SOCKET, _ATTACH, pack("HL", len(program) // 8, ctypes.addressof(held)))
        except (OSError, ValueError) as error:  # a kernel that lacks it, or an address with a zone
            self._is_usable = False
            self._until.clear()
            log.warning("connection attempts can't be dropped by the kernel", detail=str(error))
