"""Cost of a process and its descendants, until its end.

Memory is the proportional set size: a page that several processes share, as forked Python workers do, counts once.
"""

import os
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_S = 0.2
_LOOKS_PER_MEMORY_LOOK = 5  # the kernel walks through all pages for it


@dataclass(frozen=True, slots=True)
class FamilyCost:
    cpu_s: float
    memory_mb: float  # the most at one time
    processes: int  # that were seen; those that lived for a moment only are counted in their parent's CPU


def metered_family(process: "subprocess.Popen[bytes]") -> FamilyCost:
    """Waits for the end of the process."""
    looks: dict[int, _Look] = {}
    memory_mb, at = 0.0, 0
    while process.poll() is None:
        at += 1
        family = _family(process.pid)
        for pid, fields in family.items():
            own, waited = sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))
            looks[pid] = _Look(at, int(fields[1]), own / _TICKS, waited / _TICKS)
        if at % _LOOKS_PER_MEMORY_LOOK == 1:
            memory_mb = max(memory_mb, sum(map(_memory_mb, family)))
        time.sleep(_LOOK_S)
    return FamilyCost(sum(look.own_s for look in looks.values()) + _unseen_s(looks), memory_mb, len(looks))


def cpu_until_now_s(root: int) -> float:
    """CPU seconds of the process and of those below it, with their children that have ended."""
    return sum(sum(map(int, fields[11:15])) for fields in _family(root).values()) / _TICKS


@dataclass(frozen=True, slots=True)
class _Look:
    """Last sample of a process; `waited_s`: CPU time of children that it has waited for."""

    at: int
    parent: int
    own_s: float
    waited_s: float


def _unseen_s(looks: dict[int, _Look]) -> float:
    """Processor time of processes that lived between two samples: their parents waited for them."""
    unseen = {pid: look.waited_s for pid, look in looks.items()}
    for look in looks.values():
        parent = looks.get(look.parent)
        if parent is not None and look.at < parent.at:
            unseen[look.parent] -= look.own_s + look.waited_s
    return sum(max(0.0, seconds) for seconds in unseen.values())


def _memory_mb(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def _family(root: int) -> dict[int, list[str]]:
    """Return the fields of /proc/PID/stat after the name, of the process and of all below it."""
    fields: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields[int(path.parent.name)] = path.read_text().rpartition(") ")[2].split()
    pids, before = {root}, 0
    while len(pids) != before:
        before = len(pids)
        pids |= {pid for pid, values in fields.items() if int(values[1]) in pids}
    return {pid: fields[pid] for pid in pids if pid in fields}
