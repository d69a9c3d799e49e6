"""Authorization, request by request and right by right: Odradek answers what Apache Kafka's AclAuthorizer answers.

Both brokers give every right to 127.0.0.1, from where they talk to themselves and the test administers them. The
stranger connects from 127.0.0.2 and has the rights that each test gives it, alone.
"""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from kazoo.client import KazooClient

from apache_kafka import KafkaPeer
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.schema import Struct
from waiting import eventually

from .authorization_of_transactions import other_requests, requests_of_transactions
from .authorization_requests import BETWEEN_BROKERS, GHOST, GROUP, SEEN, TXN, requests_of
from .own_broker import STEADY, OwnBroker, batch_of, produce, running

AUTHORIZER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
ALONE = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
HOME, ELSEWHERE = "127.0.0.1", "127.0.0.2"
TOPIC, IN_GROUP, CLUSTER, TRANSACTION = 2, 3, 4, 5
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = range(2, 10)
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12
ALLOW, DENY, LITERAL, PREFIXED = 3, 2, 3, 4
DENIALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
TOLD = ("name", "transactional_id", "topic", "topic_name", "group_id", "key", "feature", "user", "resource_name")

UNKNOWN_ID = UUID(int=77)
Acl = tuple[int, str, int]
RIGHTS: dict[str, list[Acl]] = {
    "nothing": [],
    **{
        f"{operation} {kind}:{name}": [(kind, name, operation)]
        for kind, name, operations in (
            (TOPIC, SEEN, (READ, WRITE, ALTER, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, CREATE)),
            (TOPIC, GHOST, (READ, DELETE, DESCRIBE, CREATE)),
            (IN_GROUP, GROUP, (READ, DESCRIBE, DELETE)),
            (TRANSACTION, TXN, (WRITE, DESCRIBE, ALL)),
            (
                CLUSTER,
                "kafka-cluster",
                (CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, ALL),
            ),
        )
        for operation in operations
    },
    "a consumer": [(TOPIC, SEEN, READ), (IN_GROUP, GROUP, READ)],
    "a transactional producer": [(TRANSACTION, TXN, WRITE), (TOPIC, SEEN, WRITE)],
    "a transactional producer that may not write": [(TRANSACTION, TXN, WRITE), (TOPIC, SEEN, DESCRIBE)],
    "offsets in a transaction": [(TRANSACTION, TXN, WRITE), (IN_GROUP, GROUP, READ), (TOPIC, SEEN, READ)],
    "a group in a transaction, and no topic": [(TRANSACTION, TXN, WRITE), (IN_GROUP, GROUP, READ)],
    "another transactional id": [(TRANSACTION, "other", ALL), (TOPIC, SEEN, ALL), (IN_GROUP, GROUP, ALL)],
    "groups": [(IN_GROUP, GROUP, READ), (IN_GROUP, "no-such-group", ALL), (TOPIC, SEEN, ALL)],
}


def seed(zookeeper: str) -> None:
    """Every right for everybody at home, before the broker starts."""
    tree = KazooClient(zookeeper)
    tree.start()
    entry = {"principal": "User:*", "permissionType": "Allow", "operation": "All", "host": HOME}
    content = json.dumps({"version": 1, "acls": [entry]}).encode()
    for resource in ("Topic/*", "Group/*", "TransactionalId/*", "Cluster/kafka-cluster"):
        tree.create(f"/kafka-acl/{resource}", content, makepath=True)
    tree.stop()


def client_from(address: str, port: int) -> BrokerClient:
    connect = socket.create_connection
    with patch("odradek.client.connection.socket.create_connection", lambda to, s: connect(to, s, (address, 0))):
        return BrokerClient("127.0.0.1", port)


class Side:
    """One of the two systems: its administrator and the stranger."""

    def __init__(self, port: int) -> None:
        self.admin, self.stranger = client_from(HOME, port), client_from(ELSEWHERE, port)
        created = CreatableTopic(name=SEEN, num_partitions=1, replication_factor=1)
        (answer,) = self.admin.send(CreateTopicsRequest(topics=[created], timeout_ms=30_000)).topics
        self.topic_id = answer.topic_id
        eventually(self._is_ready)

    def _is_ready(self) -> bool:
        found = [self.admin.send(FindCoordinatorRequest(key=key, key_type=n), 3) for n, key in enumerate((GROUP, TXN))]
        producers = [
            self.admin.send(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000))
            for name in (None, TXN)
        ]
        codes = {answer.error_code for answer in (*found, *producers)}
        return codes == {0} and produce(self.admin, SEEN, batch_of(b"v")).error_code == 0

    def grant(self, *acls: Acl, permission: int = ALLOW, pattern: int = LITERAL) -> None:
        creations = [
            AclCreation(
                resource_type=kind,
                resource_name=name,
                resource_pattern_type=pattern,
                principal="User:ANONYMOUS",
                host=ELSEWHERE,
                operation=operation,
                permission_type=permission,
            )
            for kind, name, operation in acls
        ]
        answer = self.admin.send(CreateAclsRequest(creations=creations))
        assert [result.error_code for result in answer.results] == [0] * len(acls)

    def revoke_all(self) -> None:
        everything = DeleteAclsFilter(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=ELSEWHERE,
            operation=1,
            permission_type=1,
        )
        self.admin.send(DeleteAclsRequest(filters=[everything]))

    def answers(self) -> dict[str, Any]:
        found = {
            label: (told if label not in BETWEEN_BROKERS else is_denied)(self.stranger.send(request, version))
            for label, request, version in [*requests_of(self.topic_id), *other_requests()]
        }
        for label, request, version in requests_of_transactions():
            found[f"{label} in a transaction"] = denials(told(self.stranger.send(request, version)))
        return found


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, zookeeper: str, kafka_lib: Path) -> Iterator[tuple[Side, Side]]:
    directory = tmp_path_factory.mktemp("authorized")
    seed(f"{zookeeper}/{directory.name}")
    settings = {key.replace(".", "_"): value for key, value in (AUTHORIZER | ALONE).items()}
    ours = OwnBroker(directory, zookeeper, **STEADY, **settings)
    theirs = KafkaPeer(kafka_lib, tmp_path_factory.mktemp("authorized-kafka"), AUTHORIZER, seed)
    with running(ours):
        try:
            theirs.start()
            yield Side(ours.port), Side(int(theirs.bootstrap_servers.rpartition(":")[2]))
        finally:
            theirs.stop()


def is_denied(answer: Any) -> bool:
    return bool(answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def told(answer: Any) -> Any:
    """Error codes, rights, and the names that they are about."""
    if isinstance(answer, Struct):
        found = {name: told(getattr(answer, name)) for name in answer.FIELDS}
        return {
            name: value
            for name, value in found.items()
            if name.endswith(("error_code", "authorized_operations"))
            or name in TOLD
            or (isinstance(value, list) and name != "aborted_transactions")
        }
    if isinstance(answer, list):
        return sorted((told(each) for each in answer if isinstance(each, Struct)), key=repr)
    return answer


def denials(answer: Any) -> Any:
    """What `told` found, without the errors of allowed requests."""
    if isinstance(answer, dict):
        return {
            name: (value if value in DENIALS else 0) if name.endswith("error_code") else denials(value)
            for name, value in answer.items()
        }
    return [denials(each) for each in answer] if isinstance(answer, list) else answer


def same(sides: tuple[Side, Side]) -> None:
    ours, theirs = sides[0].answers(), sides[1].answers()
    different = [
        f"{label}: ours {ours[label]} theirs {theirs[label]}" for label in theirs if ours[label] != theirs[label]
    ]
    assert not different, "\n".join(different)


@pytest.mark.parametrize("rights", RIGHTS.values(), ids=RIGHTS)
def test_with_these_rights_alone(sides: tuple[Side, Side], rights: list[Acl]) -> None:
    try:
        for side in sides:
            side.grant(*rights)
        same(sides)
    finally:
        for side in sides:
            side.revoke_all()


def test_a_denial_and_a_prefix(sides: tuple[Side, Side]) -> None:
    try:
        for side in sides:
            side.grant((TOPIC, "s", ALL), (IN_GROUP, GROUP[0], ALL), pattern=PREFIXED)
            side.grant((TOPIC, SEEN, WRITE), (TOPIC, SEEN, DESCRIBE_CONFIGS), permission=DENY)
        same(sides)
        assert sides[0].answers()["produce seen"] != sides[0].answers()["fetch seen"]
    finally:
        for side in sides:
            side.revoke_all()


def test_a_topic_that_may_be_described_is_not_created_by_asking_for_it(sides: tuple[Side, Side]) -> None:
    try:
        for side in sides:
            side.grant((TOPIC, "auto", DESCRIBE))
            asked = MetadataRequest(topics=[MetadataRequestTopic(name="auto")], allow_auto_topic_creation=True)
            (topic,) = side.stranger.send(asked, 9).topics
            assert topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    finally:
        for side in sides:
            side.revoke_all()


@pytest.mark.parametrize(
    "rights", [[], [(TOPIC, SEEN, DESCRIBE)], [(TOPIC, SEEN, READ)]], ids=["none", "Describe", "Read"]
)
def test_the_name_behind_a_topic_id_is_told_to_those_who_may_describe_it(
    sides: tuple[Side, Side], rights: list[Acl]
) -> None:
    try:
        answers = []
        for side in sides:
            side.grant(*rights)
            asked = [
                DeleteTopicState(name=None, topic_id=side.topic_id),
                DeleteTopicState(name=None, topic_id=UNKNOWN_ID),
            ]
            answers.append(told(side.stranger.send(DeleteTopicsRequest(topics=asked, timeout_ms=10_000))))
        assert answers[0] == answers[1]
        assert (SEEN in repr(answers[0])) == bool(rights)
    finally:
        for side in sides:
            side.revoke_all()


def test_a_denied_transactional_id(sides: tuple[Side, Side]) -> None:
    try:
        for side in sides:
            side.grant((TRANSACTION, "*", ALL), (TOPIC, SEEN, ALL), (IN_GROUP, GROUP, ALL))
            side.grant((TRANSACTION, TXN[0], WRITE), permission=DENY, pattern=PREFIXED)
        same(sides)
        answers = sides[0].answers()
        assert answers["produce seen"] != answers["produce seen in a transaction"]
    finally:
        for side in sides:
            side.revoke_all()
