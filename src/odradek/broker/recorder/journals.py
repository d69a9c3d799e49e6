"""Reading of journals: of one broker, or of several brokers merged.

    DIR/recorder-0-00000000000000000001.jsonl      of broker 0, from its first entry on
    DIR/recorder-0-00000000000000041233.jsonl      …and from that one on

The brokers' clocks may differ. Entries of controllers are ordered by controller epoch and, within one, by their order
in the journal; all other entries keep the order of their own journal, and are merged by time. Lines torn by a crash are
skipped. Missing entries are represented by an entry as well (`gaps`).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.base.logs import get_logger
from odradek.broker.recorder.core.entry import Entry, maybe_entry
from odradek.broker.recorder.core.gaps import GapFinder

log = get_logger(__name__)

_NEWEST_OF_EACH = 2
_NAME = re.compile(r"recorder-(\d+)-(\d{20})\.jsonl")


def file_name(broker: int, first_seq: int) -> str:
    return f"recorder-{broker}-{first_seq:020d}.jsonl"


def parse_name(name: str) -> tuple[int, int] | None:
    """Broker and first sequence number."""
    match = _NAME.fullmatch(name)
    return None if match is None else (int(match[1]), int(match[2]))


def find_journals(*places: Path) -> list[Path]:
    """The files of all journals in or below these places; a place may also be a file. Sorted by broker, then age."""
    found: set[Path] = set()
    for place in places:
        if place.is_file():
            found.add(place)
        elif place.is_dir():
            found.update(_below(place))
        else:
            raise FatalError(f"{place} does not exist; give the directory of a broker's journal, or of `odradek up`")
    return sorted(found, key=lambda path: (parse_name(path.name) or (-1, -1), path))


def _below(place: Path) -> Iterator[Path]:
    """Journals in the directory and in its brokers' log directories, not deeper: those may hold many partitions."""
    for pattern in ("recorder-*.jsonl", "*/recorder-*.jsonl", "broker-*/*/recorder-*.jsonl"):
        yield from (path for path in place.glob(pattern) if parse_name(path.name) is not None)


def newest(paths: Sequence[Path], of_each: int = _NEWEST_OF_EACH) -> list[Path]:
    """Return the last files of each broker, sorted as they were found: enough for the recent past."""
    by_broker: dict[int, list[Path]] = defaultdict(list)
    for path in paths:
        by_broker[(parse_name(path.name) or (-1, 0))[0]].append(path)
    return [path for files in by_broker.values() for path in files[-of_each:]]


def read_file(path: Path) -> Iterator[Entry]:
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                entry = maybe_entry(line)
                if entry is not None:
                    yield entry
    except FileNotFoundError:
        return  # rotated away since it was found
    except OSError as error:
        log.warning("flight recorder journal unreadable", file=str(path), error=str(error))


def read_journals(*places: Path, wanted: Callable[[Entry], bool] = lambda entry: True) -> list[Entry]:
    """Return the entries and gaps of the journals as one story; only the `wanted` ones."""
    missing = GapFinder()
    found: list[Entry] = []
    for path in find_journals(*places):
        for entry in read_file(path):
            missing.note(entry)
            if wanted(entry):
                found.append(entry)
    return merged([*found, *filter(wanted, missing.gaps())])


def merged(entries: Iterable[Entry]) -> list[Entry]:
    """Entries by controller epoch, then sequence, then time. A second copy of an entry is left out."""
    by_seq = sorted(
        {(entry.broker, entry.seq, entry.time_ms): entry for entry in entries}.items(), key=lambda item: item[0]
    )
    place: dict[tuple[int, int, int], tuple[int, int]] = {}  # in time, and in the succession of controllers
    latest_ms = -1
    ruled = [entry for _, entry in by_seq if entry.controller_epoch is not None]
    for entry in sorted(ruled, key=lambda entry: (entry.controller_epoch, entry.seq)):
        latest_ms = max(latest_ms, entry.time_ms)
        place[entry.broker, entry.seq, entry.time_ms] = latest_ms, entry.controller_epoch or 0
    broker, before = -1, (-1, -1)
    for key, entry in by_seq:
        if entry.controller_epoch is None:
            place[key] = max((entry.time_ms, -1), before) if broker == entry.broker else (entry.time_ms, -1)
        broker, before = entry.broker, place[key]
    return [entry for key, entry in sorted(by_seq, key=lambda item: (place[item[0]], item[0]))]
