"""Legal requests that no client sends: Odradek refuses them as Apache Kafka does."""

import socket
import struct
from typing import Any

import pytest

from odradek.base.errors import ErrorCode
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.list_transactions import ListTransactionsRequest

from .conftest import unused_name
from .kafka_pair import KafkaPair
from .test_group_requests_like_kafka import Asker
from .test_group_versions import until_no_error

pytestmark = pytest.mark.timeout(180)

NO_SUCH_TYPE = 99


@pytest.mark.parametrize("client_id", [b"caf\xe9", b"\xff" * 0x7FFF, b"\xc3\x28\0"])
def test_a_client_id_that_is_not_utf_8(pair: KafkaPair, client_id: bytes) -> None:
    request = struct.pack(">hhih", ApiKey.METADATA, 1, 7, len(client_id)) + client_id + struct.pack(">i", 0)
    for client in (pair.ours, pair.theirs):
        host, _, port = client.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            assert connection.makefile("rb").read(8)[4:] == struct.pack(">i", 7)


@pytest.mark.parametrize("endpoint_type", [-1, 0, 1, 2, 3])
def test_endpoints_of_a_type_that_brokers_lack(pair: KafkaPair, endpoint_type: int) -> None:
    ours, theirs = pair.ask(DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert ours.error_code == theirs.error_code
    assert bool(ours.error_message) == bool(theirs.error_message)
    assert (len(ours.brokers), ours.controller_id) == (len(theirs.brokers), theirs.controller_id)


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("members", [[], [MemberIdentity(member_id="a")]])
def test_members_that_leave_no_group(pair: KafkaPair, members: list[MemberIdentity], version: int) -> None:
    for client in (pair.ours, pair.theirs):
        Asker(client, pair.topic, unused_name()).await_coordinator()
    for group in ("", unused_name()):
        ours, theirs = (
            (answer.error_code, [(member.member_id, member.error_code) for member in answer.members])
            for answer in pair.ask(LeaveGroupRequest(group_id=group, members=members), version)
        )
        assert ours == theirs


@pytest.mark.parametrize("version", [5, 6, 7, 9])
def test_a_protocol_without_a_name(pair: KafkaPair, version: int) -> None:
    group, answers = unused_name(), []
    for client in (pair.ours, pair.theirs):
        me = Asker(client, pair.topic, group)
        me.await_coordinator()
        me.join("joined", version, "", group_instance_id="static")
        answers.append(me.told["joined"])
    assert answers[0] == answers[1]


def test_unknown_states_of_transactions_are_named_once(pair: KafkaPair) -> None:
    for client in (pair.ours, pair.theirs):

        def coordinator_error(client: Any = client) -> int:
            request = FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])
            return int(client.send(request, 4).coordinators[0].error_code)

        until_no_error(coordinator_error)
        until_no_error(lambda client=client: client.send(ListTransactionsRequest()).error_code)
    ours, theirs = pair.ask(ListTransactionsRequest(state_filters=["no state", "Empty", "empty", "no state"]))
    assert sorted(ours.unknown_state_filters) == sorted(theirs.unknown_state_filters) == ["empty", "no state"]


def test_resources_of_an_unknown_type_are_refused_with_a_sentence(pair: KafkaPair) -> None:
    resources = [DescribeConfigsResource(resource_type=NO_SUCH_TYPE, resource_name="any")]
    for answer in pair.ask(DescribeConfigsRequest(resources=resources)):
        (result,) = answer.results
        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert result.error_message
