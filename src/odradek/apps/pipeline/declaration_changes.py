"""Differences between the declaration of a checkpoint and the present one, and their effects on the checkpoint.

A checkpoint has offsets, and the state of deduplications, windows and joins. Offsets hold for every declaration of the
same topics. State holds as long as its keys and values mean the same. Values only.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from odradek.apps.pipeline.spec import Decoding, Pipeline, PythonTransform

_SHUFFLE = "spark.sql.shuffle.partitions"
_SQL_COMMENT = re.compile(r"--[^\n]*|/\*[^+].*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Change:
    """A change and its effect; `is_kept`: the next run continues from the checkpoint."""

    what: str
    effect: str
    is_kept: bool = True

    def __str__(self) -> str:
        return f"{self.what}: {self.effect}"


def declared(pipeline: Pipeline, texts: Mapping[str, str], states: Mapping[str, list[str]]) -> dict[str, Any]:
    """The declaration as JSON takes it. `texts` are the transforms' files, `states` the shapes of views' state."""
    return {
        "sources": {
            source.name: {
                "topics": sorted(source.topics),
                "decoding": _decoding(source.decoding),
                "rules": dict(source.rules),
                "late_after": source.late_after,
                "watermark": source.watermark.column if source.watermark else None,
                "delay": source.watermark.delay if source.watermark else None,
                "dedupe": sorted(source.dedupe),
            }
            for source in pipeline.sources.values()
        },
        "dimensions": {
            each.name: {"topic": each.topic, "decoding": _decoding(each.decoding)}
            for each in pipeline.dimensions.values()
        },
        "transforms": {
            each.name: _meaning(texts[each.name], is_python=isinstance(each, PythonTransform))
            for each in pipeline.transforms.values()
        },
        "sinks": {sink.name: sink.view for sink in pipeline.sinks.values()},
        "states": dict(states),
        "shuffle": pipeline.spark.get(_SHUFFLE),
    }


def changes(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[Change]:
    """Return the changes, those that need a replay first."""
    found = [*_states(kept, wanted), *_sources(kept, wanted), *_dimensions(kept, wanted), *_others(kept, wanted)]
    return sorted(found, key=lambda change: change.is_kept)


def _states(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Change]:
    for view, shape in wanted["states"].items():
        before = kept["states"].get(view, shape)
        if before != shape:
            steps = "; ".join(each for each in before if each not in shape) or "other steps"
            yield Change(f"{view} keeps other state", f"the checkpoint has {steps}", is_kept=False)


def _sources(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Change]:
    later = "holds for records from the next batch on; rows that were written stay as they are"
    for name, source in wanted["sources"].items():
        before = kept["sources"].get(name)
        if before is None:
            continue
        if before["watermark"] != source["watermark"] and before["watermark"]:
            effect = f"state and late records were judged by {before['watermark']}"
            yield Change(f"[sources.{name}] has its watermark on another column", effect, is_kept=False)
        if before["dedupe"] != source["dedupe"]:
            effect = f"the state is of {', '.join(before['dedupe']) or 'none'}"
            yield Change(f"[sources.{name}] deduplicates by other columns", effect, is_kept=False)
        for key, what in (
            ("decoding", "another schema"),
            ("rules", "other rules"),
            ("late_after", "another late_after"),
        ):
            if before[key] != source[key]:
                yield Change(f"[sources.{name}] has {what}", later)
        if before["delay"] != source["delay"] and source["delay"]:
            yield Change(
                f"[sources.{name}] waits {source['delay']}",
                "holds from the next batch on; the watermark never goes back",
            )
        if new := sorted({*source["topics"]} - {*before["topics"]}):
            yield Change(f"[sources.{name}] reads {', '.join(new)} too", "from the beginning, beside the others")


def _dimensions(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Change]:
    for name, dimension in wanted["dimensions"].items():
        before = kept["dimensions"].get(name)
        if before is None or before == dimension:
            continue
        if before["topic"] != dimension["topic"]:
            yield Change(
                f"[dimensions.{name}] has another topic", f"the offsets are those of {before['topic']}", is_kept=False
            )
        else:
            yield Change(f"[dimensions.{name}] has another schema", "holds for every key from the next batch on")


def _others(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Change]:
    for name, text in wanted["transforms"].items():
        if kept["transforms"].get(name, text) != text:
            effect = "holds from the next batch on; state is kept, and written rows stay as they are"
            yield Change(f"[transforms.{name}] computes something else", effect)
    for name in sorted(wanted["sinks"].keys() - kept["sinks"].keys()):
        yield Change(f"[sinks.{name}] is new", "it begins at the beginning, in a query of its own; the others go on")
    for name in sorted(kept["sinks"].keys() - wanted["sinks"].keys()):
        yield Change(f"[sinks.{name}] is gone", "its target keeps what it has")
    if kept["shuffle"] != wanted["shuffle"]:
        number = kept["shuffle"] or "Spark's number"
        yield Change(
            f"[spark] {_SHUFFLE} is {wanted['shuffle']}", f"the checkpoint's state stays in {number} partitions"
        )


def _decoding(decoding: Decoding) -> list[str]:
    options = [f"{key}={value}" for key, value in sorted((decoding.options or {}).items())]
    return [decoding.encoding.value, " ".join(decoding.schema.split()), decoding.message, *options]


def _meaning(text: str, *, is_python: bool) -> str:
    """The text without comments and layout."""
    if not is_python:
        return " ".join(_SQL_COMMENT.sub(" ", text).split())
    try:
        return ast.unparse(ast.parse(text))
    except SyntaxError:
        return text
