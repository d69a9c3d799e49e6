"""Graph of a declaration: nodes, edges and layers."""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.apps.pipeline.spec import Pipeline
from odradek.apps.pipeline.targets import short_target, target
from odradek.apps.pipeline.transform_inputs import inputs_of


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
        nodes.append(Node(sink.name, "sink", short_target(target(sink)), (sink.view,), counts.get(sink.name)))
    judged = (*pipeline.sources, *pipeline.dimensions)
    nodes.append(Node("dead letters", "sink", f"topic {pipeline.dead_letters}", judged))
    return nodes


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


def count_text(node: Node) -> str:
    if node.count is None:
        return ""
    return f"{node.count:,} {'rows' if node.kind == 'sink' else 'records'}"
