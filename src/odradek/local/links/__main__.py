"""`python -m odradek.local.links DIR`: the relay of the cluster in that directory, until it is stopped."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from odradek.local.links.local_links import CUTS_FILE, PLAN_FILE
from odradek.local.links.plan import read_plan
from odradek.local.links.relay import Relay


def _pids(data: Path) -> Iterator[tuple[int, int]]:
    for file in data.glob("broker-*/broker.pid"):
        try:
            yield int(file.parent.name.removeprefix("broker-")), int(file.read_text())
        except (OSError, ValueError):
            continue  # stopped a moment ago


async def main(directory: Path) -> None:
    relay = Relay(read_plan(directory / PLAN_FILE), directory / CUTS_FILE, lambda: _pids(directory.parent))
    running = asyncio.ensure_future(relay.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        return


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
