"""Clients that send what brokers send, without the right to: they have none of the privileges of brokers."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.base.errors import ErrorCode
from odradek.broker.api.handlers.fetch import fetch
from odradek.broker.api.throttling import throttled
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.principal import KafkaPrincipal
from odradek.model.acls import AclEntry, AclOperation, PermissionType, ResourcePattern, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.controlled_shutdown import ControlledShutdownResponse
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

EVE = KafkaPrincipal("User", "eve")


class Broker:
    """What a fetch asks of its broker, and what it was told."""

    def __init__(self, *rights: AclOperation) -> None:
        self.opened: list[bool] = []
        self.errors: list[int] = []
        self.authorizer = AclAuthorizer([], allow_everyone_if_no_acl_found=False)
        entries = frozenset(AclEntry(str(EVE), "*", operation, PermissionType.ALLOW) for operation in rights)
        self.authorizer.set_acls({ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"): entries})
        self.fetch_sessions = self.replicas = self.metadata = self
        self.image = SimpleNamespace(topic_names={})
        self.config = SimpleNamespace(fetch_max_bytes=1000)
        self.quotas = SimpleNamespace(is_limiting=False, request=self, throttles=0, throttled_ms=0)

    def open(self, named: Any, *, by_topic_id: bool, is_follower: bool) -> None:
        self.opened.append(is_follower)

    def fetch(self, targets: Any, terms: Any, answer: Any) -> None:
        self.errors = [target.error for target in targets]

    def charge(self, user: str, client_id: str, amount: float) -> int:
        return 7


def context(broker: Broker, key: ApiKey, version: int) -> Any:
    connection = SimpleNamespace(principal=EVE, allowed_names=None, listener_name="L")
    muted: list[int] = []
    return SimpleNamespace(
        broker=broker,
        header=SimpleNamespace(api_key=key, api_version=version),
        version=version,
        request=SimpleNamespace(connection=connection, mute_connection=muted.append, muted=muted),
        connection=connection,
        principal=EVE,
        client_host="10.0.0.1",
        user="eve",
        client_id="c",
        throttle_ms=0,
        handled_ns=2,
        started_ns=1,
        is_from_broker=False,
        reply_with=lambda build: build,
    )


@pytest.mark.parametrize(
    ("rights", "replica_id", "is_follower", "error"),
    [
        ((), 3, False, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ((AclOperation.CLUSTER_ACTION,), 3, True, ErrorCode.NONE),
        ((AclOperation.CLUSTER_ACTION,), -1, False, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_a_pretended_follower_displaces_no_session_and_has_quotas(
    rights: tuple[AclOperation, ...], replica_id: int, is_follower: bool, error: ErrorCode
) -> None:
    broker = Broker(*rights)
    ctx = context(broker, ApiKey.FETCH, 12)
    topic = FetchTopic(topic="t", partitions=[FetchPartition(partition=0)])
    fetch(FetchRequest(replica_id=replica_id, session_epoch=0, topics=[topic]), cast(Any, ctx))
    assert broker.opened == [is_follower]
    assert ctx.is_from_broker is is_follower
    assert broker.errors == [error]


@pytest.mark.parametrize(("code", "muted"), [(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [7]), (ErrorCode.NONE, [])])
def test_denied_requests_of_brokers_are_throttled(code: ErrorCode, muted: list[int]) -> None:
    ctx = context(Broker(), ApiKey.CONTROLLED_SHUTDOWN, 3)
    throttled(cast(Any, ctx), ControlledShutdownResponse(error_code=code))
    assert ctx.request.muted == muted
