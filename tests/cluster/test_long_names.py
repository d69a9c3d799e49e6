"""Names as long as a string of the wire can be: errors that quote them are answered, and ids made of them refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from odradek.protocol.messages.describe_configs import ConfigResourceType
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.primitives import STRING_LENGTH_MAX

from .own_broker import STEADY, OwnBroker, running

LONGEST = "é" * (STRING_LENGTH_MAX // 2)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, zookeeper: str) -> Iterator[OwnBroker]:
    with running(OwnBroker(tmp_path_factory.mktemp("long"), zookeeper, **STEADY)) as started:
        yield started
        assert "Traceback" not in started.log


def told(answer: Any, code: ErrorCode) -> None:
    assert answer.error_code == code
    assert "é" * 10_000 in answer.error_message


def test_an_error_that_quotes_the_longest_name_is_answered(broker: OwnBroker) -> None:
    config = CreatableTopicConfig(name=LONGEST, value="1")
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=[config])
    resource = AlterConfigsResource(
        resource_type=ConfigResourceType.BROKER,
        resource_name=LONGEST,
        configs=[AlterableConfig(name="log.retention.ms", value="1")],
    )
    component = ComponentData(entity_type=LONGEST, match_type=0, match="u")
    with broker.client() as client:
        told(client.send(CreateTopicsRequest(topics=[topic])).topics[0], ErrorCode.INVALID_CONFIG)
        told(client.send(AlterConfigsRequest(resources=[resource])).responses[0], ErrorCode.INVALID_REQUEST)
        told(client.send(DescribeClientQuotasRequest(components=[component])), ErrorCode.UNSUPPORTED_VERSION)


@pytest.mark.parametrize(("client_id", "instance_id"), [(LONGEST, None), ("short", LONGEST)])
def test_a_member_whose_id_would_be_too_long_is_refused(
    broker: OwnBroker, client_id: str, instance_id: str | None
) -> None:
    """As by Kafka, which can't write it either. A group with such a member could not be stored."""
    request = JoinGroupRequest(
        group_id="readers",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )

    with BrokerClient("127.0.0.1", broker.port, client_id=client_id) as client:
        assert client.send(request).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
