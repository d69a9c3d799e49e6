"""Story of a transactional id, as its coordinators recorded it: `odradek recorder why txn MY-ID`."""

from collections.abc import Sequence

from odradek.apps.cli.output import Format, print_rows
from odradek.apps.cli.terminal import say
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.recorder.core.entry import GAPS, Entry, Kind
from odradek.broker.recorder.core.gaps import gap_text
from odradek.client.moments import moment_text

_SHOWN_MAX = 6
_COLUMNS = ("time", "coordinator", "event", "producer_id", "epoch", "leader", "partitions", "why")


def is_of_transactions(entry: Entry, transactional_id: str) -> bool:
    return entry.transactional_id == transactional_id or entry.kind in GAPS


def tell_transactions(transactional_id: str, entries: Sequence[Entry], output: Format) -> None:
    """Print the recorded events of the id, and the gaps of the journals in that time."""
    # an event may have been recorded after its time, when its transaction became unusual
    story = sorted((entry for entry in entries if entry.kind == Kind.TRANSACTION), key=lambda entry: entry.time_ms)
    if not story:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"the journals have nothing of transactional id '{transactional_id}'"
        )
    coordinators = {entry.broker for entry in story}
    gaps = [entry for entry in entries if entry.kind in GAPS and entry.broker in coordinators]
    if not output.is_table:
        print_rows([_row(entry) for entry in story], _COLUMNS, output)
        return
    for entry in sorted((*story, *gaps), key=lambda entry: entry.time_ms):
        if entry.kind in GAPS:
            say(f"gap       {gap_text(entry)} until {moment_text(entry.time_ms)}", "yellow")
            continue
        if entry.left_out:
            say(f"…         {entry.left_out:,} transactions or events before this were not recorded")
        say(_line(entry))
    last = story[-1]
    producer = f"producer {last.producer_id}, epoch {last.producer_epoch}"
    say(f"{transactional_id}: {last.what} by coordinator {last.broker}, {producer}", "bold")


def _line(entry: Entry) -> str:
    parts = [f"{moment_text(entry.time_ms)}  {entry.what:<15} broker {entry.broker}"]
    parts.append(f"producer {entry.producer_id} epoch {entry.producer_epoch}")
    if entry.partitions:
        leader = "" if entry.peer is None else f"leader {entry.peer}: "
        parts.append(leader + _partitions(entry))
    if entry.text:
        parts.append(entry.text)
    return "  ".join(parts)


def _partitions(entry: Entry) -> str:
    named = (entry.partitions or ())[:_SHOWN_MAX]
    more = (entry.count or len(named)) - len(named)
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def _row(entry: Entry) -> dict[str, object]:
    return {
        "time": moment_text(entry.time_ms),
        "time_ms": entry.time_ms,
        "coordinator": entry.broker,
        "event": entry.what,
        "producer_id": entry.producer_id,
        "epoch": entry.producer_epoch,
        "leader": entry.peer,
        "partitions": entry.partitions,
        "why": entry.text,
        "left_out": entry.left_out,
    }
