"""The same request to Odradek and to Apache Kafka, and a topic that both have."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest


class KafkaPair:
    def __init__(self, ours: BrokerClient, theirs: BrokerClient, topic: str) -> None:
        self.ours, self.theirs, self.topic = ours, theirs, topic
        created = CreatableTopic(name=topic, num_partitions=2, replication_factor=1)
        for answer in self.ask(CreateTopicsRequest(topics=[created], timeout_ms=30_000)):
            assert answer.topics[0].error_code == ErrorCode.NONE

    def ask(self, request: Any, version: int | None = None) -> tuple[Any, Any]:
        return self.ours.send(request, version), self.theirs.send(request, version)


@contextmanager
def connected_pair(our_servers: str, their_servers: str, topic: str) -> Iterator[KafkaPair]:
    with _client(our_servers) as ours, _client(their_servers) as theirs:
        yield KafkaPair(ours, theirs, topic)


def _client(bootstrap_servers: str) -> BrokerClient:
    host, _, port = bootstrap_servers.rpartition(":")
    return BrokerClient(host, int(port))
