"""Fetch sessions of a consumer, request by request: Odradek answers as Apache Kafka does."""

from collections.abc import Sequence

import pytest

from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

from .kafka_pair import KafkaPair

pytestmark = pytest.mark.timeout(180)

MISSING = 7


class Consumer:
    def __init__(self, client: BrokerClient, topic: str) -> None:
        self._client, self._topic = client, topic
        self.session_id = 0
        self.told: list[tuple[str, int, bool, list[tuple[int, int]]]] = []

    def fetch(self, what: str, epoch: int, named: Sequence[int] = (), forgotten: Sequence[int] = ()) -> None:
        """Take over the session that the answer names; note whether it names one, and each partition's error."""
        topic = FetchTopic(
            topic=self._topic,
            partitions=[FetchPartition(partition=p, fetch_offset=0, partition_max_bytes=1000) for p in named],
        )
        answer = self._client.send(
            FetchRequest(
                session_id=self.session_id,
                session_epoch=epoch,
                topics=[topic] if named else [],
                forgotten_topics_data=[ForgottenTopic(topic=self._topic, partitions=list(forgotten))],
            ),
            12,
        )
        partitions = [(p.partition_index, p.error_code) for each in answer.responses for p in each.partitions]
        self.told.append((what, answer.error_code, answer.session_id != 0, sorted(partitions)))
        self.session_id = answer.session_id or self.session_id


def test_sessions(pair: KafkaPair) -> None:
    consumers = [Consumer(client, pair.topic) for client in (pair.ours, pair.theirs)]
    for me in consumers:
        me.fetch("open", 0, (0, 1, MISSING))
        me.fetch("nothing new", 1)
        me.fetch("forget one", 2, forgotten=(MISSING,))
        me.fetch("epoch again", 2)
        me.fetch("add one", 3, (MISSING,))
        me.fetch("forget all but one", 4, forgotten=(0, 1))
        me.fetch("forget the last", 5, forgotten=(MISSING,))
        me.fetch("of the empty session", 6)
        me.fetch("open again", 0, (0,))
        me.fetch("replace the last", 1, (1,), forgotten=(0,))
        me.fetch("close", -1, (1,))
        me.fetch("closed", 2)
    ours, theirs = (me.told for me in consumers)
    assert ours == theirs
