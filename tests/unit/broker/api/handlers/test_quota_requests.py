"""Setting and asking for quotas without a network, over configurations that remember. Kafka's own answers to the same
requests are in tests/cluster/test_admin_like_kafka.py."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import RequestContext
from odradek.broker.api.handlers.alter_client_quotas import alter_client_quotas
from odradek.broker.api.handlers.describe_client_quotas import describe_client_quotas
from odradek.broker.api.handlers.describe_user_scram_credentials import describe_user_scram_credentials
from odradek.protocol.messages import alter_client_quotas as alter
from odradek.protocol.messages import describe_client_quotas as describe
from odradek.protocol.messages import describe_user_scram_credentials as scram

Nodes = dict[str, dict[str, dict[str, str]]]


@dataclass
class Configs:
    nodes: Nodes = field(default_factory=lambda: {"users": {}, "clients": {}, "ips": {}})

    def load(self, entity_type: str, name: str) -> dict[str, str]:
        return dict(self.nodes[entity_type].get(name, {}))

    def load_all(self, entity_type: str) -> dict[str, dict[str, str]]:
        return self.nodes[entity_type]

    def replace(self, entity_type: str, name: str, values: dict[str, str]) -> None:
        self.nodes[entity_type][name] = dict(values)


@dataclass
class Broker:
    configs: Configs
    authorizer: None = None


@dataclass
class Context:
    broker: Broker


@pytest.fixture
def configs() -> Configs:
    return Configs()


def context(configs: Configs) -> RequestContext:
    return cast(RequestContext, Context(Broker(configs)))


def set_quota(
    configs: Configs, entity: dict[str, str | None], validate_only: bool = False, **quotas: float | None
) -> tuple[int, str | None]:
    entry = alter.EntryData(
        entity=[alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[alter.OpData(key=key, value=value or 0, remove=value is None) for key, value in quotas.items()],
    )
    request = alter.AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    (result,) = alter_client_quotas(request, context(configs)).entries
    assert {part.entity_type: part.entity_name for part in result.entity} == entity
    return result.error_code, result.error_message


def test_quotas_are_kept_as_kafka_keeps_them(configs: Configs) -> None:
    configs.nodes["users"]["a%20b"] = {"SCRAM-SHA-256": "iterations=4096"}
    assert set_quota(configs, {"user": "a b"}, producer_byte_rate=1000.0) == (ErrorCode.NONE, None)
    set_quota(configs, {"user": "a b", "client-id": None}, request_percentage=50)
    set_quota(configs, {"client-id": "c/d"}, consumer_byte_rate=5, controller_mutation_rate=0.5)
    set_quota(configs, {"client-id": "c/d"}, consumer_byte_rate=None)
    set_quota(configs, {"ip": "127.0.0.1"}, connection_creation_rate=14)
    set_quota(configs, {"ip": None}, connection_creation_rate=15)
    set_quota(configs, {"user": "checked only"}, validate_only=True, producer_byte_rate=1)
    assert configs.nodes == {
        "users": {
            "a%20b": {"SCRAM-SHA-256": "iterations=4096", "producer_byte_rate": "1000"},
            "a%20b/clients/<default>": {"request_percentage": "50.0"},
        },
        "clients": {"c%2Fd": {"controller_mutation_rate": "0.5"}},
        "ips": {"127.0.0.1": {"connection_creation_rate": "14"}, "<default>": {"connection_creation_rate": "15"}},
    }


@pytest.mark.parametrize(
    ("entity", "quotas", "words"),
    [
        ({}, {"producer_byte_rate": 1.0}, "empty client quota entity"),
        ({"foo": "x"}, {"producer_byte_rate": 1.0}, "entity type: foo"),
        ({"user": ""}, {"producer_byte_rate": 1.0}, "Empty user"),
        ({"user": "."}, {"producer_byte_rate": 1.0}, "A user can't be named ."),
        ({"user": "u", "client-id": ".."}, {"producer_byte_rate": 1.0}, "A client-id can't be named .."),
        ({"user": "u", "ip": "127.0.0.1"}, {"producer_byte_rate": 1.0}, "combined"),
        ({"ip": "no host"}, {"connection_creation_rate": 1.0}, "not a valid IP"),
        ({"ip": "127.0.0.1"}, {"producer_byte_rate": 1.0}, "Invalid configuration key producer_byte_rate"),
        ({"user": "u"}, {"nope": 1.0}, "Invalid configuration key nope"),
        ({"user": "u"}, {"producer_byte_rate": 1.5}, "whole number of 64 bits"),
        ({"user": "u"}, {"producer_byte_rate": 1e20}, "whole number of 64 bits"),
        ({"ip": None}, {"connection_creation_rate": 3e9}, "whole number of 32 bits"),
        ({"user": "u"}, {"request_percentage": float("nan")}, "must be 0 or more"),
        ({"user": "u"}, {"request_percentage": float("inf")}, "must be 0 or more"),
        ({"user": "u"}, {"controller_mutation_rate": -1.0}, "must be 0 or more"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    configs: Configs, entity: dict[str, str | None], quotas: dict[str, Any], words: str
) -> None:
    code, message = set_quota(configs, entity, **quotas)
    assert code == ErrorCode.INVALID_REQUEST
    assert words in (message or "")
    assert not any(configs.nodes.values())


@pytest.mark.parametrize("component", [("user", 3, None), ("user", 0, None), ("", 2, None), ("foo", 2, None)], ids=str)
def test_filters_that_make_no_sense_are_refused(configs: Configs, component: tuple[str, int, str | None]) -> None:
    kind, how, name = component
    asked = describe.ComponentData(entity_type=kind, match_type=how, match=name)
    answer = describe_client_quotas(describe.DescribeClientQuotasRequest(components=[asked]), context(configs))
    assert answer.error_code in (ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION)
    assert answer.entries is None


def test_what_is_no_quota_is_not_told(configs: Configs) -> None:
    configs.nodes["users"] = {"alice": {"SCRAM-SHA-256": "secret"}, "bob": {"producer_byte_rate": "what"}}
    answer = describe_client_quotas(describe.DescribeClientQuotasRequest(components=[]), context(configs))
    assert (answer.error_code, answer.entries) == (ErrorCode.NONE, [])


def test_who_has_credentials_is_told_and_not_which(configs: Configs) -> None:
    credential = "salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=8192"
    configs.nodes["users"] = {"alice": {"SCRAM-SHA-512": credential}, "bob": {"producer_byte_rate": "1"}}
    answer = describe_user_scram_credentials(scram.DescribeUserScramCredentialsRequest(users=None), context(configs))
    (result,) = answer.results
    assert (result.user, result.error_code) == ("alice", ErrorCode.NONE)
    assert [(info.mechanism, info.iterations) for info in result.credential_infos] == [(2, 8192)]
