"""Ten minutes of faults that a seed draws, on four brokers under load; the judge has the last word.

What the nemesis did is in the captured output, with its seed: `ODRADEK_NEMESIS_SEED` draws the same faults again, in
the same order (what they meet is up to the machine), `ODRADEK_NEMESIS_S` more or fewer of them.
"""

import os
import random
from pathlib import Path

import pytest

from chaos.nemesis import Nemesis
from chaos.story import Story

from .conftest import site

SECONDS = float(os.environ.get("ODRADEK_NEMESIS_S", "600"))
pytestmark = [pytest.mark.soak, pytest.mark.timeout(SECONDS + 900)]


def test_random_faults(tmp_path: Path) -> None:
    seed = int(os.environ.get("ODRADEK_NEMESIS_SEED", random.randrange(1 << 32)))
    with site(tmp_path, 4) as (cluster, four_hosts, zookeeper), Story(cluster, request_timeout_ms=3000) as story:
        Nemesis(story, four_hosts, zookeeper, seed).rage(SECONDS)
    assert story.verdict == []
