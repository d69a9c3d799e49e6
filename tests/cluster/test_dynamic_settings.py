"""Settings of brokers that change while they run: obeyed at once, kept over a restart, told by confluent-kafka."""

import socket
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ConfigSource, ResourceType
from kazoo.client import KazooClient

from odradek.base.errors import ErrorCode
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from waiting import PATIENCE_S, eventually

from .own_broker import STEADY, OwnBroker, batch_of, produce

BROKER, SET, DELETE = 4, 0, 1


@pytest.fixture(scope="module")
def broker(zookeeper: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBroker]:
    broker = OwnBroker(tmp_path_factory.mktemp("dynamic"), zookeeper, **STEADY)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def admin(broker: OwnBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


class Refused(Exception):
    pass


def change(broker: OwnBroker, name: str, **settings: str | None) -> None:
    """Underscores stand for dots; None takes a setting back. No client but Kafka's own can name all brokers."""
    changes = [
        AlterableConfig(name=key.replace("_", "."), config_operation=DELETE if value is None else SET, value=value)
        for key, value in settings.items()
    ]
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=changes)
    with broker.client() as client:
        (answer,) = client.send(IncrementalAlterConfigsRequest(resources=[resource])).responses
    if answer.error_code:
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        raise Refused(answer.error_message)


def described(admin: AdminClient) -> dict[str, ConfigEntry]:
    (told,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "0")]).values()
    return told.result(PATIENCE_S)


def set_since(admin: AdminClient) -> dict[str, str]:
    static = (ConfigSource.STATIC_BROKER_CONFIG.value, ConfigSource.DEFAULT_CONFIG.value)
    return {name: entry.value for name, entry in described(admin).items() if entry.source not in static}


def size_refused(broker: OwnBroker, topic: str) -> bool:
    with broker.client() as client:
        code = produce(client, topic, batch_of(b"x" * 5_000)).error_code
    assert code in (ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE)
    return bool(code)


def test_defaults_of_topics_hold_at_once_and_after_a_restart(broker: OwnBroker, admin: AdminClient) -> None:
    broker.create_topic("sizes")
    assert not size_refused(broker, "sizes")
    change(broker, "", message_max_bytes="3000")
    assert size_refused(broker, "sizes")
    change(broker, "0", message_max_bytes="9000")
    assert not size_refused(broker, "sizes")
    change(broker, "0", message_max_bytes=None)
    broker.stop()
    broker.start()
    assert size_refused(broker, "sizes")
    entry = described(admin)["message.max.bytes"]
    assert (entry.value, entry.source) == ("3000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value)
    change(broker, "", message_max_bytes=None)
    assert set_since(admin) == {}
    assert not size_refused(broker, "sizes")


def test_what_somebody_else_wrote_into_zookeeper_is_obeyed(
    broker: OwnBroker, admin: AdminClient, zookeeper: str
) -> None:
    """As another broker does it, or Kafka's older tools. What makes no sense there doesn't hinder the rest."""
    writer = KazooClient(f"{zookeeper}/{broker.directory.name}")
    writer.start()

    def write(settings: str) -> None:
        content = f'{{"version":1,"config":{settings}}}'.encode()
        writer.ensure_path("/config/brokers/<default>")
        writer.set("/config/brokers/<default>", content)
        notice = b'{"version":2,"entity_path":"brokers/<default>"}'
        writer.create("/config/changes/config_change_", notice, sequence=True)

    write('{"message.max.bytes":"3000","num.io.threads":"many","broker.id":"9"}')
    eventually(lambda: size_refused(broker, "sizes"))
    assert set_since(admin) == {"message.max.bytes": "3000"}
    write("{}")
    eventually(lambda: not size_refused(broker, "sizes"))
    writer.stop()
    writer.close()


def test_where_a_value_comes_from(broker: OwnBroker, admin: AdminClient) -> None:
    change(broker, "", log_retention_ms="5000")
    change(broker, "0", log_retention_ms="7000")
    entry = described(admin)["log.retention.ms"]
    assert (entry.value, entry.source) == ("7000", ConfigSource.DYNAMIC_BROKER_CONFIG.value)
    sources = [(name, s.value, s.source) for name, s in entry.synonyms.items()]
    assert ("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG.value) in sources
    change(broker, "", log_retention_ms=None)
    change(broker, "0", log_retention_ms=None)


def test_threads_come_and_go_while_clients_ask(broker: OwnBroker, admin: AdminClient) -> None:
    for network, handlers in ((6, 16), (3, 8), (2, 4), (4, 8), (3, 8)):
        change(broker, "0", num_network_threads=str(network), num_io_threads=str(handlers))
        for _ in range(2 * network):
            with broker.client() as client:
                assert produce(client, "sizes", batch_of(b"x")).error_code == ErrorCode.NONE
        assert described(admin)["num.network.threads"].value == str(network)
    change(broker, "0", num_network_threads=None, num_io_threads=None)


def test_the_cleaner_and_the_fetchers_get_other_threads(broker: OwnBroker, admin: AdminClient) -> None:
    change(broker, "0", log_cleaner_threads="2", num_replica_fetchers="2", log_cleaner_backoff_ms="100")
    assert described(admin)["log.cleaner.threads"].value == "2"
    change(broker, "0", log_cleaner_threads=None, num_replica_fetchers=None, log_cleaner_backoff_ms=None)


def test_an_address_may_have_so_many_connections(broker: OwnBroker, admin: AdminClient) -> None:
    change(broker, "0", max_connections_per_ip_overrides="127.0.0.2:2")

    def connected() -> socket.socket:
        return socket.create_connection(("127.0.0.1", broker.port), 10, source_address=("127.0.0.2", 0))

    held = [connected(), connected()]
    with connected() as third:
        third.settimeout(PATIENCE_S)
        assert third.recv(1) == b"", "it was let in"
    change(broker, "0", max_connections_per_ip_overrides=None)
    with connected() as fourth:
        fourth.settimeout(0.5)
        with pytest.raises(TimeoutError):
            fourth.recv(1)
    for one in held:
        one.close()


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("0", {"broker_id": "7"}, "Cannot update these configs dynamically: Set(broker.id)"),
        ("", {"listeners": "PLAINTEXT://:1"}, "broker id must be specified"),
        ("0", {"num_io_threads": "100"}, "not be greater than double the current value 8"),
        ("0", {"num_io_threads": "many"}, "Invalid value many for configuration num.io.threads"),
    ],
)
def test_what_cannot_change_is_refused_and_leaves_nothing(
    broker: OwnBroker, admin: AdminClient, name: str, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(Refused) as caught:
        change(broker, name, **settings)
    assert words in str(caught.value)
    assert set_since(admin) == {}


def test_settings_of_other_kinds_of_brokers_are_kept_and_masked(broker: OwnBroker, admin: AdminClient) -> None:
    change(broker, "0", com_example_secret="hush")
    entry = described(admin)["com.example.secret"]
    assert (entry.value, entry.is_sensitive) == (None, True)
    change(broker, "0", com_example_secret=None)
