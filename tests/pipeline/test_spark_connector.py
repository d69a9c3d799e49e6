"""Spark's own Kafka connector, unchanged, against an Odradek cluster: pyspark 4.0.0 with the connector made for it.

The pair lives in an environment of its own, because the pyspark that Odradek depends on is newer than the connectors
that can be had. It is built once, in .tools/spark-connector or where ODRADEK_SPARK_CONNECTOR says.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from odradek.testing import OdradekCluster

PYSPARK = "pyspark==4.0.0"
TOPICS = {"connector-in": 3, "connector-out": 2}
DRIVER = Path(__file__).parent / "connector_flows.py"


@pytest.fixture(scope="session")
def connector_environment() -> Path:
    """The directory of a virtual environment with pyspark 4.0.0, in which Ivy keeps the connector's jars too."""
    directory = Path(os.environ.get("ODRADEK_SPARK_CONNECTOR", ".tools/spark-connector")).absolute()
    if not (directory / ".complete").exists():
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        subprocess.run([directory / "bin/pip", "install", "--quiet", PYSPARK], check=True)
        (directory / ".complete").touch()
    return directory


def run_flows(environment: Path, bootstrap: str, work: Path, *more: object) -> Any:
    python = environment / "bin/python"
    command = [str(word) for word in (python, DRIVER, bootstrap, work, environment / "ivy", *more)]
    variables = os.environ | {"PYSPARK_PYTHON": str(python)}
    result = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False, env=variables)
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def check(found: Any) -> None:
    assert found == {
        "spark": "4.0.0",
        "tasks": 6,
        "read": 5000,
        "keys": 5000,
        "headers": 5000,
        "tail": 30,
        "since_newest": True,
        "batches": found["batches"],
        "batches_after_restart": found["batches_after_restart"],
        "copied": 10_000,
        "copied_values": 5000,
    }
    assert sum(found["batches"]) == sum(found["batches_after_restart"]) == 5000
    assert max(found["batches"]) <= 2000


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_every_flow_of_the_connector(
    connector_environment: Path, odradek_cluster: OdradekCluster, tmp_path: Path
) -> None:
    for name, partitions in TOPICS.items():
        odradek_cluster.create_topic(name, partitions, 1)
    check(run_flows(connector_environment, odradek_cluster.bootstrap_servers, tmp_path))


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_every_flow_over_sasl_ssl_with_the_rights_of_an_application(
    connector_environment: Path, odradek_secure_cluster: OdradekCluster, tmp_path: Path
) -> None:
    """The file that `odradek up --secure` writes for applications, given to the connector as its `kafka.…` options."""
    cluster = odradek_secure_cluster
    for name, partitions in TOPICS.items():
        cluster.create_topic(f"app-{name}", partitions, 1)
    check(run_flows(connector_environment, cluster.bootstrap_servers, tmp_path, cluster.app_properties, "app-"))
