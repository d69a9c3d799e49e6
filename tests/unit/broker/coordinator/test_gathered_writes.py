"""Commits that come together are written together: in their order, each answered for itself, none left behind."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TypeVar

import pytest
from slow_stage import WAIT_S, Stage

from odradek.base.errors import ErrorCode

T = TypeVar("T")


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    stage.lead(0)
    stage.log.at_once = True
    yield stage
    stage.groups.stop()


class ServingThread:
    """A thread that serves requests in rounds, as a processor's: it flushes when a round ends."""

    def __init__(self, stage: Stage) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._rounds = stage.groups.deferred_writes()
        self.end_round = self.run(self._rounds.__enter__)

    def run(self, action: Callable[..., T], *arguments: object) -> T:
        return self._pool.submit(action, *arguments).result(WAIT_S)

    def close(self) -> None:
        self.run(self._rounds.__exit__, None, None, None)
        self._pool.shutdown()


@pytest.fixture
def thread(stage: Stage) -> Iterator[ServingThread]:
    thread = ServingThread(stage)
    yield thread
    thread.close()


def test_commits_of_one_round_are_one_batch(stage: Stage, thread: ServingThread) -> None:
    def serve() -> list[list[ErrorCode]]:
        answers = [stage.commit(f"group-{number}", number) for number in range(100)]
        assert answers == [[]] * 100, "nobody is answered before it is written"
        assert [stage.committed(f"group-{number}") for number in range(100)] == [None] * 100
        thread.end_round()
        return answers

    assert thread.run(serve) == [[ErrorCode.NONE]] * 100
    assert [len(records) for records in stage.log.written] == [100]
    assert [stage.committed(f"group-{number}") for number in range(100)] == list(range(100))


def test_a_thread_that_flushes_appends_the_records_of_others_first(stage: Stage, thread: ServingThread) -> None:
    first = thread.run(stage.commit, "g", 1)
    second = stage.commit("g", 2)
    assert first == second == [ErrorCode.NONE]
    assert stage.committed("g") == 2
    stage.resign(1)
    stage.lead(2)
    stage.settle_tenures()
    assert stage.committed("g") == 2, "so does the log"


def test_a_batch_that_is_too_large_is_refused_alone(stage: Stage, thread: ServingThread) -> None:
    def serve() -> list[list[ErrorCode]]:
        answers = [stage.commit("small", 1), stage.commit("large", 2, metadata="x" * 4_000), stage.commit("other", 3)]
        thread.end_round()
        return answers

    stage.log.bytes_max = 1_000
    answers = thread.run(serve)
    assert answers == [[ErrorCode.NONE], [ErrorCode.INVALID_COMMIT_OFFSET_SIZE], [ErrorCode.NONE]]
    assert [stage.committed(group) for group in ("small", "large", "other")] == [1, None, 3]


def test_records_of_a_leadership_are_written_before_the_next_reads(stage: Stage, thread: ServingThread) -> None:
    """The round has not ended when the partition goes and comes back: its commit is in the log that is read then."""
    answers = thread.run(stage.commit, "g", 7)
    stage.resign(1)
    stage.lead(2)
    stage.settle_tenures()
    assert (answers, stage.committed("g")) == ([ErrorCode.NONE], 7)
    thread.run(thread.end_round)
    assert len(stage.log.written) == 1


def test_a_topic_of_very_many_groups_is_forgotten_in_few_batches(stage: Stage) -> None:
    for number in range(2_500):
        stage.commit(f"group-{number}", number)
    written = len(stage.log.written)
    stage.groups.forget_topic("orders")
    assert [len(records) for records in stage.log.written[written:]] == [1_000, 1_000, 500]
    assert stage.groups.list_groups() == []


def test_memory_is_what_the_log_says_after_writes_of_many_threads(stage: Stage) -> None:
    """Threads that serve in rounds and threads that don't commit for the same groups at the same time."""
    groups = [f"group-{number}" for number in range(5)]

    def commit(worker: int) -> list[list[ErrorCode]]:
        answers = []
        with stage.groups.deferred_writes() if worker % 2 else nullcontext(lambda: None) as end_round:
            for step in range(300):
                if step % 7 == 0:
                    end_round()
                answers.append(stage.commit(groups[(step * (worker + 1)) % len(groups)], worker * 1_000 + step))
        return answers

    with ThreadPoolExecutor(4) as workers:
        answered = [answers for worker in workers.map(commit, range(4)) for answers in worker]
    assert answered == [[ErrorCode.NONE]] * 1_200
    in_memory = {group: stage.committed(group) for group in groups}
    stage.resign(1)
    stage.lead(2)
    stage.settle_tenures()
    assert {group: stage.committed(group) for group in groups} == in_memory
