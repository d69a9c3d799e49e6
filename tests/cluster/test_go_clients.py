"""Clients in Go with their SASL packages, over SASL_PLAINTEXT and SASL_SSL: franz-go, sarama, kafka-go."""

import json
import subprocess
from typing import Any

import pytest

from foreign_clients import go_sasl_program
from obtaining import skipped_if_unobtainable

from .conftest import unused_name
from .test_secured_broker import PASSWORD, Secured, secured

__all__ = ["secured"]

WAYS = (("SASL_PLAINTEXT", "PLAIN"), ("SASL_PLAINTEXT", "SCRAM-SHA-256"), ("SASL_SSL", "SCRAM-SHA-512"))
LIMIT_S = 100


@pytest.fixture(scope="module")
def program() -> list[str]:
    with skipped_if_unobtainable():
        return go_sasl_program()


def found_by(command: list[str], client: str, secured: Secured, protocol: str, mechanism: str, password: str) -> Any:
    topic = unused_name()
    secured.broker.create_topic(topic)
    words = [client, secured.bootstrap(protocol), topic, mechanism, "alice", password]
    authority = [str(secured.directory / "ca.pem")] if protocol == "SASL_SSL" else []
    run = subprocess.run([*command, *words, *authority], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.soak  # compiling the clients takes a minute
@pytest.mark.timeout(900)
@pytest.mark.parametrize("client", ["franz-go", "sarama", "kafka-go"])
def test_every_way(program: list[str], secured: Secured, client: str) -> None:
    for protocol, mechanism in WAYS:
        found = found_by(program, client, secured, protocol, mechanism, PASSWORD)
        assert found == {"read": ["one", "two"]}, (protocol, mechanism)
        assert found_by(program, client, secured, protocol, mechanism, "wrong").keys() == {"refused"}
