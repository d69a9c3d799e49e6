"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: the same requests to Odradek and to Apache Kafka.

The answers must be the same in everything but words: error messages are our own, and so is documentation.
"""

import time
from typing import Any

import pytest

from odradek.base.config.definition import ConfigSource
from odradek.base.config.deviations import DEVIATIONS
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.alter_configs import AlterableConfig as Setting
from odradek.protocol.messages.alter_configs import AlterConfigsRequest
from odradek.protocol.messages.alter_configs import AlterConfigsResource as Replaced
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from odradek.protocol.messages.incremental_alter_configs import AlterableConfig as Change
from odradek.protocol.messages.incremental_alter_configs import AlterConfigsResource as Changed
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

from .kafka_pair import KafkaPair

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, NO_SUCH_TYPE = 2, 4, 8, 16, 32, 77
SET, DELETE, APPEND, SUBTRACT, NO_SUCH_OPERATION = 0, 1, 2, 3, 9


# What either broker was started with, or was told by another test.
SET_BY_SOMEBODY = {
    "background.threads", "broker.id", "broker.rack", "group.initial.rebalance.delay.ms", "listeners", "log.dirs",
    "node.id",
    "offsets.topic.num.partitions", "offsets.topic.replication.factor", "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions", "transaction.state.log.replication.factor",
    "zookeeper.connect", "zookeeper.session.timeout.ms",
}  # fmt: skip


def overrides(pair: KafkaPair) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """Return the settings of the topic, on each side."""
    ours, theirs = pair.ask(DescribeConfigsRequest(resources=[described(TOPIC, pair.topic)]))
    return _overridden(ours.results[0]), _overridden(theirs.results[0])


def _overridden(result: DescribeConfigsResult) -> dict[str, str | None]:
    return {
        entry.name: entry.value for entry in result.configs if entry.config_source == ConfigSource.DYNAMIC_TOPIC_CONFIG
    }


def described(kind: int, name: str, keys: list[str] | None = None) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)


def entries(result: DescribeConfigsResult) -> dict[str, Any]:
    return {entry.name: entry for entry in result.configs}


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("kind", [TOPIC, BROKER])
def test_every_key_is_described_alike(pair: KafkaPair, kind: int, version: int) -> None:
    request = DescribeConfigsRequest(resources=[described(kind, pair.topic if kind == TOPIC else "0")])
    request.include_synonyms = version >= 1
    request.include_documentation = version >= 3
    our_answer, their_answer = pair.ask(request, version)
    ours, theirs = entries(our_answer.results[0]), entries(their_answer.results[0])
    assert {name for name in ours if not name.startswith("odradek.")} == set(theirs)
    for name, their in theirs.items():
        our = ours[name]
        assert (our.read_only, our.is_sensitive, our.config_type) == (
            their.read_only,
            their.is_sensitive,
            their.config_type,
        ), name
        assert (our.documentation is None) == (their.documentation is None), name
        if version == 0:
            # Kafka leaves the field out and says that nothing is a default.
            assert our.is_default or name in SET_BY_SOMEBODY, name
        elif our.config_source == their.config_source == ConfigSource.DEFAULT_CONFIG and name not in DEVIATIONS:
            assert (our.value, our.synonyms) == (their.value, their.synonyms), name
        else:
            assert name in SET_BY_SOMEBODY or name in DEVIATIONS, name


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (TOPIC, "no-such-topic"),
        (TOPIC, "not/a/name"),
        (TOPIC, ""),
        (BROKER, "7"),
        (BROKER, "seven"),
        (BROKER_LOGGER, ""),
        (BROKER_LOGGER, "7"),
        (CLIENT_METRICS, "any"),
        (CLIENT_METRICS, ""),
        (GROUP, "any"),
        (NO_SUCH_TYPE, "any"),
    ],
)
def test_what_cannot_be_described(pair: KafkaPair, kind: int, name: str) -> None:
    ours, theirs = pair.ask(DescribeConfigsRequest(resources=[described(kind, name)]))
    assert _codes(ours.results) == _codes(theirs.results)


def test_one_unknown_kind_spoils_the_whole_request(pair: KafkaPair) -> None:
    resources = [described(TOPIC, pair.topic), described(NO_SUCH_TYPE, "any")]
    ours, theirs = pair.ask(DescribeConfigsRequest(resources=resources))
    assert sorted(_codes(ours.results)) == sorted(_codes(theirs.results))


def _codes(results: list[Any]) -> list[tuple[int, str, int]]:
    return [(result.resource_type, result.resource_name, result.error_code) for result in results]


@pytest.mark.parametrize("keys", [["retention.ms"], ["retention.ms", "retention.ms", "nope"], []])
def test_only_what_was_asked_for(pair: KafkaPair, keys: list[str]) -> None:
    ours, theirs = pair.ask(DescribeConfigsRequest(resources=[described(TOPIC, pair.topic, keys)]))
    assert set(entries(ours.results[0])) == set(entries(theirs.results[0]))
    assert len(ours.results[0].configs) == len(theirs.results[0].configs)


def change(name: str, value: str | None, operation: int = SET) -> Change:
    return Change(name=name, config_operation=operation, value=value)


STORY: list[list[Change]] = [
    [change("retention.ms", "1000"), change("flush.ms", " 5 ")],
    [change("nope", "1")],
    [change("segment.bytes", "abc")],
    [change("segment.bytes", "13")],
    [change("cleanup.policy", "compact", APPEND)],
    [change("cleanup.policy", "compact", APPEND)],
    [change("cleanup.policy", "delete", SUBTRACT)],
    [change("cleanup.policy", "compact", SUBTRACT)],
    [change("cleanup.policy", "compact", APPEND)],
    [change("cleanup.policy", "foo", APPEND)],
    [change("segment.bytes", "3000", APPEND)],
    [change("leader.replication.throttled.replicas", "0:0,1:1", APPEND)],
    [change("leader.replication.throttled.replicas", "0:0", SUBTRACT)],
    [change("flush.ms", None, DELETE), change("max.message.bytes", "77")],
    [change("flush.ms", None, DELETE)],
    [change("nope", None, DELETE)],
    [change("flush.ms", "1"), change("flush.ms", "2")],
    [change("flush.ms", None)],
    [change("min.compaction.lag.ms", "10"), change("max.compaction.lag.ms", "5")],
    [change("remote.storage.enable", "true")],
    [change("remote.storage.enable", "false"), change("local.retention.ms", "5000")],
    [change("remote.log.copy.disable", "true")],
    [change("remote.log.delete.on.disable", "true")],
    [change("compression.gzip.level", "0")],
    [change("message.format.version", "9")],
    [change("min.cleanable.dirty.ratio", "0.25"), change("preallocate", "TRUE"), change("segment.bytes", "+5000")],
    [],
]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("validate_only", [True, False])
def test_a_story_of_changes_ends_alike(pair: KafkaPair, version: int, validate_only: bool) -> None:
    for changes in STORY:
        resource = Changed(resource_type=TOPIC, resource_name=pair.topic, configs=changes)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        ours, theirs = pair.ask(request, version)
        assert _codes(ours.responses) == _codes(theirs.responses), changes
        assert (ours.responses[0].error_message is None) == (theirs.responses[0].error_message is None), changes
        our_overrides, their_overrides = overrides(pair)
        assert our_overrides == their_overrides, changes


@pytest.mark.parametrize("version", range(3))
def test_replacing_everything_ends_alike(pair: KafkaPair, version: int) -> None:
    for settings in ({"flush.ms": "7"}, {"segment.ms": "x"}, {"nope": "1"}, {"segment.ms": None}, {}):
        for validate_only in (True, False):
            configs = [Setting(name=name, value=value) for name, value in settings.items()]
            resource = Replaced(resource_type=TOPIC, resource_name=pair.topic, configs=configs)
            ours, theirs = pair.ask(AlterConfigsRequest(resources=[resource], validate_only=validate_only), version)
            assert _codes(ours.responses) == _codes(theirs.responses), settings
            our_overrides, their_overrides = overrides(pair)
            assert our_overrides == their_overrides, settings


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (TOPIC, "no-such-topic"),
        (TOPIC, "not/a/name"),
        (TOPIC, ""),
        (BROKER, "7"),
        (BROKER, "seven"),
        (BROKER_LOGGER, "7"),
        (BROKER_LOGGER, ""),
        (CLIENT_METRICS, "any"),
        (GROUP, "any"),
        (NO_SUCH_TYPE, "any"),
    ],
)
def test_what_cannot_be_altered(pair: KafkaPair, kind: int, name: str) -> None:
    changed = Changed(resource_type=kind, resource_name=name, configs=[change("flush.ms", "1")])
    ours, theirs = pair.ask(IncrementalAlterConfigsRequest(resources=[changed]))
    assert _codes(ours.responses) == _codes(theirs.responses)
    replaced = Replaced(resource_type=kind, resource_name=name, configs=[Setting(name="flush.ms", value="1")])
    ours, theirs = pair.ask(AlterConfigsRequest(resources=[replaced]))
    assert _codes(ours.responses) == _codes(theirs.responses)


def test_a_key_that_a_running_broker_cannot_change(pair: KafkaPair) -> None:
    changed = Changed(resource_type=BROKER, resource_name="0", configs=[change("broker.id", "1")])
    ours, theirs = pair.ask(IncrementalAlterConfigsRequest(resources=[changed]))
    assert ours.responses == theirs.responses


MINE, EVERYBODY = "0", ""
BROKER_STORY: list[tuple[str, list[Change]]] = [
    (EVERYBODY, [change("log.retention.ms", "1000000"), change("log.flush.interval.ms", " 77 ")]),
    (MINE, [change("log.retention.ms", "2000000"), change("com.example.plugin", "x")]),
    (MINE, [change("log.cleanup.policy", "compact", APPEND)]),
    (MINE, [change("log.cleanup.policy", "delete", SUBTRACT), change("compression.type", "gzip")]),
    (MINE, [change("num.io.threads", "1", APPEND)]),
    (MINE, [change("num.io.threads", "abc")]),
    (MINE, [change("num.io.threads", "100")]),
    (MINE, [change("num.io.threads", "1")]),
    (MINE, [change("num.replica.fetchers", "0")]),
    (MINE, [change("log.retention.hours", "7")]),
    (EVERYBODY, [change("log.dirs", "/x")]),
    (EVERYBODY, [change("listeners", "PLAINTEXT://127.0.0.1:1")]),
    (EVERYBODY, [change("ssl.keystore.location", "/x")]),
    (MINE, [change("ssl.keystore.password", "x")]),
    (MINE, [change("log.cleaner.threads", "200")]),
    (MINE, [change("log.cleaner.threads", "0")]),
    (MINE, [change("max.connections.per.ip", "0")]),
    (MINE, [change("max.connections.per.ip.overrides", "127.0.0.1:abc")]),
    (MINE, [change("max.connections.per.ip.overrides", "127.0.0.9:500")]),
    (MINE, [change("max.connection.creation.rate", "0")]),
    (MINE, [change("log.retention.ms", "0")]),
    (MINE, [change("log.roll.ms", "0")]),
    (MINE, [change("metric.reporters", "x.y.Z")]),
    (EVERYBODY, [change("background.threads", "12"), change("transaction.partition.verification.enable", "false")]),
    (MINE, [change("log.local.retention.ms", "5000"), change("remote.fetch.max.wait.ms", "700")]),
    (MINE, [change("leader.replication.throttled.rate", "abc")]),
    (MINE, [change("leader.replication.throttled.rate", "1000000000")]),
    (EVERYBODY, [change("leader.replication.throttled.rate", "1000000001")]),
    (MINE, [change("broker.id", None, DELETE), change("no.such.key", None, DELETE)]),
    (MINE, [change("log.retention.ms", None, DELETE)]),
    (MINE, [change("flush.ms", "1"), change("flush.ms", "2")]),
]


def test_settings_of_brokers_change_alike(pair: KafkaPair) -> None:
    try:
        for name, changes in BROKER_STORY:
            resource = Changed(resource_type=BROKER, resource_name=name, configs=changes)
            ours, theirs = pair.ask(IncrementalAlterConfigsRequest(resources=[resource]))
            assert _codes(ours.responses) == _codes(theirs.responses), changes
        for kind, name in ((BROKER, MINE), (BROKER, EVERYBODY), (TOPIC, pair.topic)):
            request = DescribeConfigsRequest(resources=[described(kind, name)], include_synonyms=True)
            mine = _set_since(pair.ours.send(request))
            assert mine, name
            assert _when_like(mine, pair.theirs, request) == mine
    finally:
        nothing = [Replaced(resource_type=BROKER, resource_name=name, configs=[]) for name in (MINE, EVERYBODY)]
        answers = [answer.responses for answer in pair.ask(AlterConfigsRequest(resources=nothing))]
        assert _codes(answers[0]) == _codes(answers[1])


def _when_like(expected: dict[str, Any], theirs: BrokerClient, request: DescribeConfigsRequest) -> dict[str, Any]:
    """Kafka obeys a moment after it has answered."""
    deadline = time.monotonic() + 20
    while (told := _set_since(theirs.send(request))) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    return told


def _set_since(answer: Any) -> dict[str, Any]:
    """Return the dynamic settings of the broker, with all their fields."""
    (result,) = answer.results
    since = (ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    return {
        entry.name: (
            entry.value,
            entry.config_source,
            entry.read_only,
            entry.is_sensitive,
            entry.config_type,
            [(s.name, s.value, s.source) for s in entry.synonyms if s.source in since],
        )
        for entry in result.configs
        if entry.config_source in since
    }


LOGGERS = [
    (change("root", "INFO"), ErrorCode.NONE),
    (change("root", "LOUD"), ErrorCode.INVALID_CONFIG),
    (change("no.such.logger", "INFO"), ErrorCode.INVALID_CONFIG),
    (change("root", None, DELETE), ErrorCode.INVALID_REQUEST),
    (change("root", "INFO", APPEND), ErrorCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("level", "code"), LOGGERS)
def test_levels_of_loggers_are_set_alike(pair: KafkaPair, level: Change, code: ErrorCode) -> None:
    changed = Changed(resource_type=BROKER_LOGGER, resource_name="0", configs=[level])
    ours, theirs = pair.ask(IncrementalAlterConfigsRequest(resources=[changed]))
    assert _codes(ours.responses) == _codes(theirs.responses) == [(BROKER_LOGGER, "0", code)]
    ours, theirs = pair.ask(DescribeConfigsRequest(resources=[described(BROKER_LOGGER, "0", ["root"])]))
    our, their = entries(ours.results[0])["root"], entries(theirs.results[0])["root"]
    assert (our.value, our.config_source, our.read_only) == (their.value, their.config_source, their.read_only)


def test_a_resource_named_twice_is_not_altered(pair: KafkaPair) -> None:
    resources = [
        Changed(resource_type=TOPIC, resource_name=pair.topic, configs=[change("flush.ms", "1")]),
        Changed(resource_type=TOPIC, resource_name=pair.topic, configs=[change("flush.ms", "2")]),
    ]
    before = overrides(pair)
    ours = pair.ours.send(IncrementalAlterConfigsRequest(resources=resources))
    assert [answer.error_code for answer in ours.responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert overrides(pair) == before


def test_an_unknown_operation_is_refused(pair: KafkaPair) -> None:
    changed = Changed(
        resource_type=TOPIC, resource_name=pair.topic, configs=[change("flush.ms", "1", NO_SUCH_OPERATION)]
    )
    answer = pair.ours.send(IncrementalAlterConfigsRequest(resources=[changed]))
    assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST
