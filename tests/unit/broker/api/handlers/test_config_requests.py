"""The three config requests without a network: a broker's configuration and topics that remember."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from odradek.base.config import broker_config
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import ConfigSource
from odradek.base.config.keys import TOPIC_KEYS
from odradek.base.config.live_config import LiveConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.context import RequestContext
from odradek.broker.api.handlers.alter_configs import alter_configs
from odradek.broker.api.handlers.describe_configs import describe_configs
from odradek.broker.api.handlers.incremental_alter_configs import apply_operations, incremental_alter_configs
from odradek.protocol.messages import alter_configs as alter
from odradek.protocol.messages import describe_configs as describe
from odradek.protocol.messages import incremental_alter_configs as incremental
from odradek.protocol.messages.incremental_alter_configs import ConfigOperation

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS = 2, 4, 8, 16


def _with_a_secret() -> BrokerConfig:
    """A configuration that a broker without TLS would not start with: that it has no secrets yet is no reason to tell
    one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broker_config, "refuse_unsupported", lambda originals: None)
        properties = {"zookeeper.connect": "zk", "broker.id": "3", "ssl.key.password": "hunter2"}
        return BrokerConfig.from_properties(properties)


CONFIG = BrokerConfig.from_properties({"zookeeper.connect": "zk", "broker.id": "3"})


@dataclass
class Configs:
    overrides: dict[str, dict[str, str]] = field(default_factory=lambda: {"orders": {"retention.ms": "1000"}})
    brokers: dict[str, dict[str, str]] = field(default_factory=dict)
    live: LiveConfig = field(default_factory=lambda: LiveConfig(CONFIG))
    readings: int = 0

    def of_topics(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        self.readings += 1
        return {topic: dict(self.overrides[topic]) for topic in topics if topic in self.overrides}

    def of_topic(self, topic: str) -> dict[str, str]:
        if topic not in self.overrides:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return dict(self.overrides[topic])

    def set_topic(self, topic: str, overrides: dict[str, str]) -> None:
        self.overrides[topic] = dict(overrides)

    def of_broker(self, name: str) -> dict[str, str]:
        return dict(self.brokers.get(name, {}))

    def set_broker(self, name: str, values: dict[str, str]) -> None:
        self.brokers[name] = dict(values)
        self.live.adopt(self.of_broker("3"), self.of_broker(""))


@dataclass
class Services:
    configs: Configs = field(default_factory=Configs)
    id: int = 3
    authorizer: None = None

    @property
    def live(self) -> LiveConfig:
        return self.configs.live

    @property
    def config(self) -> BrokerConfig:
        return self.live.current


@dataclass
class Context:
    version: int = 1
    broker: Services = field(default_factory=Services)


def context(version: int = 1) -> tuple[RequestContext, Configs]:
    made = Context(version)
    return cast(RequestContext, made), made.broker.configs


def change(
    name: str, value: str | None, operation: ConfigOperation = ConfigOperation.SET
) -> incremental.AlterableConfig:
    return incremental.AlterableConfig(name=name, config_operation=operation, value=value)


def changed(kind: int, name: str, *changes: incremental.AlterableConfig) -> incremental.AlterConfigsResource:
    return incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=list(changes))


def test_lists_are_appended_to_and_subtracted_from() -> None:
    overrides: dict[str, str] = {}
    apply_operations(overrides, [change("cleanup.policy", "compact", ConfigOperation.APPEND)], TOPIC_KEYS)
    assert overrides == {"cleanup.policy": "delete,compact"}
    apply_operations(overrides, [change("cleanup.policy", "compact,delete", ConfigOperation.APPEND)], TOPIC_KEYS)
    assert overrides == {"cleanup.policy": "delete,compact"}
    apply_operations(overrides, [change("cleanup.policy", "delete", ConfigOperation.SUBTRACT)], TOPIC_KEYS)
    assert overrides == {"cleanup.policy": "compact"}
    apply_operations(overrides, [change("cleanup.policy", None, ConfigOperation.DELETE)], TOPIC_KEYS)
    assert overrides == {}


@pytest.mark.parametrize("name", ["segment.bytes", "nope"])
@pytest.mark.parametrize("operation", [ConfigOperation.APPEND, ConfigOperation.SUBTRACT])
def test_only_lists_can_be_appended_to(name: str, operation: ConfigOperation) -> None:
    with pytest.raises(KafkaError) as caught:
        apply_operations({}, [change(name, "1", operation)], TOPIC_KEYS)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_incremental_changes_keep_the_rest_and_alter_replaces_it() -> None:
    ctx, topics = context()
    request = incremental.IncrementalAlterConfigsRequest(resources=[changed(TOPIC, "orders", change("flush.ms", "5"))])
    (answer,) = incremental_alter_configs(request, ctx).responses
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert topics.overrides["orders"] == {"retention.ms": "1000", "flush.ms": "5"}
    resource = alter.AlterConfigsResource(
        resource_type=TOPIC, resource_name="orders", configs=[alter.AlterableConfig(name="segment.ms", value="9")]
    )
    alter_configs(alter.AlterConfigsRequest(resources=[resource]), ctx)
    assert topics.overrides["orders"] == {"segment.ms": "9"}


def test_validating_changes_nothing() -> None:
    ctx, topics = context()
    resource = changed(TOPIC, "orders", change("flush.ms", "5"))
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
    assert incremental_alter_configs(request, ctx).responses[0].error_code == ErrorCode.NONE
    assert topics.overrides["orders"] == {"retention.ms": "1000"}


def test_one_bad_resource_does_not_stop_the_others() -> None:
    ctx, topics = context()
    topics.overrides["other"] = {}
    resources = [
        changed(TOPIC, "orders", change("segment.bytes", "1")),
        changed(TOPIC, "absent", change("flush.ms", "1")),
        changed(TOPIC, "other", change("flush.ms", "1")),
    ]
    answers = incremental_alter_configs(incremental.IncrementalAlterConfigsRequest(resources=resources), ctx).responses
    assert [answer.error_code for answer in answers] == [
        ErrorCode.INVALID_CONFIG,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    assert "ConfigResource(type=TOPIC, name='orders'): Invalid value 1" in (answers[0].error_message or "")
    assert topics.overrides == {"orders": {"retention.ms": "1000"}, "other": {"flush.ms": "1"}}


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        (changed(BROKER, "3", change("advertised.listeners", "PLAINTEXT://a:1")), "restart the broker"),
        (changed(BROKER, "", change("advertised.listeners", "PLAINTEXT://a:1")), "broker id must be specified"),
        (changed(BROKER, "3", change("ssl.key.password", "x")), "only per-listener"),
        (changed(BROKER, "3", change("num.io.threads", "17")), "double the current value 8"),
        (changed(BROKER, "3", change("broker.id", "1")), "Cannot update these configs dynamically: Set(broker.id)"),
        (changed(BROKER, "4", change("log.retention.ms", "1")), "expected 3, but received 4"),
        (changed(BROKER, "x", change("log.retention.ms", "1")), "must be an integer"),
        (changed(BROKER_LOGGER, "4", change("root", "INFO")), "Expected 3, but received 4"),
        (changed(BROKER_LOGGER, "", change("root", "INFO")), "must be an integer"),
        (changed(BROKER_LOGGER, "3", change("root", None, ConfigOperation.DELETE)), "root logger"),
        (changed(BROKER_LOGGER, "3", change("root", "INFO", ConfigOperation.APPEND)), "APPEND operation"),
        (changed(CLIENT_METRICS, "x", change("interval.ms", "1")), "only supported for topics and brokers"),
        (changed(99, "x", change("a", "1")), "Unknown resource type 99"),
        (changed(TOPIC, "", change("flush.ms", "1")), "Default topic resources"),
        (changed(TOPIC, "orders", change("flush.ms", "1"), change("flush.ms", "2")), "duplicate config keys"),
        (changed(TOPIC, "orders", change("flush.ms", None)), "Null value not supported for : flush.ms"),
    ],
)
def test_refusals_say_why(resource: incremental.AlterConfigsResource, words: str) -> None:
    ctx, topics = context()
    (answer,) = incremental_alter_configs(
        incremental.IncrementalAlterConfigsRequest(resources=[resource]), ctx
    ).responses
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert words in (answer.error_message or "")
    assert topics.overrides["orders"] == {"retention.ms": "1000"}


def described(version: int = 4, kind: int = BROKER, name: str = "3", **options: Any) -> dict[str, Any]:
    ctx, _ = context(version)
    resource = describe.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    answer = describe_configs(describe.DescribeConfigsRequest(resources=[resource], **options), ctx)
    return {entry.name: entry for entry in answer.results[0].configs}


def test_documentation_and_synonyms_come_when_asked_for() -> None:
    assert described()["num.io.threads"].documentation is None
    assert described()["num.io.threads"].synonyms == []
    told = described(include_documentation=True, include_synonyms=True)["num.io.threads"]
    assert "Threads" in told.documentation
    assert [(s.name, s.value, s.source) for s in told.synonyms] == [
        ("num.io.threads", "8", ConfigSource.DEFAULT_CONFIG)
    ]


def test_secrets_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "CONFIG", _with_a_secret())
    entry = described(include_synonyms=True)["ssl.key.password"]
    assert (entry.value, entry.is_sensitive, entry.synonyms[0].value) == (None, True, None)


def test_version_0_tells_defaults() -> None:
    entries = described(version=0, kind=TOPIC, name="orders")
    assert not entries["retention.ms"].is_default
    assert entries["segment.ms"].is_default
    assert not described(version=1, kind=TOPIC, name="orders")["segment.ms"].is_default


def test_no_broker_wide_defaults_are_set() -> None:
    assert described(name="") == {}


def test_limits_of_moving_replicas_are_set_and_told_for_one_broker_and_for_all() -> None:
    ctx, configs = context(4)
    rate = "leader.replication.throttled.rate"
    resources = [changed(BROKER, "3", change(rate, "1000")), changed(BROKER, "", change(rate, "5"))]
    answers = incremental_alter_configs(incremental.IncrementalAlterConfigsRequest(resources=resources), ctx).responses
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE, ErrorCode.NONE]
    assert configs.brokers == {"3": {rate: "1000"}, "": {rate: "5"}}
    resource = describe.DescribeConfigsResource(resource_type=BROKER, resource_name="3", configuration_keys=[rate])
    (result,) = describe_configs(
        describe.DescribeConfigsRequest(resources=[resource], include_synonyms=True), ctx
    ).results
    assert [(entry.value, entry.config_source) for entry in result.configs] == [
        ("1000", ConfigSource.DYNAMIC_BROKER_CONFIG)
    ]
    assert [(s.value, s.source) for s in result.configs[0].synonyms] == [
        ("1000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("5", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
    ]


def test_a_limit_that_is_no_number_is_refused() -> None:
    ctx, configs = context()
    resource = changed(BROKER, "3", change("leader.replication.throttled.rate", "fast"))
    (answer,) = incremental_alter_configs(
        incremental.IncrementalAlterConfigsRequest(resources=[resource]), ctx
    ).responses
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "Invalid value fast for configuration leader.replication.throttled.rate" in (answer.error_message or "")
    assert configs.brokers == {}


def test_loggers_have_levels() -> None:
    ctx, _ = context()
    name = "broker.admin.logger_levels"

    def set_level(
        level: str | None, operation: ConfigOperation = ConfigOperation.SET, *, validate_only: bool = False
    ) -> int:
        resource = changed(BROKER_LOGGER, "3", change(name, level, operation))
        request = incremental.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        return int(incremental_alter_configs(request, ctx).responses[0].error_code)

    def level() -> Any:
        return described(kind=BROKER_LOGGER)[name].value

    root = described(kind=BROKER_LOGGER)["root"]
    assert (root.config_source, root.read_only) == (ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, False)
    assert set_level("DEBUG", validate_only=True) == ErrorCode.NONE
    assert level() == root.value
    assert set_level("DEBUG") == ErrorCode.NONE
    assert level() == "DEBUG"
    assert set_level("LOUD") == ErrorCode.INVALID_CONFIG
    assert set_level(None, ConfigOperation.DELETE) == ErrorCode.NONE
    assert level() == root.value


def test_many_topics_are_read_in_one_go_and_only_what_was_asked_for_is_told() -> None:
    ctx, topics = context()
    topics.overrides["other"] = {}
    keys = ["retention.ms", "flush.ms"]
    names = ["orders", "nowhere", "other"]
    asked = [
        describe.DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=keys)
        for name in names
    ]
    answer = describe_configs(describe.DescribeConfigsRequest(resources=asked), ctx)
    assert [sorted(entry.name for entry in told.configs) for told in answer.results] == [
        ["flush.ms", "retention.ms"],
        [],
        ["flush.ms", "retention.ms"],
    ]
    assert answer.results[1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topics.readings == 1
