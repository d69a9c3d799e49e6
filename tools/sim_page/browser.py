"""The playground as the page calls it: a cluster of a seed, rounds, commands, and its state as JSON."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import stand_ins

stand_ins.install()

from odradek.base import logs  # noqa: E402
from odradek.sim.playground import Playground  # noqa: E402

_DIRECTORY = Path("/tmp/playground")
_playground: Playground | None = None


def begin(seed: int) -> str:
    global _playground
    logs.set_threshold(logs.ROOT, "FATAL")
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    _DIRECTORY.mkdir(parents=True)
    _playground = Playground(_DIRECTORY, seed)
    return state()


def advance(rounds: int = 1) -> str:
    assert _playground is not None
    for _ in range(rounds):
        _playground.advance()
    return state()


def command(name: str, broker_id: int) -> str:
    assert _playground is not None
    _playground.command(name, broker_id)
    return state()


def state() -> str:
    assert _playground is not None
    shown = {"round": _playground.round, "fault": _playground.fault, "events": _playground.events}
    return json.dumps({**shown, **asdict(_playground.view())})
