"""All that admin clients offer, done once with each, in order: what every call gave, as plain values.

What differs between any two clusters (addresses, ids, paths, times, the words of error messages) is left out, so that
the same story told to two clusters compares.
"""

import asyncio
import json
import re
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from enum import Enum
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.admin.config_resource import ConfigResource as AioResource
from aiokafka.admin.config_resource import ConfigResourceType as AioResourceType
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ElectionType,
    IsolationLevel,
    Producer,
    TopicCollection,
)
from confluent_kafka import TopicPartition as RdPartition
from confluent_kafka import admin as rd
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, TopicPartitionReplica
from kafka.admin import (
    ConfigResource,
    ConfigResourceType,
    MemberToRemove,
    OffsetSpec,
    OffsetTimestamp,
)
from kafka.structs import OffsetAndMetadata

from foreign_clients import franz_program, kafkajs_program
from waiting import PATIENCE_S

Story = list[tuple[str, Any]]
_DIFFERS = re.compile(
    r"^(host|port|cluster_?(id)?|.*topic_?id|id|uuid|(log_?)?dir|.*timestamp|(partition_)?size|total_?bytes|usable_?bytes"
    r"|.*message|member_?id|client_host|producer_?id|throttle_time_ms|api_.*|controller_epoch|node|rack)$",
    re.IGNORECASE,
)
_OF_THEIR_OWN = ("listeners", "max.connections")


def plain(value: Any) -> Any:
    """Dictionaries, lists, strings and numbers, whatever a client makes of an answer."""
    if isinstance(value, str):
        if value.startswith("/"):
            return "(path)"
        told = re.match(r"\[Error \d+\] \w+", value)
        return told[0] if told else "(words)" if value.count(" ") > 2 else value
    if value is None or isinstance(value, bool | int | float | bytes):
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, BaseException):
        return type(value).__name__
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items() if not _DIFFERS.match(str(key))}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        items = [plain(item) for item in value]
        # brokers answer about several things in the order that their maps have them
        return sorted(items, key=str) if any(isinstance(item, dict | list) for item in items) else items
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=str)
    if hasattr(value, "code") and callable(value.code):  # librdkafka's errors
        return value.name() if hasattr(value, "name") else value.code()
    if isinstance(value, RdPartition):
        return f"{value.topic}-{value.partition} {value.offset} {plain(value.error)}"
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    fields = getattr(value, "__dict__", None) or {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return plain({name: item for name, item in fields.items() if not name.startswith("_")})


def outcome(ask: Callable[[], Any]) -> Any:
    try:
        return plain(ask())
    except Exception as error:
        inner = error.args[0] if error.args and hasattr(error.args[0], "code") else None
        return {"raised": type(error).__name__} if inner is None else {"raised": plain(inner)}


def kafka_python_story(bootstrap: str, name: str) -> Story:
    """Story of kafka-python's KafkaAdminClient."""
    group, tp, missing = f"{name}-group", TopicPartition(name, 0), TopicPartition(f"{name}-missing", 0)
    topic = ConfigResource(ConfigResourceType.TOPIC, name)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        _write_and_read(bootstrap, admin, name, group)
        calls: dict[str, Callable[[], Any]] = {
            "create again": lambda: admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1}}),
            "create badly": lambda: admin.create_topics({"a b": {"num_partitions": 1, "replication_factor": 1}}),
            "create too much": lambda: admin.create_topics(
                {f"{name}-x": {"num_partitions": 1, "replication_factor": 9}}, validate_only=True
            ),
            "grow": lambda: admin.create_partitions({name: 3}),
            "grown": lambda: _until(lambda: _all_led(admin.describe_topics([name]), 3)),
            "shrink": lambda: admin.create_partitions({name: 1}),
            "topics": lambda: name in admin.list_topics(),
            "describe": lambda: admin.describe_topics([name]),
            "describe missing": lambda: admin.describe_topics([missing.topic]),
            "describe partitions": lambda: admin.describe_topic_partitions([name]),
            "cluster": lambda: admin.describe_cluster(),
            "features": lambda: _without(admin.describe_features(), "transaction.version"),  # which Kafka 3.9 has not
            "update features": lambda: admin.update_features({"metadata.version": (1, 1)}),
            "quorum": lambda: admin.describe_metadata_quorum(),
            "set": lambda: admin.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "1234567"})]
            ),
            "set badly": lambda: admin.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "soon"})]
            ),
            "set only if valid": lambda: admin.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, name, {"segment.bytes": "1000000"})], validate_only=True
            ),
            "modified": lambda: admin.describe_configs([topic]),
            "all": lambda: admin.describe_configs([topic], include_synonyms=True, config_filter="all"),
            "broker": lambda: _without_limits(
                admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "0")], config_filter="dynamic")
            ),
            "reset": lambda: admin.reset_configs([ConfigResource(ConfigResourceType.TOPIC, name, ["retention.ms"])]),
            "config resources": lambda: admin.list_config_resources(),
            "offsets": lambda: [
                admin.list_partition_offsets({tp: spec})
                for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST, OffsetTimestamp(0))
            ],
            "delete records": lambda: admin.delete_records({tp: 1}),
            "delete too many": lambda: admin.delete_records({tp: 1000}),
            "delete records of none": lambda: admin.delete_records({missing: 1}),
            "groups": lambda: [item for item in admin.list_groups() if item["group_id"] == group],
            "group": lambda: admin.describe_groups([group]),
            "no group": lambda: admin.describe_groups([f"{name}-nobody"]),
            "committed": lambda: admin.list_group_offsets({group: None}),
            "alter offsets": lambda: admin.alter_group_offsets(group, {tp: OffsetAndMetadata(2, "by hand", -1)}),
            "reset offsets": lambda: admin.reset_group_offsets(group, {tp: OffsetSpec.LATEST}),
            "committed now": lambda: admin.list_group_offsets({group: [tp]}),
            "remove nobody": lambda: admin.remove_group_members(group, [MemberToRemove(member_id="nobody")]),
            "delete offsets": lambda: admin.delete_group_offsets(group, [tp]),
            "delete group": lambda: admin.delete_groups([group]),
            "delete no group": lambda: admin.delete_groups([f"{name}-nobody"]),
            "elect": lambda: admin.elect_leaders(0, {name: [0]}, raise_errors=False),
            "elect unclean": lambda: admin.elect_leaders(1, {name: [0], missing.topic: [0]}, raise_errors=False),
            "move": lambda: admin.alter_partition_reassignments({tp: [0], missing: [0]}),
            "move nowhere": lambda: admin.alter_partition_reassignments({tp: [7]}),
            "cancel": lambda: admin.alter_partition_reassignments({tp: None}),
            "moves": lambda: admin.list_partition_reassignments(),
            "directories": lambda: admin.describe_log_dirs({name: [0, 1]}),
            "other directory": lambda: admin.alter_replica_log_dirs({TopicPartitionReplica(name, 0, 0): "/nowhere"}),
            "producers": lambda: admin.describe_producers([tp]),
            "producers of none": lambda: admin.describe_producers([missing]),
            "transactions": lambda: admin.list_transactions(),
            "users": lambda: admin.describe_user_scram_credentials(),
            "delete": lambda: admin.delete_topics([name]),
            "delete again": lambda: admin.delete_topics([missing.topic]),
        }
        return [(said, outcome(ask)) for said, ask in calls.items()]
    finally:
        admin.close()


def _without_limits(settings: Any) -> Any:
    """Settings that differ: addresses, and the limit of connections, which is lower in Odradek by default."""
    return {name: value for name, value in settings["broker"]["0"].items() if not name.startswith(_OF_THEIR_OWN)}


def _until(there: Callable[[], bool]) -> bool:
    """Both clusters answer before every broker has heard of a change."""
    deadline = time.monotonic() + PATIENCE_S
    while not there() and time.monotonic() < deadline:
        time.sleep(0.1)
    return there()


def _all_led(topics: Any, partitions: int) -> bool:
    return sum(partition["leader_id"] >= 0 for partition in topics[0]["partitions"]) == partitions


def _write_and_read(bootstrap: str, admin: KafkaAdminClient, name: str, group: str) -> None:
    admin.create_topics({name: {"num_partitions": 2, "replication_factor": 1}}, wait_for_metadata=True)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(6):
        producer.send(name, b"%d" % number, partition=number % 2)
    producer.flush()
    producer.close()
    consumer = KafkaConsumer(name, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    seen = 0
    while seen < 6:
        seen += sum(map(len, consumer.poll(1000).values()))
    consumer.commit()
    consumer.close()


def confluent_story(bootstrap: str, name: str) -> Story:
    """Story of confluent-kafka's AdminClient, which is librdkafka's."""
    group, missing = f"{name}-group", f"{name}-missing"
    admin = rd.AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    producer = Producer({"bootstrap.servers": bootstrap})

    def each(futures: Mapping[Any, Future[Any]]) -> list[Any]:
        return [(plain(key), outcome(lambda: future.result(PATIENCE_S))) for key, future in futures.items()]  # noqa: B023

    def topic(**settings: str) -> Any:
        return rd.ConfigResource(rd.ConfigResource.Type.TOPIC, name, set_config=settings)

    def change(kind: Any, of: str, key: str, value: str | None, how: Any) -> Any:
        entry = rd.ConfigEntry(key, value, incremental_operation=how)
        return rd.ConfigResource(kind, of, incremental_configs=[entry])

    def write() -> int:
        for number in range(6):
            producer.produce(name, b"%d" % number, partition=number % 2)
        return producer.flush(PATIENCE_S)

    of_topic, of_broker, of_group = (rd.ConfigResource.Type[kind] for kind in ("TOPIC", "BROKER", "GROUP"))
    add, take, put, drop = (rd.AlterConfigOpType[how] for how in ("APPEND", "SUBTRACT", "SET", "DELETE"))
    calls: dict[str, Callable[[], Any]] = {
        "create": lambda: each(admin.create_topics([rd.NewTopic(name, 2, 1, config={"retention.ms": "1234567"})])),
        "create again": lambda: each(admin.create_topics([rd.NewTopic(name, 2, 1)])),
        "create with assignment": lambda: each(
            admin.create_topics([rd.NewTopic(f"{name}-a", 2, replica_assignment=[[0], [0]])], validate_only=True)
        ),
        "create on nobody": lambda: each(
            admin.create_topics([rd.NewTopic(f"{name}-b", 1, replica_assignment=[[7]])], validate_only=True)
        ),
        "create with a bad setting": lambda: each(
            admin.create_topics([rd.NewTopic(f"{name}-c", 1, 1, config={"nosuch": "1"})])
        ),
        "write": write,
        "grow": lambda: each(admin.create_partitions([rd.NewPartitions(name, 3)])),
        "grown": lambda: _until(lambda: len(admin.list_topics(name, PATIENCE_S).topics[name].partitions) == 3),
        "shrink": lambda: each(admin.create_partitions([rd.NewPartitions(name, 2)])),
        "describe": lambda: each(admin.describe_topics(TopicCollection([name, missing]))),
        "described with rights": lambda: each(
            admin.describe_topics(TopicCollection([name]), include_authorized_operations=True)
        ),
        "cluster": lambda: admin.describe_cluster(include_authorized_operations=True).result(PATIENCE_S),
        "replace settings": lambda: each(admin.alter_configs([topic(**{"segment.bytes": "1048576"})])),
        "append": lambda: each(
            admin.incremental_alter_configs([change(of_topic, name, "cleanup.policy", "compact", add)])
        ),
        "subtract": lambda: each(
            admin.incremental_alter_configs([change(of_topic, name, "cleanup.policy", "delete", take)])
        ),
        "append to a number": lambda: each(
            admin.incremental_alter_configs([change(of_topic, name, "segment.bytes", "1", add)])
        ),
        "settings": lambda: each(admin.describe_configs([topic()])),
        "set broker": lambda: each(
            admin.incremental_alter_configs([change(of_broker, "0", "log.cleaner.threads", "2", put)])
        ),
        "set what is fixed": lambda: each(
            admin.incremental_alter_configs([change(of_broker, "0", "log.dirs", "/tmp", put)])
        ),
        "drop from broker": lambda: each(
            admin.incremental_alter_configs([change(of_broker, "0", "log.cleaner.threads", None, drop)])
        ),
        "set group": lambda: each(
            admin.incremental_alter_configs([change(of_group, group, "consumer.session.timeout.ms", "50000", put)])
        ),
        "offsets": lambda: [
            each(admin.list_offsets({RdPartition(name, 0): spec}))
            for spec in (
                rd.OffsetSpec.earliest(),
                rd.OffsetSpec.latest(),
                rd.OffsetSpec.for_timestamp(0),
            )
        ],
        "committed offsets": lambda: each(
            admin.list_offsets(
                {RdPartition(name, 0): rd.OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_COMMITTED
            )
        ),
        "delete records": lambda: each(admin.delete_records([RdPartition(name, 0, 1)])),
        "delete too many": lambda: each(admin.delete_records([RdPartition(name, 0, 1000)])),
        "commit by hand": lambda: each(
            admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [RdPartition(name, 0, 2)])])
        ),
        "committed": lambda: each(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])),
        "groups": lambda: [
            item
            for item in admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(PATIENCE_S).valid
            if item.group_id == group
        ],
        "group": lambda: each(admin.describe_consumer_groups([group, f"{name}-nobody"])),
        "delete groups": lambda: each(admin.delete_consumer_groups([group, f"{name}-nobody"])),
        "elect": lambda: admin.elect_leaders(ElectionType.PREFERRED, [RdPartition(name, 0)]).result(PATIENCE_S),
        "elect unclean": lambda: admin.elect_leaders(
            ElectionType.UNCLEAN, [RdPartition(name, 1), RdPartition(missing, 0)]
        ).result(PATIENCE_S),
        "users": lambda: admin.describe_user_scram_credentials().result(PATIENCE_S),
        "delete": lambda: each(admin.delete_topics([name, missing])),
    }
    return [(said, outcome(ask)) for said, ask in calls.items()]


def aiokafka_story(bootstrap: str, name: str) -> Story:
    """Story of aiokafka's AIOKafkaAdminClient."""

    async def tell() -> Story:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.create_topics([AioNewTopic(name, 2, 1)])
            await producer.start()
            for number in range(6):
                await producer.send_and_wait(name, b"%d" % number, partition=number % 2)
            return [(said, await _awaited(ask)) for said, ask in _aiokafka_calls(admin, name)]
        finally:
            await producer.stop()
            await admin.close()

    return asyncio.run(tell())


async def _grown(admin: AIOKafkaAdminClient, name: str, partitions: int) -> bool:
    """Metadata that doesn't name a topic which is not there, since asking would create it."""
    while True:
        [topic] = await admin.describe_topics([name])
        if sum(partition["leader"] >= 0 for partition in topic["partitions"]) == partitions:
            return True
        await asyncio.sleep(0.1)


async def _awaited(ask: Callable[[], Awaitable[Any]]) -> Any:
    try:
        found = await ask()
    except Exception as error:
        return {"raised": type(error).__name__}
    return plain(found)


def _without(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key != name}


def kafkajs_story(bootstrap: str, name: str) -> Story:
    return [(call, plain(found)) for call, found in _told_by([*kafkajs_program("story.js"), bootstrap, name])]


def franz_story(bootstrap: str, name: str) -> Story:
    told = _told_by([*franz_program(), bootstrap, name, "story"])
    return sorted((item["Call"], plain([item["Error"], item["Found"]])) for item in told)


def _told_by(command: list[str]) -> list[Any]:
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert outcome.returncode == 0, outcome.stderr
    story: list[Any] = json.loads(outcome.stdout)
    return story


def _aiokafka_calls(admin: AIOKafkaAdminClient, name: str) -> Iterator[tuple[str, Callable[[], Awaitable[Any]]]]:
    topic = AioResource(AioResourceType.TOPIC, name, {"retention.ms": "1234567"})

    async def settings() -> Any:
        [answer] = await admin.describe_configs([AioResource(AioResourceType.TOPIC, name)])
        return [entry[:2] for entry in answer.resources[0][4]]

    yield "create again", lambda: admin.create_topics([AioNewTopic(name, 2, 1)])
    yield "grow", lambda: admin.create_partitions({name: AioNewPartitions(3)})
    yield "grown", lambda: _grown(admin, name, 3)
    yield "describe", lambda: admin.describe_topics([name])
    yield "cluster", lambda: admin.describe_cluster()
    yield "set", lambda: admin.alter_configs([topic])
    yield "settings", settings
    yield "delete records", lambda: admin.delete_records({AioPartition(name, 0): RecordsToDelete(1)})
    yield "coordinator", lambda: admin.find_coordinator(f"{name}-group")
    yield "group", lambda: admin.describe_consumer_groups([f"{name}-group"])
    yield "committed", lambda: admin.list_consumer_group_offsets(f"{name}-group")
    yield "delete", lambda: admin.delete_topics([name, f"{name}-missing"])
