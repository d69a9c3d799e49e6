"""CLIENT BOOTSTRAP TOPIC GROUP ASSIGNOR INSTANCE|-: the Python clients as readers of test_groups_of_all_clients.

Each record that was read is a line `R partition offset milliseconds`; each position whose commit was acknowledged is a
line `C partition position milliseconds`. SIGTERM: leave the group and end.
"""

import asyncio
import signal
import sys
import time
from types import FrameType

CLIENT, BOOTSTRAP, TOPIC, GROUP, ASSIGNOR, INSTANCE = sys.argv[1:]
SESSION_MS, HEARTBEAT_MS = 6000, 300


class Told(Exception):
    """To end."""


def end(number: int, frame: FrameType | None) -> None:
    raise Told


def tell(what: str, partition: int, offset: int) -> None:
    print(what, partition, offset, time.time_ns() // 1_000_000, flush=True)


def read_with_confluent() -> None:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    settings: dict[str, object] = {
        "bootstrap.servers": BOOTSTRAP,
        "group.id": GROUP,
        "partition.assignment.strategy": ASSIGNOR,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "session.timeout.ms": SESSION_MS,
        "log_level": 0,
    }
    if INSTANCE != "-":
        settings["group.instance.id"] = INSTANCE
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    try:
        while True:
            positions: dict[int, int] = {}
            for message in consumer.consume(500, 0.2):
                partition, offset = message.partition(), message.offset()
                if message.error() is None and partition is not None and offset is not None:
                    tell("R", partition, offset)
                    positions[partition] = offset + 1
            if not positions:
                continue
            try:
                done = consumer.commit(
                    offsets=[TopicPartition(TOPIC, *position) for position in positions.items()], asynchronous=False
                )
            except KafkaException as error:
                print(error, file=sys.stderr)
                continue
            for each in done or ():
                if each.error is None:
                    tell("C", each.partition, each.offset)
    except Told:
        consumer.close()


def read_with_kafka_python() -> None:
    from kafka import KafkaConsumer, OffsetAndMetadata
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaError

    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=BOOTSTRAP,
        group_id=GROUP,
        partition_assignment_strategy=(RangePartitionAssignor,),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=HEARTBEAT_MS,
        session_timeout_ms=SESSION_MS,
        max_poll_interval_ms=20_000,
    )
    try:
        while True:
            positions = {}
            for tp, records in consumer.poll(200).items():
                for record in records:
                    tell("R", record.partition, record.offset)
                positions[tp] = OffsetAndMetadata(records[-1].offset + 1, "", -1)
            if not positions:
                continue
            try:
                consumer.commit(positions)
            except KafkaError as error:
                print(error, file=sys.stderr)
                continue
            for tp, position in positions.items():
                tell("C", tp.partition, position.offset)
    except Told:
        consumer.close()


async def read_with_aiokafka() -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.errors import KafkaError

    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=BOOTSTRAP,
        group_id=GROUP,
        partition_assignment_strategy=(RangePartitionAssignor,),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=HEARTBEAT_MS,
        session_timeout_ms=SESSION_MS,
    )
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    await consumer.start()
    while not ending.is_set():
        positions = {}
        for tp, records in (await consumer.getmany(timeout_ms=200)).items():
            for record in records:
                tell("R", record.partition, record.offset)
            positions[tp] = records[-1].offset + 1
        if not positions:
            continue
        try:
            await consumer.commit(positions)
        except KafkaError as error:
            print(error, file=sys.stderr)
            continue
        for tp, position in positions.items():
            tell("C", tp.partition, position)
    await consumer.stop()


if CLIENT == "aiokafka":
    asyncio.run(read_with_aiokafka())
else:
    signal.signal(signal.SIGTERM, end)
    (read_with_confluent if CLIENT == "confluent" else read_with_kafka_python)()
