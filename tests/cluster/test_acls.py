"""ACLs on two brokers: created, obeyed at once, kept as Kafka keeps them, and denied where they can't be read."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from waiting import eventually

from .own_broker import STEADY, OwnBroker, running

AUTHORIZER = {
    "authorizer_class_name": "kafka.security.authorizer.AclAuthorizer",
    "super_users": "User:admin;User:ANONYMOUS",
}
TOPIC, LITERAL, PREFIXED, READ, WRITE, ALLOW = 2, 3, 4, 3, 4, 3
ANY = 1


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, zookeeper: str) -> Iterator[OwnBroker]:
    with running(OwnBroker(tmp_path_factory.mktemp("acls"), zookeeper, **AUTHORIZER, **STEADY)) as broker:
        yield broker


@pytest.fixture
def client(broker: OwnBroker) -> Iterator[BrokerClient]:
    with broker.client() as client:
        yield client


@pytest.fixture
def tree(broker: OwnBroker, zookeeper: str) -> Iterator[KazooClient]:
    tree = KazooClient(f"{zookeeper}/{broker.directory.name}")
    tree.start()
    yield tree
    tree.stop()


def creation(name: str, principal: str = "User:alice", pattern: int = LITERAL, **fields: int | str) -> AclCreation:
    values: dict[str, int | str] = {"resource_type": TOPIC, "host": "*", "operation": READ, "permission_type": ALLOW}
    return AclCreation(resource_name=name, principal=principal, resource_pattern_type=pattern, **(values | fields))  # type: ignore[arg-type]


def described(client: BrokerClient, name: str, pattern: int = LITERAL) -> set[str]:
    answer = client.send(
        DescribeAclsRequest(
            resource_type_filter=TOPIC,
            resource_name_filter=name,
            pattern_type_filter=pattern,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
    )
    assert answer.error_code == 0
    return {acl.principal for resource in answer.resources for acl in resource.acls}


def deletion(name: str, principal: str | None = None, pattern: int = LITERAL) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=TOPIC,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=principal,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )


def test_cve_2024_27309_remove_one_of_three_leaves_two(client: BrokerClient, tree: KazooClient) -> None:
    users = ("User:alice", "User:bob", "User:carol")
    answer = client.send(CreateAclsRequest(creations=[creation("three", user) for user in users]))
    assert [result.error_code for result in answer.results] == [0, 0, 0]
    assert described(client, "three") == set(users)
    (result,) = client.send(DeleteAclsRequest(filters=[deletion("three", "User:bob")])).filter_results
    assert [acl.principal for acl in result.matching_acls] == ["User:bob"]
    assert described(client, "three") == {"User:alice", "User:carol"}
    kept = json.loads(tree.get("/kafka-acl/Topic/three")[0])
    assert kept == {
        "version": 1,
        "acls": [
            {"principal": user, "permissionType": "Allow", "operation": "Read", "host": "*"}
            for user in ("User:alice", "User:carol")
        ],
    }
    client.send(DeleteAclsRequest(filters=[deletion("three")]))
    assert tree.exists("/kafka-acl/Topic/three") is None
    assert described(client, "three") == set()


def test_prefixed_patterns_have_their_own_place(client: BrokerClient, tree: KazooClient) -> None:
    client.send(CreateAclsRequest(creations=[creation("pre", pattern=PREFIXED)]))
    assert json.loads(tree.get("/kafka-acl-extended/prefixed/Topic/pre")[0])["acls"][0]["operation"] == "Read"
    notices = [
        json.loads(tree.get(f"/kafka-acl-extended-changes/{n}")[0])
        for n in tree.get_children("/kafka-acl-extended-changes")
    ]
    assert {"version": 1, "resourceType": "TOPIC", "name": "pre", "patternType": "PREFIXED"} in notices
    assert described(client, "pre-fix", pattern=2) == {"User:alice"}
    client.send(DeleteAclsRequest(filters=[deletion("pre", pattern=PREFIXED)]))


def test_a_change_by_another_broker_is_obeyed_by_its_notice_and_an_unreadable_node_denies(
    client: BrokerClient, tree: KazooClient
) -> None:
    acl = {"principal": "User:dave", "permissionType": "Allow", "operation": "Read", "host": "*"}
    tree.create("/kafka-acl/Topic/foreign", json.dumps({"version": 1, "acls": [acl]}).encode())
    tree.create("/kafka-acl-changes/acl_changes_", b"TOPIC:foreign", sequence=True)
    eventually(lambda: described(client, "foreign") == {"User:dave"})
    tree.set("/kafka-acl/Topic/foreign", b"{broken")
    tree.create("/kafka-acl-changes/acl_changes_", b"TOPIC:foreign", sequence=True)
    eventually(lambda: described(client, "foreign") == set())
    (result,) = client.send(CreateAclsRequest(creations=[creation("foreign")])).results
    assert result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR, "what is there is not replaced unread"
    assert tree.get("/kafka-acl/Topic/foreign")[0] == b"{broken"


@pytest.mark.parametrize(
    "wanted",
    [
        creation(""),
        creation("a/b"),
        creation("x", principal="alice"),
        creation("x", resource_type=4),
        creation("x", resource_type=99),
        creation("x", operation=1),
        creation("x", permission_type=1),
        creation("x", pattern=2),
        creation("."),
    ],
)
def test_what_can_be_no_acl_is_refused_alone(client: BrokerClient, wanted: AclCreation) -> None:
    answer = client.send(CreateAclsRequest(creations=[wanted, creation("good")]))
    assert [result.error_code for result in answer.results] == [ErrorCode.INVALID_REQUEST, 0]
    assert answer.results[0].error_message


def test_without_an_authorizer_the_requests_are_refused(tmp_path: Path, bootstrap: str) -> None:
    host, _, port = bootstrap.rpartition(":")
    with BrokerClient(host, int(port)) as client:
        (created,) = client.send(CreateAclsRequest(creations=[creation("x")])).results
        (deleted,) = client.send(DeleteAclsRequest(filters=[deletion("x")])).filter_results
        described = client.send(DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1))
    assert {created.error_code, deleted.error_code, described.error_code} == {ErrorCode.SECURITY_DISABLED}
