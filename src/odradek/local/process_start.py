"""Start time of a process: pid and start time name a process, the pid alone does not."""

from pathlib import Path

_ENDED = ("Z", "X")  # it has ended, and its parent hasn't asked yet


def process_start(pid: int) -> str | None:
    """Start of the process in ticks since boot; None if it doesn't run."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if state in _ENDED else rest[18]
    except (OSError, IndexError, ValueError):
        return None
