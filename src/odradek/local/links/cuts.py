"""Links that are cut at the moment: a small file, replaced to cut a link, that the relay reads ten times a second."""

import json
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias


class CutFrom(StrEnum):
    ZOOKEEPER = "zookeeper"
    BROKERS = "brokers"


Cuts: TypeAlias = Mapping[int, frozenset[CutFrom]]
"""Brokers that are cut off, each with the parts that it can't reach."""
Node: TypeAlias = int | None
"""The target of a link: a broker, or None for ZooKeeper."""


def is_cut(cuts: Cuts, source: int | None, node: Node) -> bool:
    """Return whether the link is cut. A broker always reaches itself, and other processes (None) reach every broker."""
    if source is None or source == node:
        return False
    of_source = cuts.get(source, frozenset())
    if node is None:
        return CutFrom.ZOOKEEPER in of_source
    return CutFrom.BROKERS in of_source or CutFrom.BROKERS in cuts.get(node, frozenset())


def read_cuts(file: Path) -> dict[int, frozenset[CutFrom]]:
    try:
        content = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    return {int(broker): frozenset(map(CutFrom, whom)) for broker, whom in content.items()}


def write_cuts(file: Path, cuts: Cuts) -> None:
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps({broker: sorted(whom) for broker, whom in cuts.items() if whom}))
    os.replace(draft, file)
