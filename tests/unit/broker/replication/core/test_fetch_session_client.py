"""The follower's end of a fetch session: what is said again, and what isn't."""

from uuid import UUID

from odradek.base.errors import ErrorCode
from odradek.broker.replication.core.fetch_session_client import FetchSessionHandler, Position
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.fetch import FetchResponse

A, B = TopicPartition("a", 0), TopicPartition("b", 3)
ID_A, ID_B, NEW_ID = UUID(int=1), UUID(int=2), UUID(int=3)
AT_0 = Position(ID_A, leader_epoch=1, offset=0, last_epoch=-1, log_start_offset=0)

Said = tuple[list[tuple[str, int, int]], list[tuple[UUID, list[int]]]]


def said(session: FetchSessionHandler) -> Said:
    wanted, forgotten = session.next_topics()
    return (
        [(topic.topic, p.partition, p.fetch_offset) for topic in wanted for p in topic.partitions],
        [(topic.topic_id, topic.partitions) for topic in forgotten],
    )


def opened() -> FetchSessionHandler:
    """A session that the leader has opened, with both partitions said."""
    session = FetchSessionHandler(1000)
    session.want(A, AT_0)
    session.want(B, AT_0._replace(topic_id=ID_B))
    assert said(session) == ([("a", 0, 0), ("b", 3, 0)], [])
    assert session.accept(FetchResponse(session_id=9))
    assert (session.session_id, session.epoch) == (9, 1)
    return session


def test_only_what_changed_is_said_again() -> None:
    session = opened()
    session.want(A, AT_0._replace(offset=5))
    session.want(B, AT_0._replace(topic_id=ID_B))
    assert said(session) == ([("a", 0, 5)], [])
    assert session.accept(FetchResponse(session_id=9))
    assert session.epoch == 2
    assert said(session) == ([], [])


def test_what_is_wanted_no_longer_is_said_once() -> None:
    session = opened()
    session.forget(B)
    assert said(session) == ([], [(ID_B, [3])])
    assert said(session) == ([], [])


def test_forgotten_and_wanted_again_is_as_if_nothing_had_been() -> None:
    session = opened()
    session.forget(A)
    session.want(A, AT_0._replace(offset=7))
    assert said(session) == ([("a", 0, 7)], [])


def test_a_topic_made_anew_takes_the_place_of_the_old_one() -> None:
    session = opened()
    session.want(A, AT_0._replace(topic_id=NEW_ID))
    assert said(session) == ([("a", 0, 0)], [(ID_A, [0])])
    assert session.topic_names[NEW_ID.int] == "a"


def test_after_a_failure_everything_is_said_in_a_new_session_that_ends_the_old_one() -> None:
    session = opened()
    session.forget(B)
    session.restart()
    assert (session.session_id, session.epoch) == (9, 0)
    assert said(session) == ([("a", 0, 0)], [])


def test_a_session_that_the_leader_does_not_know_is_not_named_again() -> None:
    session = opened()
    assert not session.accept(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    assert (session.session_id, session.epoch) == (0, 0)


def test_without_a_session_everything_is_said_each_time_and_who_got_something_comes_last() -> None:
    session = FetchSessionHandler(1000)
    session.want(A, AT_0)
    session.want(B, AT_0._replace(topic_id=ID_B))
    said(session)
    assert session.accept(FetchResponse(session_id=0))
    session.want(A, AT_0._replace(offset=4))
    assert said(session) == ([("b", 3, 0), ("a", 0, 4)], [])
