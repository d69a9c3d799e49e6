"""Admin clients in JavaScript and Go: topics, settings, records, groups, offsets, from creation to deletion."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from foreign_clients import franz_program, kafkajs_program
from obtaining import skipped_if_unobtainable

from .conftest import unused_name

LIMIT_S = 100


def found_by(program: Callable[[], list[str]], bootstrap: str) -> Any:
    with skipped_if_unobtainable():
        command = program()
    result = subprocess.run(
        [*command, bootstrap, unused_name()], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.timeout(300)
def test_kafkajs(bootstrap: str) -> None:
    found = found_by(kafkajs_program, bootstrap)
    assert found == {
        "created": True,
        "again": False,
        "partitions": 3,
        "listed": True,
        "retention": "12345",
        "brokers": 1,
        "controller": 0,
        "consumed": [f"v{n}" for n in range(6)],
        "offsets": [f"{n}:0-2" for n in range(3)],
        "groups": True,
        "state": "Empty",
        "committed": ["2", "2", "2"],
        "moved": "1",
        "low": "1",
        "gone": True,
    }


@pytest.mark.soak  # compiling the client takes half a minute
@pytest.mark.timeout(900)
def test_franz_go(bootstrap: str) -> None:
    found = found_by(franz_program, bootstrap)
    assert "TOPIC_ALREADY_EXISTS" in found.pop("again")
    assert found == {
        "retention": "12345",
        "partitions": 3,
        "brokers": 1,
        "controller": 0,
        "read": 6,
        "ends": 6,
        "lag": 0,
        "start": 1,
        "directories": 1,
        "gone": True,
    }
