"""Stateful steps of views, as Spark plans them: rows that depend on the output mode or the watermark, and the state."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from odradek.apps.pipeline.spec import Mode

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


def watermark_bound(frames: "Mapping[str, DataFrame]", mode: Mode) -> frozenset[str]:
    """Views with rows, or calls of functions, that come when the watermark or the clock moves, without new records.

    A deduplication, and an aggregate in update mode, only remove state then: that can wait for the next record. Spark
    Connect shows no plans: there every view counts.
    """
    plans = {name: getattr(frame, "_jdf", None) for name, frame in frames.items()}
    return frozenset(name for name, plan in plans.items() if plan is None or _waits_for_watermark(plan, mode))


def _waits_for_watermark(plan: Any, mode: Mode) -> bool:
    names = [node.nodeName() for node in _nodes(plan.queryExecution().analyzed()) if _depends_on_mode(node)]
    return any(name != "Aggregate" or mode is Mode.APPEND for name in names)


def state_shapes(frames: "Mapping[str, DataFrame]") -> dict[str, list[str]]:
    """State of each view as text: plans with different texts have incompatible states.

    Empty with Spark Connect, which shows no plans.
    """
    plans = {name: getattr(frame, "_jdf", None) for name, frame in frames.items()}
    return {
        name: [shape for node in _nodes(plan.queryExecution().analyzed()) if (shape := _state_shape(node))]
        for name, plan in plans.items()
        if plan is not None
    }


def _state_shape(node: Any) -> str:
    name = node.nodeName()
    if name.startswith("Deduplicate") and node.isStreaming():
        return f"{name} by {', '.join(sorted(_typed(key) for key in _elements(node.keys())))}"
    if name == "Join":
        is_of_streams = all(child.isStreaming() for child in _children(node))
        condition = node.condition()
        return f"Join on {condition.get().sql() if condition.isDefined() else 'nothing'}" if is_of_streams else ""
    if name not in _STATEFUL or not node.isStreaming():
        return ""
    if name != "Aggregate":
        return str(name)
    groups = [_typed(each) for each in _elements(node.groupingExpressions())]
    computed = [_unnamed(each).sql() for each in _elements(node.aggregateExpressions())]
    return f"Aggregate by {', '.join(groups)}: {', '.join(sorted(computed))}"


def _typed(expression: Any) -> str:
    return f"{_unnamed(expression).sql()} {expression.dataType().simpleString()}"


def _unnamed(expression: Any) -> Any:
    return _children(expression)[0] if expression.nodeName() == "Alias" else expression


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
    return _elements(node.children())


def _elements(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]
