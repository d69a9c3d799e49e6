"""Names of the places that sinks write to, for messages, status and graphs. Pure."""

from odradek.apps.pipeline.spec import ConsoleSink, Sink, TableSink, TopicSink


def target(sink: Sink) -> str:
    match sink:
        case TopicSink():
            return f"topic {sink.topic}"
        case TableSink():
            return f"{sink.format.value} table {sink.path}"
        case ConsoleSink():
            return "console"


def short_target(target: str) -> str:
    """Return the last part of a path, without the location of the project."""
    return target if "/" not in target else f"{target.partition('/')[0]}{target.rpartition('/')[2]}"
