"""Addresses whose connection attempts the kernel drops before they are accepted, each for a limited time.

A flood of connections fills the queue of the listening socket, in which those of others wait too: held or refused one
by one, its connections would still be accepted one by one. A filter on the socket (classic BPF, which needs no rights)
drops the first packet of an attempt, and the client's system tries again later. Connections that exist are not touched.
Used by one acceptor.
"""

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, ip_address
from struct import unpack

from odradek.base.logs import get_logger
from odradek.broker.network.packet_filter import (
    DROP,
    JUMP,
    JUMP_IF_EQUAL,
    JUMP_IF_SET,
    LOAD_BYTE,
    LOAD_WORD,
    PASS,
    RETURN,
    SHIFT_RIGHT,
    Instruction,
    attach,
    detach,
    packed,
)

log = get_logger(__name__)

ADDRESSES_MAX = 100
_IP_HEADER = 0xFFF00000  # SKF_NET_OFF; offsets without it begin at the TCP header
_TCP_FLAGS, _SYN = 13, 0x02
_SOURCE_4, _SOURCE_6 = 12, 8


def drop_attempts_of(addresses: Iterable[str]) -> bytes:
    """A program that drops the SYN packets of these addresses, and passes every other packet."""
    known = [ip_address(address) for address in addresses]
    older: list[Instruction] = [(LOAD_WORD, 0, 0, _IP_HEADER + _SOURCE_4)]
    newer: list[Instruction] = []
    for address in known:
        if isinstance(address, IPv4Address):
            older += [(JUMP_IF_EQUAL, 0, 1, int(address)), (RETURN, 0, 0, DROP)]
            continue
        for number, word in enumerate(unpack(">4I", address.packed)):
            newer += [
                (LOAD_WORD, 0, 0, _IP_HEADER + _SOURCE_6 + 4 * number),
                (JUMP_IF_EQUAL, 0, 7 - 2 * number, word),
            ]
        newer.append((RETURN, 0, 0, DROP))
    older.append((RETURN, 0, 0, PASS))
    newer.append((RETURN, 0, 0, PASS))
    program: list[Instruction] = [
        (LOAD_BYTE, 0, 0, _TCP_FLAGS),
        (JUMP_IF_SET, 1, 0, _SYN),
        (RETURN, 0, 0, PASS),
        (LOAD_BYTE, 0, 0, _IP_HEADER),
        (SHIFT_RIGHT, 0, 0, 4),
        (JUMP_IF_EQUAL, 1, 0, 4),
        (JUMP, 0, 0, len(older)),
        *older,
        *newer,
    ]
    return packed(program)


class AddressFilter:
    def __init__(self, listening: socket.socket) -> None:
        self._socket = listening
        self._until: dict[str, float] = {}
        self._is_usable = True

    def drop(self, address: str, until: float) -> None:
        """Drop the attempts of an address until this time. If the kernel can't do that, nothing changes."""
        if not self._is_usable or address in self._until or len(self._until) >= ADDRESSES_MAX:
            return
        self._until[address] = until
        self._attach()

    def end(self, now: float) -> None:
        """Allow attempts of addresses whose time is over."""
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
                detach(self._socket)
                return
            attach(self._socket, drop_attempts_of(self._until))
        except (OSError, ValueError) as error:  # a kernel that lacks it, or an address with a zone
            self._is_usable = False
            self._until.clear()
            log.warning("connection attempts can't be dropped by the kernel", detail=str(error))
