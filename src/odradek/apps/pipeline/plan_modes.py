"""Views whose rows depend on the output mode of their query: aggregates and joins of streams, as Spark plans them."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STATEFUL = frozenset(
    {
        "Aggregate",
        "Distinct",
        "FlatMapGroupsWithState",
        "FlatMapGroupsInPandasWithState",
        "TransformWithState",
        "TransformWithStateInPySpark",
        "TransformWithStateInPandas",
    }
)


def mode_bound(frames: "Mapping[str, DataFrame]") -> frozenset[str]:
    return frozenset(name for name, frame in frames.items() if _is_bound(frame))


def _is_bound(frame: "DataFrame") -> bool:
    """Spark Connect shows no plans: there every view counts, which may give a sink a query of its own."""
    plan = getattr(frame, "_jdf", None)
    if plan is None:
        return True
    return any(_depends_on_mode(node) for node in _nodes(plan.queryExecution().analyzed()))


def _depends_on_mode(node: Any) -> bool:
    name = node.nodeName()
    if name == "Join":
        return all(child.isStreaming() for child in _children(node))
    return name in _STATEFUL and bool(node.isStreaming())


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in _children(plan):
        yield from _nodes(child)


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(number) for number in range(children.size())]
