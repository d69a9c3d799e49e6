"""Commits that come together are written together: in their order, each answered for itself, none left behind."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from slow_stage import WAIT_S, Stage

from odradek.base.errors import ErrorCode


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    stage.lead(0)
    stage.log.at_once = True
    yield stage
    stage.groups.stop()


@pytest.fixture
def processor() -> Iterator[ThreadPoolExecutor]:
    """A thread that serves requests in bursts."""
    with ThreadPoolExecutor(1) as processor:
        yield processor


def test_a_burst_of_commits_is_one_batch(stage: Stage, processor: ThreadPoolExecutor) -> None:
    def burst() -> list[list[ErrorCode]]:
        stage.groups.end_burst()
        answers = [stage.commit(f"group-{number}", number) for number in range(100)]
        assert answers == [[]] * 100, "nobody is answered before it is written"
        assert [stage.committed(f"group-{number}") for number in range(100)] == [None] * 100
        stage.groups.end_burst()
        return answers

    assert processor.submit(burst).result(WAIT_S) == [[ErrorCode.NONE]] * 100
    assert [len(records) for records in stage.log.written] == [100]
    assert [stage.committed(f"group-{number}") for number in range(100)] == list(range(100))


def test_whoever_writes_at_once_writes_first_what_was_gathered_before(
    stage: Stage, processor: ThreadPoolExecutor
) -> None:
    processor.submit(stage.groups.end_burst).result(WAIT_S)
    first = processor.submit(stage.commit, "g", 1).result(WAIT_S)
    second = stage.commit("g", 2)
    assert first == second == [ErrorCode.NONE]
    assert stage.committed("g") == 2
    stage.resign(1)
    stage.lead(2)
    stage.settle_tenures()
    assert stage.committed("g") == 2, "so does the log"


def test_what_is_too_large_takes_nobody_along(stage: Stage, processor: ThreadPoolExecutor) -> None:
    def burst() -> list[list[ErrorCode]]:
        stage.groups.end_burst()
        answers = [stage.commit("small", 1), stage.commit("large", 2, metadata="x" * 4_000), stage.commit("other", 3)]
        stage.groups.end_burst()
        return answers

    stage.log.bytes_max = 1_000
    answers = processor.submit(burst).result(WAIT_S)
    assert answers == [[ErrorCode.NONE], [ErrorCode.INVALID_COMMIT_OFFSET_SIZE], [ErrorCode.NONE]]
    assert [stage.committed(group) for group in ("small", "large", "other")] == [1, None, 3]


def test_who_is_given_up_is_written_before_the_next_reads(stage: Stage, processor: ThreadPoolExecutor) -> None:
    """The burst has not ended when the partition goes and comes back: its commit is in the log that is read then."""
    processor.submit(stage.groups.end_burst).result(WAIT_S)
    answers = processor.submit(stage.commit, "g", 7).result(WAIT_S)
    stage.resign(1)
    stage.lead(2)
    stage.settle_tenures()
    assert (answers, stage.committed("g")) == ([ErrorCode.NONE], 7)
    processor.submit(stage.groups.end_burst).result(WAIT_S)
    assert len(stage.log.written) == 1


def test_a_topic_of_very_many_groups_is_forgotten_in_few_batches(stage: Stage) -> None:
    for number in range(2_500):
        stage.commit(f"group-{number}", number)
    written = len(stage.log.written)
    stage.groups.forget_topic("orders")
    assert [len(records) for records in stage.log.written[written:]] == [1_000, 1_000, 500]
    assert stage.groups.list_groups() == []


def test_memory_is_what_the_log_says_whoever_wrote_it(stage: Stage) -> None:
    """Threads that serve in bursts and threads that don't commit for the same groups at the same time."""
    groups = [f"group-{number}" for number in range(5)]

    def commit(worker: int) -> list[list[ErrorCode]]:
        answers = []
        for step in range(300):
            if worker % 2 and step % 7 == 0:
                stage.groups.end_burst()
            answers.append(stage.commit(groups[(step * (worker + 1)) % len(groups)], worker * 1_000 + step))
        stage.groups.end_burst()
        return answers

    with ThreadPoolExecutor(4) as workers:
        answered = [answers for worker in workers.map(commit, range(4)) for answers in worker]
    assert answered == [[ErrorCode.NONE]] * 1_200
    in_memory = {group: stage.committed(group) for group in groups}
    stage.resign(1)
    stage.lead(2)
    stage.settle_tenures()
    assert {group: stage.committed(group) for group in groups} == in_memory
