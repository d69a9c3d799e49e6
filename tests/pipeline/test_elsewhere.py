"""Pipelines on a Spark Connect server, into Delta Lake; and what is said of an Iceberg that doesn't fit."""

import os
from collections import Counter
from pathlib import Path

import pytest

from odradek.client.cluster_client import ClusterClient
from odradek.client.topic_admin import create_topic
from odradek.demo.proof import compare, order_ids
from odradek.pipeline.sample_orders import Sent
from odradek.pipeline.scaffold import init_project
from odradek.testing import OdradekCluster

from .shop_stage import ConnectServer, Driver, books, forget_last_batch, sell

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

# The newest there are; none is made for the Spark that is used here.
DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


def open_shop(name: str, bootstrap: str, directory: Path) -> Path:
    with ClusterClient(bootstrap) as client:
        create_topic(client, f"{name}.orders", partitions=3)
        create_topic(client, f"{name}.categories", partitions=1, configs={"cleanup.policy": "compact"})
    init_project(directory / name, name, bootstrap)
    return directory / name


def into_a_lake(project: Path, format: str, package: str, **settings: str) -> None:
    ivy = Path(os.environ.get("ODRADEK_SPARK_CONNECTOR", ".tools/spark-connector")).absolute() / "ivy"
    spark = {"spark.jars.packages": package, "spark.jars.ivy": str(ivy), **settings}
    file = project / "pipeline.toml"
    text = file.read_text().replace('table = "data/orders"', f'table = "data/orders"\nformat = "{format}"')
    lines = [f'"{key}" = "{value}"' for key, value in spark.items()]
    file.write_text("\n".join([text, "[spark]", *lines, ""]))


def test_on_a_spark_connect_server(odradek_cluster: OdradekCluster, tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="pip install 'odradek[connect]'")
    name, bootstrap = "remote", odradek_cluster.bootstrap_servers
    project = open_shop(name, bootstrap, tmp_path)
    with ConnectServer(tmp_path / "connect") as server:
        driver = Driver(project, "--remote", server)
        first = sell(bootstrap, seconds=3, name=name)
        driver.run_once()
        forget_last_batch(project, "orders_table")
        forget_last_batch(project, "dead_letters_orders")
        second = sell(bootstrap, seconds=3, seed=2, name=name)
        driver.run_once()
    proof = books(bootstrap, project, Sent(first.records + second.records), name)
    assert proof.ok, proof.checks


def test_into_delta(odradek_cluster: OdradekCluster, tmp_path: Path) -> None:
    """Judged by delta-rs, which reads the table without Spark."""
    deltalake = pytest.importorskip("deltalake")
    name, bootstrap = "delta", odradek_cluster.bootstrap_servers
    project = open_shop(name, bootstrap, tmp_path)
    into_a_lake(
        project,
        "delta",
        DELTA,
        **{
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    )
    driver = Driver(project, "--master", "local[2]")
    first = sell(bootstrap, seconds=3, name=name)
    driver.run_once()
    forget_last_batch(project, "orders_table")
    second = sell(bootstrap, seconds=3, seed=2, name=name)
    driver.run_once()
    orders = deltalake.DeltaTable(project / "data" / "orders").to_pyarrow_table(columns=["order_id"])
    wanted = order_ids(Sent(first.records + second.records))
    found = compare("orders in the Delta table", wanted, Counter(orders["order_id"].to_pylist()))
    assert found.ok, found


def test_a_package_for_another_spark_is_refused(odradek_cluster: OdradekCluster, tmp_path: Path) -> None:
    project = open_shop("ice", odradek_cluster.bootstrap_servers, tmp_path)
    into_a_lake(project, "iceberg", ICEBERG)
    driver = Driver(project, "--master", "local[2]")
    with pytest.raises(AssertionError, match="error: the package for tables in iceberg is not made for Spark 4"):
        driver.run_once()
