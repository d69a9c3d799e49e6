"""Fixtures of the tests with real Spark: one session, the shared cluster, topics of their own."""

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import DataFrame, SparkSession

from java_program import SHORT_LIVED
from odradek.apps.pipeline.session import STATE_SETTINGS, _choose_file_manager
from odradek.apps.pipeline.spark_home import unzipped_spark_home
from odradek.testing import OdradekCluster

_numbers = itertools.count(1)


class TopicMaker(Protocol):
    def __call__(self, partitions: int = 1, **config: str) -> str: ...


class TopicFiller(Protocol):
    def __call__(self, topic: str, records: list[tuple[bytes | None, bytes | None]], partition: int = 0) -> None: ...


class TopicReader(Protocol):
    def __call__(self, topic: str, **options: str) -> DataFrame: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark's start alone may take minutes on a busy machine."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="package", autouse=True)
def short_lived_jvms() -> Iterator[None]:
    """Environment of all that start Spark: these tests, and the commands that they run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", " ".join(SHORT_LIVED))
        yield


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session of these tests; a start costs ten seconds. The data sources register themselves."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers run what the tests run
    directory = tmp_path_factory.mktemp("spark")
    os.environ.setdefault("SPARK_HOME", str(unzipped_spark_home(directory)))  # workers that start in half the time
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "700m")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")  # as in sessions of pipelines
        .config("spark.sql.codegen.wholeStage", "false")  # a handful of rows: plans cost more than work
        .config(map={**STATE_SETTINGS})
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.local.dir", str(directory / "local"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    _choose_file_manager(session)
    yield session
    session.stop()


@pytest.fixture(scope="package")
def bootstrap(odradek_cluster: OdradekCluster) -> str:
    return odradek_cluster.bootstrap_servers


@pytest.fixture(scope="package")
def new_topic(bootstrap: str) -> TopicMaker:
    """Creates a topic; the dots of a configuration key are written as underscores."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def create(partitions: int = 1, **config: str) -> str:
        name = f"pipeline-{os.getpid()}-{next(_numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        return name

    return create


@pytest.fixture(scope="package")
def fill(bootstrap: str) -> TopicFiller:
    """Writes keys and values to one partition of a topic, with a client that isn't ours."""
    large = {"message.max.bytes": 100_000_000}  # what is too large is the broker's to say
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 5, **large})

    def write(topic: str, records: list[tuple[bytes | None, bytes | None]], partition: int = 0) -> None:
        for key, value in records:
            producer.produce(topic, value, key, partition)
        assert producer.flush(60) == 0

    return write


@pytest.fixture(scope="package")
def read_topic(spark: SparkSession, bootstrap: str) -> TopicReader:
    """A batch read of a topic through `format("odradek")`."""

    def read(topic: str, **options: str) -> DataFrame:
        reader = spark.read.format("odradek").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
        return reader.options(**options).load()

    return read
