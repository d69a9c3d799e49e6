"""`odradek recorder`: events and decisions of the brokers, leaders of partitions, and causes of changes."""

from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import DEFAULT_DATA, Format, FormatOption, note, print_json, print_rows, warn
from odradek.apps.cli.terminal import say
from odradek.apps.cli.transaction_story import is_of_transactions, tell_transactions
from odradek.apps.cli.usage import WrongUsage
from odradek.base.errors import ErrorCode, FatalError, KafkaError
from odradek.broker.recorder.core.entry import GAPS, LOG_DIR_FAILED, Entry, Kind
from odradek.broker.recorder.core.gaps import gap_text, uncertain_at
from odradek.broker.recorder.core.picture import PartitionPicture, Picture
from odradek.broker.recorder.core.why import Change, changes_of, gaps_since, is_about
from odradek.broker.recorder.journals import find_journals, read_journals
from odradek.broker.recorder.rebalances import Rebalances
from odradek.client.moments import moment_text, parse_moment
from odradek.model.topology import TopicPartition

app = Noun(
    "Read the flight recorder: events, decisions and state changes of the brokers, with their causes. Times are UTC.",
    examples=[
        "odradek recorder show --data odradek-data --limit 50",
        "odradek recorder why orders-2 --data odradek-data",
        "odradek recorder why txn my-transactional-id --data odradek-data",
        "odradek recorder rebalances shop --data odradek-data",
        "odradek recorder replay --at 2026-11-17T02:10:05 --data odradek-data",
        "odradek recorder show --data broker-0.journal --data broker-1.journal --format json",
    ],
)

DataOption = Annotated[
    list[Path] | None,
    Option(
        "--data",
        metavar="DIR",
        help="The directory of `odradek up`, a broker's log directory or copied journal files; may be repeated.",
        show_default="odradek-data",
    ),
]
AtOption = Annotated[
    str | None,
    Option(
        "--at",
        metavar="TIME",
        help="A time: 15m ago, 2026-11-17T02:10:05.123 (UTC), or milliseconds.",
        show_default=False,
    ),
]
_QUIET = frozenset({Kind.READ, Kind.WATCH, Kind.PICTURE, Kind.ANSWER, Kind.LATER})
_TOLD_MAX = 12
_TRANSACTION = "txn"


@app.verb()
def show(
    data: DataOption = None,
    broker: Annotated[int | None, Option("--broker", help="Only entries of this broker.", show_default=False)] = None,
    kind: Annotated[
        list[Kind] | None, Option("--kind", help="Only entries of this kind; may be repeated.", show_default=False)
    ] = None,
    since: Annotated[
        str | None, Option("--since", metavar="TIME", help="Entries from this time on.", show_default=False)
    ] = None,
    until: Annotated[
        str | None, Option("--until", metavar="TIME", help="Entries up to this time.", show_default=False)
    ] = None,
    limit: Annotated[int, Option("--limit", min=0, help="Number of entries, the last ones; 0: all.")] = 200,
    everything: Annotated[bool, Option("--all", help="Also show reads, watches and answers.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the entries of all journals, merged by time (UTC)."""
    since_ms, until_ms = _maybe_time(since, "--since"), _maybe_time(until, "--until")
    hidden = frozenset() if everything or not output.is_table else _QUIET

    def wanted(entry: Entry) -> bool:
        if kind and entry.kind not in kind:
            return False
        return (
            (broker is None or entry.broker == broker)
            and (since_ms is None or entry.time_ms >= since_ms)
            and (until_ms is None or entry.time_ms <= until_ms)
            and (bool(kind) or entry.kind not in hidden)
        )

    entries = read_journals(*_places(data), wanted=wanted)
    if output.is_table and limit and len(entries) > limit:
        note(f"the last {limit} of {len(entries)} entries; --limit 0 shows all")
    shown = entries[-limit:] if limit else entries
    if output is Format.JSON:
        print_json([_plain(entry) for entry in shown])
        return
    rows = [
        {
            "time": moment_text(entry.time_ms),
            "broker": entry.broker,
            "seq": entry.seq,
            "cause": entry.cause,
            "epoch": entry.controller_epoch,
            "kind": entry.kind,
            "what": entry.what,
            "detail": _detail(entry),
        }
        for entry in shown
    ]
    columns = ("time", "broker", "seq", "cause", "epoch", "kind", "what", "detail")
    print_rows(rows, columns, output, empty="no entry matches")


@app.verb()
def why(
    partition: Annotated[str, Argument(metavar="TOPIC-PARTITION", help="Or: txn TRANSACTIONAL-ID.")],
    transactional_id: Annotated[
        str | None, Argument(metavar="TRANSACTIONAL-ID", help="After `txn`.", show_default=False)
    ] = None,
    data: DataOption = None,
    at: AtOption = None,
    leaders: Annotated[bool, Option("--leaders", help="Only changes of the leader.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the leader of a partition, now or at a time, and the causes of changes of its leader and ISR until then.

    With `txn`: show the transactions of a transactional id, and the reasons of their ends.
    """
    at_ms = _maybe_time(at, "--at")
    if transactional_id is not None:
        if partition != _TRANSACTION:
            raise WrongUsage(f"{partition!r} takes no second word; only `why {_TRANSACTION} TRANSACTIONAL-ID` does")
        _why_transaction(transactional_id, _places(data), at_ms, output)
        return
    tp = _partition(partition)
    entries = read_journals(
        *_places(data), wanted=lambda entry: is_about(entry, tp) and (at_ms is None or _begins_ms(entry) <= at_ms)
    )
    changes = [change for change in changes_of(tp, entries) if change.is_of_leader or not leaders]
    missing = gaps_since(tp, entries)
    if not changes:
        for gap in missing:
            warn(_gap(gap))
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"the journals have nothing of partition {tp}{' until that time' if at_ms is not None else ''}",
        )
    if output.is_table:
        _tell(tp, changes, missing)
        return
    rows = [_change_row(change) for change in changes]
    print_rows(rows, tuple(name for name in rows[0] if name not in ("chain", "gaps")), output)


def _why_transaction(transactional_id: str, places: list[Path], at_ms: int | None, output: Format) -> None:
    def wanted(entry: Entry) -> bool:
        return is_of_transactions(entry, transactional_id) and (at_ms is None or _begins_ms(entry) <= at_ms)

    tell_transactions(transactional_id, read_journals(*places, wanted=wanted), output)


@app.verb()
def replay(
    data: DataOption = None,
    at: AtOption = None,
    topic: Annotated[
        str | None, Option("--topic, -t", placed=True, help="Only partitions of this topic.", show_default=False)
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Rebuild the state of the cluster at a time: controller, live brokers, leaders and ISRs."""
    at_ms = _maybe_time(at, "--at")
    entries = read_journals(*_places(data))
    picture, missing = Picture.at(entries, at_ms), uncertain_at(entries, at_ms)
    if not picture.time_ms:
        raise FatalError(_begin_later(entries))
    rows = [
        {"topic": tp.topic, "partition": tp.partition, **asdict(state), "since": moment_text(state.since_ms)}
        for tp, state in sorted(picture.partitions.items())
        if topic in (None, tp.topic)
    ]
    if output is Format.JSON:
        print_json(
            {
                "time_ms": at_ms or picture.time_ms,
                "controller": picture.controller,
                "controller_epoch": picture.controller_epoch,
                "brokers": [dict(member) for _, member in sorted(picture.brokers.items())],
                "partitions": rows,
                "gaps": [_plain(gap) for gap in missing],
            }
        )
        return
    for gap in missing:
        warn(f"this may be out of date: {_gap(gap)}")
    if output.is_table:
        controller = f"broker {picture.controller}" if picture.controller >= 0 else "none"
        note(f"at {moment_text(at_ms or picture.time_ms)}: controller {controller}, epoch {picture.controller_epoch}")
        note(f"live brokers: {', '.join(map(str, sorted(picture.brokers))) or 'none'}")
    print_rows(rows, ("topic", "partition", "leader", "leader_epoch", "isr", "replicas", "since"), output)


@app.verb()
def rebalances(
    group: Annotated[str, Argument(metavar="GROUP", help="The group.")],
    data: DataOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the rebalances of a consumer group, with their reasons."""
    known = Rebalances(*_places(data))
    known.read()
    rows = [
        {
            "time": moment_text(entry.time_ms),
            "time_ms": entry.time_ms,
            "coordinator": entry.broker,
            "generation": entry.generation,
            "members": entry.count,
            "why": entry.text,
        }
        for entry in known.of(group)
    ]
    if not rows:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"the journals have nothing of group '{group}'")
    columns = ("time", "coordinator", "generation", "members", "why")
    print_rows(rows, columns if output.is_table else tuple(rows[0]), output)


# --- texts -------------------------------------------------------------------------------------------------------


def _tell(tp: TopicPartition, changes: list[Change], missing: list[Entry]) -> None:
    last = changes[-1].after
    for _, of_one_cause in groupby(changes, key=lambda change: (change.entry.broker, change.entry.cause)):
        for change in of_one_cause:
            for gap in change.gaps:
                say(f"gap       {_gap(gap)}", "yellow")
            say(f"{moment_text(change.entry.time_ms)}  {_difference(change.before, change.after)}", "bold")
        for line in _because(tp, change):
            say(f"  {line}")
    for gap in missing:
        say(f"gap       {_gap(gap)}", "yellow")
    leader = f"broker {last.leader} leads it" if last.leader >= 0 else "it has no leader"
    say(f"{tp}: {leader}, leader epoch {last.leader_epoch}, in sync {_ids(last.isr)}")


def _because(tp: TopicPartition, change: Change) -> list[str]:
    reason = f"cause     {change.reason}"
    if change.cause is not None:
        by = f"controller {change.entry.broker}, epoch {change.entry.controller_epoch}, entry {change.cause.seq}"
        cause = _cause(change.cause)
        lines = [f"{reason}  ({by})"] if cause == change.reason else [reason, f"event     {cause}  ({by})"]
        return [*lines, *_chain(tp, change.chain)]
    if not change.was_found:
        return [reason, *_chain(tp, change.chain)]
    meanwhile = [
        f"meanwhile {moment_text(each.time_ms)}  broker {each.broker}: {_of_itself(each)}" for each in change.chain
    ]
    return [reason, *meanwhile[-_TOLD_MAX:]]


def _of_itself(entry: Entry) -> str:
    if entry.what == LOG_DIR_FAILED:
        return f"log directory {entry.directory} failed: {entry.text}"
    return entry.text or entry.what.lower()


def _gap(gap: Entry) -> str:
    since = "" if gap.since_ms is None else f" from {moment_text(gap.since_ms)}"
    return f"{gap_text(gap)}{since} until {moment_text(gap.time_ms)}"


def _chain(tp: TopicPartition, chain: Iterable[Entry]) -> list[str]:
    """Reports and moves one by one, requests together."""
    requests: dict[str, list[int]] = {}
    lines: list[str] = []
    for entry in chain:
        if entry.kind == Kind.SEND and entry.peer is not None:
            peers = requests.setdefault(entry.what, [])
            if entry.peer not in peers:
                peers.append(entry.peer)
        elif entry.kind != Kind.SEND and entry.text:
            lines.append(f"{entry.kind:<9} {entry.text}")
    hidden = len(lines) - _TOLD_MAX
    lines = lines[:_TOLD_MAX] + ([f"…         and {hidden} more"] if hidden > 0 else [])
    return lines + [f"sent      broker {_ids(sorted(peers))}: {what} of {tp}" for what, peers in requests.items()]


def _cause(entry: Entry) -> str:
    return entry.what if entry.text is None else f"{entry.what}: {entry.text}"


def _difference(before: PartitionPicture | None, after: PartitionPicture) -> str:
    if before is None:
        return f"leader {after.leader}  epoch {after.leader_epoch}  isr {_ids(after.isr)}"
    return "  ".join(
        f"{name} {old}" if old == new else f"{name} {old} → {new}"
        for name, old, new in (
            ("leader", str(before.leader), str(after.leader)),
            ("epoch", str(before.leader_epoch), str(after.leader_epoch)),
            ("isr", _ids(before.isr), _ids(after.isr)),
        )
    )


def _change_row(change: Change) -> dict[str, object]:
    before = change.before
    return {
        "time": moment_text(change.entry.time_ms),
        "time_ms": change.entry.time_ms,
        "controller": change.entry.broker,
        "controller_epoch": change.entry.controller_epoch,
        "leader_before": None if before is None else before.leader,
        "leader": change.after.leader,
        "leader_epoch": change.after.leader_epoch,
        "isr_before": None if before is None else before.isr,
        "isr": change.after.isr,
        "reason": change.reason,
        "cause": None if change.cause is None else _cause(change.cause),
        "gaps": [_plain(gap) for gap in change.gaps],
        "chain": [_plain(entry) for entry in change.chain],
    }


def _detail(entry: Entry) -> str:
    if entry.what in ("PartitionState", "Partition"):
        return f"{entry.topic_partition} leader {entry.leader} epoch {entry.leader_epoch} isr {_ids(entry.isr or ())}"
    if entry.what == "Assignment":
        return f"{entry.topic_partition} replicas {_ids(entry.replicas or ())}"
    if entry.kind in GAPS:
        return _gap(entry)
    if entry.kind == Kind.LOG_DIR:
        return _of_itself(entry)
    if entry.kind == Kind.ISR:
        return f"{entry.topic_partition} wants isr {_ids(entry.isr or ())}"
    if entry.kind == Kind.GROUP:
        return f"{entry.group} generation {entry.generation}, members: {entry.count}: {entry.text}"
    if entry.kind == Kind.TRANSACTION:
        about = " ".join((*(entry.partitions or ()), entry.text or ""))
        return f"{entry.transactional_id} epoch {entry.producer_epoch} {about}"
    if entry.members is not None:
        return f"live: {_ids(sorted(int(member['id']) for member in entry.members))}"
    peer = f"broker {entry.peer}  " if entry.kind in (Kind.SEND, Kind.CHANNEL) else ""
    return f"{peer}{entry.text or entry.topic or entry.count or ''}"


def _plain(entry: Entry) -> dict[str, object]:
    return {name: value for name, value in asdict(entry).items() if value is not None}


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers)) or "none"


def _begins_ms(entry: Entry) -> int:
    """Begin of a gap: the time of the last entry before it."""
    return entry.since_ms if entry.kind in GAPS and entry.since_ms is not None else entry.time_ms


# --- arguments ---------------------------------------------------------------------------------------------------


def _places(data: list[Path] | None) -> list[Path]:
    places = data or [DEFAULT_DATA]
    if not find_journals(*places):
        raise FatalError(f"no journal in {', '.join(map(str, places))}; name its directory with --data DIR")
    return places


def _partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    if not topic or not number.isdecimal():
        raise WrongUsage(f"{text!r} is not TOPIC-PARTITION, as in orders-2, nor `txn TRANSACTIONAL-ID`")
    return TopicPartition(topic, int(number))


def _maybe_time(text: str | None, option: str) -> int | None:
    """Return milliseconds; a time without a zone is UTC, as the brokers' logs are."""
    try:
        return None if text is None else parse_moment(text)
    except ValueError as error:
        raise WrongUsage(str(error), option) from None


def _begin_later(entries: list[Entry]) -> str:
    begin = f"; they begin at {moment_text(entries[0].time_ms)} (UTC)" if entries else ""
    return f"the journals begin after that time{begin}"
