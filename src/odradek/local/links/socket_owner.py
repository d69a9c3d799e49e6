"""Process at the other end of a connection of this machine, as Linux tells it.

All brokers connect from 127.0.0.1; the process that owns the socket distinguishes them. The kernel is asked for the one
socket (sock_diag): the list of all, /proc/net/tcp, takes it a quarter of a second where 25,000 closed connections are
remembered, and the relay would carry nothing meanwhile. The list is read only if the kernel doesn't find the socket,
which is also its answer where it lacks sock_diag.
"""

import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ANY_STATE, _ANY_COOKIE = 0xFFFFFFFF, b"\xff" * 8
_INODE_AT = _HEADER.size + 68  # state, 48 bytes of addresses, expiry, two queues, user
_LOOPBACK = socket.inet_aton("127.0.0.1")


def owner(local_port: int, peer_port: int, pids: Iterable[tuple[int, int]]) -> int | None:
    """Return the broker, of the given ones with their processes, whose socket is bound to `peer_port` and connected to
    `local_port`; None if it is another process.
    """
    inode = asked(peer_port, local_port) or listed(peer_port, local_port)
    if inode is None:
        return None
    return next((broker for broker, pid in pids if _holds(pid, f"socket:[{inode}]")), None)


def asked(port: int, connected_to: int) -> int | None:
    """Ask the kernel for the inode of one socket of the loopback address."""
    ends = struct.pack(">HH16s16s", port, connected_to, _LOOPBACK, _LOOPBACK)
    what = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY_STATE) + ends + bytes(4) + _ANY_COOKIE
    header = _HEADER.pack(_HEADER.size + len(what), _BY_FAMILY, _REQUEST, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as kernel:
            kernel.send(header + what)
            answer = kernel.recv(4096)
    except OSError:
        return None
    if len(answer) < _INODE_AT + 4 or _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    inode: int = struct.unpack_from("=I", answer, _INODE_AT)[0]
    return inode or None


def listed(port: int, connected_to: int) -> int | None:
    wanted = f":{port:04X}", f":{connected_to:04X}"
    with Path("/proc/net/tcp").open() as lines:
        for line in lines:
            columns = line.split()
            if columns[1].endswith(wanted[0]) and columns[2].endswith(wanted[1]):
                return int(columns[9]) or None
    return None


def _holds(pid: int, socket: str) -> bool:
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            return any(_target(entry.path) == socket for entry in entries)
    except OSError:
        return False  # it has ended


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
