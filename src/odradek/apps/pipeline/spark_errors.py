"""Errors of Spark as one sentence."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

from odradek.base.errors import FatalError

_SENTENCE_MAX = 600
_SQLSTATE = re.compile(r" SQLSTATE: \w{5}")
_CAUSE = re.compile(r"Caused by: [\w.$]+: (.+)")
_FRAME = re.compile(r'File "([^"<]+)", line (\d+)')
_NOT_USERS = ("/pyspark/", "pyspark.zip", "/site-packages/", "/lib/python", "/odradek/apps/pipeline/")
_NO_MASTER = "Spark has stopped: its master doesn't answer, or has removed the application"


def error_text(error: BaseException) -> str:
    """Return Spark's own sentence, without plan and trace; of a Python trace, the last line."""
    text = str(error)
    if "stopped SparkContext" in text:
        return _NO_MASTER
    for end in (";\n", "\n== ", "\nJVM stacktrace", "\n=== Streaming Query", "\n\tat "):
        text = text.split(end)[0]
    if text.startswith("An error occurred while calling"):  # Py4J's own words, before Java's
        text = text.partition("\n: ")[2]
    _, traced, trace = text.rpartition("Traceback (most recent call last):")
    if traced:
        text = "\n".join([line for line in trace.splitlines() if line and not line[0].isspace()][:3])
    sentence = " ".join(line.strip() for line in text.splitlines() if line.strip()) + _place(trace if traced else "")
    if sentence.endswith(":"):  # the trace continues at the cause
        sentence = " ".join([sentence, *_CAUSE.findall(str(error))[-1:]])
    return _SQLSTATE.sub("", sentence).rstrip("; ")[:_SENTENCE_MAX] or type(error).__name__


def _place(trace: str) -> str:
    """Name the last line of the user's own code in a Python trace."""
    frames = [(file, line) for file, line in _FRAME.findall(trace) if not any(part in file for part in _NOT_USERS)]
    return f" ({PurePath(frames[-1][0]).name}, line {frames[-1][1]})" if frames else ""


@contextmanager
def in_one_sentence(before: str = "") -> Iterator[None]:
    """Turn Spark's errors inside into FatalError."""
    try:
        yield
    except FatalError:
        raise
    except Exception as error:
        if not is_sparks(error):
            raise
        raise FatalError(before + error_text(error)) from error


def is_sparks(error: BaseException) -> bool:
    """Return whether the error comes from Spark, from the bridge to its process, or from the end of the process."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException | Py4JError | ConnectionError)
