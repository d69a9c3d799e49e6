"""Queries of a pipeline: which sinks share one. Values only, no Spark.

Sinks whose views read the same sources share a streaming query, so that a source is read, decoded and judged once per
batch for any number of sinks. Three things keep sinks apart:

- other sources: a query has one watermark, the lowest of its sources, and a window must not wait for a foreign one;
- another output mode: append and update mean different rows of an aggregate or a join of streams, and Spark takes one
  of those in update mode;
- a checkpoint: the plan of a query is part of it. A sink that is declared later gets a query of its own, which begins
at the beginning; the others continue.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from odradek.apps.pipeline.spec import Mode, Pipeline, Sink
from odradek.apps.pipeline.transform_inputs import inputs_of
from odradek.base.errors import FatalError


@dataclass(frozen=True, slots=True)
class SharedQuery:
    """`views` are computed by the query, each once; `letters` are the inputs whose dead letters it writes."""

    name: str
    sinks: tuple[str, ...]
    views: tuple[str, ...]
    letters: tuple[str, ...]
    mode: Mode


def sources_of_views(pipeline: Pipeline, texts: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return the sources below each view. `texts` are the files of the transforms, by name."""
    found: dict[str, frozenset[str]] = {name: frozenset({name}) for name in pipeline.sources}
    found |= dict.fromkeys(pipeline.dimensions, frozenset())
    for transform in pipeline.transforms.values():
        below = [found[view] for view in inputs_of(transform, texts[transform.name], found)]
        found[transform.name] = frozenset().union(*below)
    return found


def share(
    pipeline: Pipeline,
    sources: Mapping[str, frozenset[str]],
    mode_bound: Container[str],
    kept: Sequence[SharedQuery] = (),
) -> list[SharedQuery]:
    """Return the queries: the kept ones as they are, and new ones for the sinks and inputs in none of them.

    `mode_bound` are the views whose rows depend on the output mode. FatalError if a kept query can't go on.
    """
    for query in kept:
        _check_kept(pipeline, query)
    taken = {sink for query in kept for sink in query.sinks}
    drafts: list[_Draft] = []
    for sink in pipeline.sinks.values():
        if sink.name not in taken:
            below, is_bound = sources[sink.view], sink.view in mode_bound
            draft = next((draft for draft in drafts if draft.takes(sink, below, is_bound)), None)
            if draft is None:
                draft = _Draft(below)
                drafts.append(draft)
            draft.add(sink, is_bound)
    judged = {name for query in kept for name in query.letters}
    for name in (*pipeline.sources, *pipeline.dimensions):
        if name not in judged:
            draft = next((draft for draft in drafts if name in draft.sources or name in pipeline.dimensions), None)
            if draft is None:
                draft = _Draft(frozenset({name}))
                drafts.append(draft)
            draft.letters.append(name)
    return [*kept, *_named(pipeline, drafts, {query.name for query in kept})]


@dataclass(slots=True)
class _Draft:
    sources: frozenset[str]
    sinks: list[str] = field(default_factory=list)
    views: list[str] = field(default_factory=list)
    letters: list[str] = field(default_factory=list)
    mode: Mode | None = None
    bound: set[str] = field(default_factory=set)

    def takes(self, sink: Sink, sources: frozenset[str], is_bound: bool) -> bool:
        if sources != self.sources:
            return False
        if not is_bound or self.mode is None:
            return True
        return sink.mode is self.mode and (self.mode is Mode.APPEND or self.bound == {sink.view})

    def add(self, sink: Sink, is_bound: bool) -> None:
        self.sinks.append(sink.name)
        if sink.view not in self.views:
            self.views.append(sink.view)
        if is_bound:
            self.mode = sink.mode
            self.bound.add(sink.view)


def _named(pipeline: Pipeline, drafts: Sequence[_Draft], used: set[str]) -> Iterator[SharedQuery]:
    """The first query of some sources has their name, others add the name of their first sink."""
    inputs = (*pipeline.sources, *pipeline.dimensions)
    for draft in drafts:
        name = "_".join(each for each in inputs if each in draft.sources) or draft.sinks[0]
        if name in used:
            name = f"{name}.{draft.sinks[0] if draft.sinks else 'dead_letters'}"
        used.add(name)
        mode = draft.mode or Mode.APPEND
        yield SharedQuery(name, tuple(draft.sinks), tuple(draft.views), tuple(draft.letters), mode)


def _check_kept(pipeline: Pipeline, query: SharedQuery) -> None:
    """FatalError if the query's part of the declaration would give it another plan than its checkpoint has."""
    sinks = [pipeline.sinks[name] for name in query.sinks if name in pipeline.sinks]
    views = {sink.view for sink in sinks}
    inputs = {*pipeline.sources, *pipeline.dimensions}
    changes = [f"view {view} is read by none of its sinks any more" for view in query.views if view not in views]
    changes += [f"[sinks.{sink.name}] reads {sink.view} now" for sink in sinks if sink.view not in query.views]
    changes += [f"input {name} is gone" for name in query.letters if name not in inputs]
    if changes:
        raise FatalError(
            f"query {query.name} has state in its checkpoint for sinks {', '.join(query.sinks)}, and {changes[0]}: "
            "declare it as before, or begin anew with: odradek pipeline replay --from-offset earliest --execute"
        )
