"""From a declaration to nodes and edges, and from those to layers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from odradek.apps.pipeline.spec import ConsoleSink, Pipeline, PythonTransform, Sink, TableSink, TopicSink, Transform

_WORD = re.compile(r"\w+")
_COMMENT = re.compile(r"--[^\n]*|/\*[^+].*?\*/|'[^']*'", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Node:
    """`count` is of records read or rows held; None: unknown."""

    name: str
    kind: str
    detail: str
    inputs: tuple[str, ...] = ()
    count: int | None = None


def graph_of(pipeline: Pipeline, texts: Mapping[str, str], counts: Mapping[str, int]) -> list[Node]:
    """Return the nodes, each after its inputs. `texts` are the files of the transforms, by name."""
    nodes = [Node(s.name, "source", ", ".join(s.topics), (), counts.get(s.name)) for s in pipeline.sources.values()]
    nodes += [Node(d.name, "dimension", d.topic, (), counts.get(d.name)) for d in pipeline.dimensions.values()]
    for transform in pipeline.transforms.values():
        known = [node.name for node in nodes]
        inputs = inputs_of(transform, texts[transform.name], known)
        nodes.append(Node(transform.name, "transform", transform.file.name, inputs))
    for sink in pipeline.sinks.values():
        nodes.append(Node(sink.name, "sink", _target(sink), (sink.view,), counts.get(sink.name)))
    judged = (*pipeline.sources, *pipeline.dimensions)
    nodes.append(Node("dead letters", "sink", f"topic {pipeline.dead_letters}", judged))
    return nodes


def inputs_of(transform: Transform, text: str, known: list[str]) -> tuple[str, ...]:
    """Return the views that a transform reads: the parameters of its function, or the names in its SQL."""
    if isinstance(transform, PythonTransform):
        declared = re.search(rf"def\s+{re.escape(transform.function)}\s*\(([^)]*)\)", text)
        text = declared[1] if declared else ""
    words = {word.lower() for word in _WORD.findall(_COMMENT.sub(" ", text))}
    return tuple(name for name in known if name.lower() in words)


def layers(nodes: list[Node]) -> list[list[Node]]:
    """Return the nodes in columns: each to the right of all of its inputs, sinks in the last one."""
    depth: dict[str, int] = {}
    for node in nodes:
        depth[node.name] = 1 + max((depth[name] for name in node.inputs), default=-1)
    last = max(depth.values())
    columns: list[list[Node]] = [[] for _ in range(last + 1)]
    for node in nodes:
        columns[last if node.kind == "sink" else depth[node.name]].append(node)
    return columns


def told_count(node: Node) -> str:
    if node.count is None:
        return ""
    return f"{node.count:,} {'rows' if node.kind == 'sink' else 'records'}"


def _target(sink: Sink) -> str:
    match sink:
        case TopicSink():
            return f"topic {sink.topic}"
        case TableSink():
            return f"{sink.format.value} table {sink.path.name}"
        case ConsoleSink():
            return "console"
