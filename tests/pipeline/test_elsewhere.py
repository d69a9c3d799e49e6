"""Pipelines on a Spark Connect server, and into lakes; and what is said of a lake that doesn't fit the Spark."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from odradek.apps.demo.proof import compare, order_ids, table_orders, topic_records
from odradek.apps.pipeline.sample_orders import Sent
from odradek.apps.pipeline.scaffold import init_project
from odradek.client.cluster_client import ClusterClient
from odradek.client.topic_admin import create_topic
from odradek.testing import OdradekCluster

from .shop_stage import ConnectServer, Driver, forget_last_batch, sell

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

REPOSITORY = Path(__file__).parents[2]


def open_shop(name: str, bootstrap: str, directory: Path) -> Path:
    """A shop that keeps its orders in a table, puts the bad ones aside, and sums nothing up."""
    with ClusterClient(bootstrap) as client:
        create_topic(client, f"{name}.orders", partitions=3)
        create_topic(client, f"{name}.categories", partitions=1)
    init_project(directory / name, name, bootstrap)
    file = directory / name / "pipeline.toml"
    parts = re.split(r"(?m)^(?=\[)", file.read_text().replace('from = "priced"', 'from = "orders"'))
    file.write_text(
        "".join(part for part in parts if not part.startswith(("[dimensions", "[transforms", "[sinks.revenue")))
    )
    return directory / name


@dataclass(frozen=True)
class Lake:
    """The newest package there is, and the Spark that it is made for, in an environment of its own.

    It is built once, in .tools/spark-lakes or where ODRADEK_SPARK_LAKES says; Ivy keeps the jars in it too.
    """

    format: str
    pyspark: str
    package: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        if not (self._directory / ".complete").exists():
            subprocess.run([sys.executable, "-m", "venv", self._directory], check=True)
            install = [self._directory / "bin/pip", "install", "--quiet", self.pyspark, f"{REPOSITORY}[spark]"]
            subprocess.run(install, check=True)
            (self._directory / ".complete").touch()
        return self._directory / "bin/python"

    @property
    def _directory(self) -> Path:
        return Path(os.environ.get("ODRADEK_SPARK_LAKES", ".tools/spark-lakes")).absolute() / self.format

    def take(self, project: Path) -> None:
        """Makes the orders of the project a table of this lake."""
        spark = {"spark.jars.packages": self.package, "spark.jars.ivy": f"{self._directory}/ivy", **self.settings}
        file = project / "pipeline.toml"
        text = file.read_text().replace('table = "data/orders"', f'table = "data/orders"\nformat = "{self.format}"')
        lines = [f'"{key}" = "{value}"' for key, value in spark.items()]
        file.write_text(text.replace("[spark]", "\n".join(["[spark]", *lines])))


DELTA = Lake(
    "delta",
    "pyspark==4.2.1",
    "io.delta:delta-spark_4.2_2.13:4.4.0",
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
)
ICEBERG = Lake("iceberg", "pyspark==4.1.4", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0")


def sell_and_run_twice(driver: Driver, project: Path, bootstrap: str, name: str) -> Sent:
    """Between the runs, as if the driver had died after a batch was written and before Spark had noted so."""
    first = sell(bootstrap, seconds=3, name=name)
    driver.run_once()
    forget_last_batch(project, "orders")
    second = sell(bootstrap, seconds=3, seed=2, name=name)
    driver.run_once()
    return Sent(first.records + second.records)


def check_books(sent: Sent, orders: list[str], bootstrap: str, name: str) -> None:
    letters = Counter(record.value for record in topic_records(bootstrap, f"{name}.dead-letters"))
    bad = Counter(record.value for record in sent.records if record.order is None)
    checks = compare("orders in the table", order_ids(sent), Counter(orders)), compare("dead letters", bad, letters)
    assert all(check.ok for check in checks), checks


def test_on_a_spark_connect_server(odradek_cluster: OdradekCluster, tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="pip install 'odradek[connect]'")
    name, bootstrap = "remote", odradek_cluster.bootstrap_servers
    project = open_shop(name, bootstrap, tmp_path)
    with ConnectServer(tmp_path / "connect") as server:
        sent = sell_and_run_twice(Driver(project, "--remote", server), project, bootstrap, name)
    check_books(sent, table_orders(project / "data" / "orders"), bootstrap, name)


def test_into_delta(odradek_cluster: OdradekCluster, tmp_path: Path) -> None:
    """Judged by delta-rs, which reads the table without Spark."""
    deltalake = pytest.importorskip("deltalake")
    name, bootstrap = "delta", odradek_cluster.bootstrap_servers
    project = open_shop(name, bootstrap, tmp_path)
    DELTA.take(project)
    driver = Driver(project, "--master", "local[2]", python=DELTA.python)
    sent = sell_and_run_twice(driver, project, bootstrap, name)
    orders = deltalake.DeltaTable(project / "data" / "orders").to_pyarrow_table(columns=["order_id"])
    check_books(sent, orders["order_id"].to_pylist(), bootstrap, name)


def test_into_iceberg(odradek_cluster: OdradekCluster, tmp_path: Path) -> None:
    """Judged by pyiceberg, which reads the table without Spark."""
    pyiceberg = pytest.importorskip("pyiceberg.table")
    name, bootstrap = "ice", odradek_cluster.bootstrap_servers
    project = open_shop(name, bootstrap, tmp_path)
    ICEBERG.take(project)
    driver = Driver(project, "--master", "local[2]", python=ICEBERG.python)
    sent = sell_and_run_twice(driver, project, bootstrap, name)
    driver.run_once()  # to Spark 4.1 a run is one batch, and the last was the one that came again
    metadata = project / "data" / "orders" / "metadata"
    newest = metadata / f"v{(metadata / 'version-hint.text').read_text().strip()}.metadata.json"
    orders = pyiceberg.StaticTable.from_metadata(str(newest)).scan(selected_fields=("order_id",)).to_arrow()
    check_books(sent, orders["order_id"].to_pylist(), bootstrap, name)


@pytest.mark.parametrize("lake", [DELTA, ICEBERG], ids=["delta", "iceberg"])
def test_a_package_for_another_spark_is_refused(lake: Lake, odradek_cluster: OdradekCluster, tmp_path: Path) -> None:
    """Delta's would write the first batch, and fail at the second."""
    project = open_shop(f"other-{lake.format}", odradek_cluster.bootstrap_servers, tmp_path)
    lake.take(project)
    with pytest.raises(AssertionError, match=f"error: the package for tables in {lake.format} is not made for Spark 4"):
        Driver(project, "--master", "local[2]").run_once()
