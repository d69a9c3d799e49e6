"""Checkpoint directory of a pipeline: the progress of its queries, and the pipeline that owns it.

    DIR/identity.json           whose this is: pipeline, cluster, topics that are read, targets; the generation
    DIR/g1/queries.json         the queries of generation 1: their sinks, views and inputs
    DIR/g1/declaration.json     the declaration of the generation's last run, for `declaration_changes`
    DIR/g1/QUERY/               Spark's checkpoint of one query, in generation 1
    DIR/g1/QUERY.intent.json    what a topic's writer was about to do (`topic_output`)
    DIR/g1/QUERY.tasks/         tasks that have begun to write to topics (`transaction_output`), during a transaction

A replay begins a new generation, with state that is empty and offsets that were asked for. A checkpoint of another
pipeline, cluster or input is refused: Spark would continue with its numbers, which mean something else.
"""

import json
import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from odradek.apps.pipeline.sharing import SharedQuery
from odradek.apps.pipeline.spec import Mode
from odradek.base.errors import FatalError

_IDENTITY = "identity.json"
_QUERIES = "queries.json"
_DECLARATION = "declaration.json"
_LETTERS_QUERY = "dead_letters_"


@dataclass(frozen=True, slots=True)
class Identity:
    pipeline: str
    cluster: str
    reads: Mapping[str, list[str]]  # the topics of each source
    writes: Mapping[str, str]  # the target of each query
    generation: int = 1
    starting: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    checkpoint_id: str = ""  # unique to this checkpoint: it is part of the names of batches in transactions


class Checkpoint:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def claim(self, wanted: Identity) -> Identity:
        """Claim the checkpoint; return its identity with the generation. FatalError if it is another pipeline's."""
        kept = self.identity()
        if kept is None:
            self._refuse_foreign_checkpoint()
            made = replace(wanted, checkpoint_id=wanted.checkpoint_id or uuid4().hex)
            self._write(made)
            return made
        self._compare(kept, wanted)
        merged = replace(
            kept,
            reads={**kept.reads, **wanted.reads},
            writes={**kept.writes, **wanted.writes},
            checkpoint_id=kept.checkpoint_id or uuid4().hex,
        )
        self._write(merged)
        return merged

    def identity(self) -> Identity | None:
        try:
            return Identity(**json.loads((self.directory / _IDENTITY).read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise FatalError(f"{self.directory / _IDENTITY} can't be read: {error}") from None

    def next_generation(self, starting: Mapping[str, Mapping[str, int]]) -> Identity:
        kept = self.identity()
        if kept is None:
            raise FatalError(f"there is nothing to replay: no run has left a checkpoint in {self.directory}")
        following = replace(kept, generation=kept.generation + 1, starting=starting)
        self._write(following)
        return following

    def retarget(self, query: str, target: str) -> None:
        """Note that the query writes to another kind of target, which has all that it has written."""
        kept = self.identity()
        if kept is not None and query in kept.writes:
            self._write(replace(kept, writes={**kept.writes, query: target}))

    def query(self, generation: int, name: str) -> Path:
        return self.directory / f"g{generation}" / name

    def queries(self, generation: int) -> list[SharedQuery]:
        """The queries that the generation has begun. FatalError if a release with one query per sink has begun it."""
        directory = self.directory / f"g{generation}"
        try:
            kept = json.loads((directory / _QUERIES).read_text())
        except FileNotFoundError:
            if any(directory.glob("*/commits")):
                raise FatalError(
                    f"the checkpoint in {directory} has a query for each sink, and sinks share queries now: begin a "
                    "new generation where it stands or before, with: odradek pipeline replay"
                ) from None
            return []
        return [
            SharedQuery(
                each["name"], tuple(each["sinks"]), tuple(each["views"]), tuple(each["letters"]), Mode(each["mode"])
            )
            for each in kept
        ]

    def keep_queries(self, generation: int, queries: Sequence[SharedQuery]) -> None:
        make_directory(self.directory / f"g{generation}")
        write_durably(self.directory / f"g{generation}" / _QUERIES, [asdict(query) for query in queries])

    def declaration(self, generation: int) -> dict[str, Any] | None:
        try:
            kept: dict[str, Any] = json.loads((self.directory / f"g{generation}" / _DECLARATION).read_text())
        except FileNotFoundError:
            return None
        return kept

    def keep_declaration(self, generation: int, declared: Mapping[str, Any]) -> None:
        make_directory(self.directory / f"g{generation}")
        write_durably(self.directory / f"g{generation}" / _DECLARATION, declared)

    def begun(self, generation: int) -> list[str]:
        """Names of the queries that have finished a batch of the generation."""
        return sorted(path.parent.name for path in (self.directory / f"g{generation}").glob("*/commits"))

    def parts(self, generation: int, begun: Container[str]) -> set[str]:
        """Sinks and inputs of the queries that have begun. A release with a query per sink named it after its part."""
        directory = self.directory / f"g{generation}"
        if not (directory / _QUERIES).exists():
            names = [name for name in self.begun(generation) if name in begun]
            return {name.removeprefix(_LETTERS_QUERY) for name in names}
        kept = [query for query in self.queries(generation) if query.name in begun]
        return {part for query in kept for part in (*query.sinks, *query.letters)}

    def _refuse_foreign_checkpoint(self) -> None:
        if any((self.directory / name).exists() for name in ("offsets", "commits", "metadata")):
            raise FatalError(
                f"{self.directory} is the checkpoint of a Spark query that is none of this pipeline: choose another "
                'directory with checkpoint = "…"'
            )

    def _compare(self, kept: Identity, wanted: Identity) -> None:
        where = f"the checkpoint in {self.directory}"
        way_out = 'choose another directory with checkpoint = "…", or start over by removing this one and the tables'
        if kept.pipeline != wanted.pipeline:
            raise FatalError(f"{where} belongs to pipeline {kept.pipeline!r}, not {wanted.pipeline!r}: {way_out}")
        if kept.cluster != wanted.cluster:
            raise FatalError(f"{where} belongs to cluster {kept.cluster}, and this one is {wanted.cluster}: {way_out}")
        for name, topics in wanted.reads.items():
            if lost := set(kept.reads.get(name, topics)) - set(topics):
                raise FatalError(f"{where} has [sources.{name}] reading {', '.join(sorted(lost))} too: {way_out}")
        for name, written in wanted.writes.items():
            before = kept.writes.get(name, written)
            if before != written:
                raise FatalError(f"{where} has {name} writing to {before}, and now to {written}: {way_out}")

    def _write(self, identity: Identity) -> None:
        make_directory(self.directory)
        write_durably(self.directory / _IDENTITY, asdict(identity))


def batch_offsets(checkpoint: Path, batch: int) -> list[Any]:
    """The end of a batch for each source of its query, as Spark's offset log has it; the start is the end before."""
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines[2:] if line != "-"]


def committed_offsets(checkpoint: Path) -> dict[str, dict[str, int]]:
    """Return the offsets of a query by its checkpoint, before its first batch of this run."""
    found: dict[str, dict[str, int]] = {}
    for source in batch_offsets(checkpoint, _last_batch(checkpoint / "commits")):
        for topic, partitions in source.items():
            found.setdefault(topic, {}).update(partitions)
    return found


def state_store(checkpoint: Path) -> str | None:
    """Return the class of the state store that a query's checkpoint has; None without a batch."""
    try:
        facts = (checkpoint / "offsets" / str(last_begun_batch(checkpoint))).read_text().splitlines()[1]
        found: str | None = json.loads(facts)["conf"].get("spark.sql.streaming.stateStore.providerClass")
    except (FileNotFoundError, IndexError, KeyError):
        return None
    return found


def last_begun_batch(checkpoint: Path) -> int:
    """Return the number of the last batch that a query has begun; -1 if it has begun none."""
    return _last_batch(checkpoint / "offsets")


def _last_batch(log: Path) -> int:
    return max((int(path.name) for path in log.glob("[0-9]*") if path.name.isdecimal()), default=-1)


def make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FatalError(f"the directory {path} can't be made: {error.strerror}") from None


def write_durably(path: Path, content: object) -> None:
    """Replace the file atomically: after a crash it is the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
