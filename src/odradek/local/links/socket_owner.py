"""Process at the other end of a connection of this machine, as Linux tells it.

All brokers connect from 127.0.0.1; the process that owns the socket distinguishes them.
"""

import os
from collections.abc import Iterable
from pathlib import Path


def owner(local_port: int, peer_port: int, pids: Iterable[tuple[int, int]]) -> int | None:
    """Return the broker, of the given ones with their processes, whose socket is bound to `peer_port` and connected to
    `local_port`; None if it is another process.
    """
    inode = _inode(peer_port, local_port)
    if inode is None:
        return None
    return next((broker for broker, pid in pids if _holds(pid, f"socket:[{inode}]")), None)


def _inode(port: int, connected_to: int) -> str | None:
    wanted = f":{port:04X}", f":{connected_to:04X}"
    with Path("/proc/net/tcp").open() as lines:
        for line in lines:
            columns = line.split()
            if columns[1].endswith(wanted[0]) and columns[2].endswith(wanted[1]):
                return columns[9]
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
