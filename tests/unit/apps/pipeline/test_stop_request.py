"""Ctrl-C and `pipeline stop`: at once while nothing runs, in order while queries do, at once again when repeated."""

import os
import signal

import pytest

from odradek.apps.pipeline.runner import StopRequest


def test_before_there_are_queries_the_end_comes_at_once() -> None:
    stop = StopRequest()
    with stop.heard(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
    assert stop.asked


def test_queries_are_waited_for_even_where_spark_took_the_signal() -> None:
    before = signal.getsignal(signal.SIGINT)
    stop = StopRequest()
    with stop.heard():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as a SparkContext does
        stop.wait_for_queries()
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
