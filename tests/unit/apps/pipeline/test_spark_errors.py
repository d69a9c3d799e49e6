"""One sentence of what Spark says."""

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import AnalysisException

from odradek.apps.pipeline.spark_errors import error_text, in_one_sentence
from odradek.base.errors import FatalError


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "An error occurred while calling o5.load.\n: java.lang.X: no such\n\tat a.b(C.scala:1)\n",
            "java.lang.X: no such",
        ),
        ("[UNRESOLVED] no column x\n== SQL ==\nSELECT x", "[UNRESOLVED] no column x"),
        ("failed to connect back.\n\nJVM stacktrace:\norg.a\n\tat b", "failed to connect back."),
        (
            "[UNRESOLVED] A column\ncannot be resolved. SQLSTATE: 42703; line 1 pos 7;\n'Project ['x]\n+- ~View\n",
            "[UNRESOLVED] A column cannot be resolved.; line 1 pos 7",
        ),
        (
            "While making 'a.B':\n\nJVM stacktrace:\nx.Y\n\tat b\nCaused by: x.Z: many should be int\n\tat c",
            "While making 'a.B': many should be int",
        ),
        ("bad\nTraceback (most recent call last):\n  File x\nValueError: never\n", "ValueError: never"),
        (
            'Traceback (most recent call last):\n File "/tax.py", line 12\n File "/pyspark/a.py", line 3\nOSError: b',
            "OSError: b (tax.py, line 12)",
        ),
        ("Raised: Traceback (most recent call last):\n  File x\n    y()\nOSError: no disk\n", "OSError: no disk"),
    ],
)
def test_without_plan_and_trace(text: str, sentence: str) -> None:
    assert error_text(RuntimeError(text)) == sentence


def test_only_what_is_sparks() -> None:
    for thrown in (AnalysisException("no table"), Py4JNetworkError("no table"), ConnectionRefusedError("no table")):
        with pytest.raises(FatalError, match="on Mars: no table"), in_one_sentence("on Mars: "):
            raise thrown
    with pytest.raises(ZeroDivisionError), in_one_sentence():
        raise ZeroDivisionError
