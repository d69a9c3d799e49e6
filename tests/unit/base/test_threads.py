"""Threads that fail: reported, counted, and by the rule of their kind the end of the broker."""

import threading
from collections.abc import Iterator

import pytest

from odradek.base.threads import (
    SupervisedExecutor,
    SupervisedThread,
    failed_threads,
    start_worker,
    stop_on_failure,
)


@pytest.fixture
def reasons() -> Iterator[list[str]]:
    heard: list[str] = []
    stop_on_failure(heard.append)
    yield heard
    stop_on_failure(None)


def fail() -> None:
    raise LookupError("not foreseen")


def run(thread: SupervisedThread) -> None:
    thread.start()
    thread.join()


def test_the_end_of_an_essential_thread_ends_the_broker(reasons: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = failed_threads()
    run(SupervisedThread(fail, "processor-0"))
    assert reasons == ["the thread processor-0 failed: LookupError: not foreseen"]
    assert failed_threads() == before + 1
    reported = capsys.readouterr().err
    assert "thread failed" in reported
    assert "LookupError" in reported


def test_without_another_thread_the_broker_goes_on(reasons: list[str]) -> None:
    before = failed_threads()
    run(SupervisedThread(fail, "recorder", is_essential=False))
    assert reasons == []
    assert failed_threads() == before + 1


def test_a_thread_that_returns_is_no_failure(reasons: list[str]) -> None:
    before = failed_threads()
    run(SupervisedThread(lambda number: None, "once", (1,)))
    assert (reasons, failed_threads()) == ([], before)


def test_a_failed_task_is_reported_and_the_next_is_carried_out(
    reasons: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = failed_threads()
    with SupervisedExecutor("loader") as executor:
        failed, carried_out = executor.submit(fail), executor.submit(pow, 2, exp=3)
        assert isinstance(failed.exception(60), LookupError)
        assert carried_out.result(60) == 8
    assert (reasons, failed_threads()) == ([], before + 1)
    reported = capsys.readouterr().err
    assert "task failed" in reported
    assert "thread=loader_0" in reported


def test_a_worker_that_can_not_be_started_is_none_of_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others do its work; where there are none, the caller has to know."""

    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    workers: list[threading.Thread] = []
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError, match="can't start"):
            start_worker(workers, SupervisedThread(lambda: None, "first"))
    assert workers == []
    start_worker(workers, SupervisedThread(lambda: None, "first"))
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", fail)
        start_worker(workers, SupervisedThread(lambda: None, "second"))
    assert [worker.name for worker in workers] == ["first"]
    workers[0].join()
