"""The class for testcontainers, with the container replaced: containers can't run everywhere that tests do."""

import pytest

containers = pytest.importorskip("odradek.containers")


def test_the_broker_is_told_its_address_once_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    base = containers.DockerContainer
    monkeypatch.setattr("testcontainers.core.container.DockerClient", lambda **_: None)
    monkeypatch.setattr(base, "start", lambda self: happened.append("started"))
    monkeypatch.setattr(base, "get_container_host_ip", lambda self: "10.1.1.1")
    monkeypatch.setattr(base, "get_exposed_port", lambda self, port: port + 40_000)
    monkeypatch.setattr(
        base, "copy_into_container", lambda self, data, path: happened.append(f"{path} {data.decode()}")
    )
    strategy = containers.LogMessageWaitStrategy
    monkeypatch.setattr(strategy, "wait_until_ready", lambda self, container: happened.append("waited"))

    broker = containers.OdradekContainer(settings={"num.partitions": "3"})
    assert broker.start() is broker
    assert broker.bootstrap_servers == "10.1.1.1:49092"
    assert happened == ["started", "/tmp/odradek-address 10.1.1.1:49092", "waited"]
    assert broker.env["ODRADEK_SETTINGS"] == "num.partitions=3"
    assert "container-start" in broker._kwargs["entrypoint"][-1]
