"""Choice of the coordination server, without starting one."""

from pathlib import Path

import pytest

from odradek.base.errors import FatalError
from odradek.local import coordinators
from odradek.local.coordinators import CoordinationProcess, CoordinatorKind, LocalCoordinator
from odradek.local.zookeeper_server import EmbeddedZooKeeper


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """A machine on which Apache ZooKeeper can be started or not, and runs or not."""
    machine = {"can": True, "runs": False}
    monkeypatch.delenv(coordinators.VARIABLE, raising=False)
    for name in ("spawn", "await_serving"):
        monkeypatch.setattr(EmbeddedZooKeeper, name, lambda self: None)
    monkeypatch.setattr(EmbeddedZooKeeper, "pid", property(lambda self: 1 if machine["runs"] else None))
    monkeypatch.setattr(coordinators, "apache_can_start", lambda: machine["can"])
    return machine


def test_apaches_where_it_can_be_started(tmp_path: Path, java: dict[str, bool]) -> None:
    assert type(LocalCoordinator(tmp_path).start()) is EmbeddedZooKeeper
    assert LocalCoordinator(tmp_path).kind is CoordinatorKind.APACHE


def test_the_embedded_one_elsewhere_and_it_is_remembered(tmp_path: Path, java: dict[str, bool]) -> None:
    java["can"] = False
    assert type(LocalCoordinator(tmp_path).start()) is CoordinationProcess
    java["can"] = True
    assert type(LocalCoordinator(tmp_path).start()) is CoordinationProcess, "as before"
    assert type(LocalCoordinator(tmp_path).start(CoordinatorKind.APACHE)) is EmbeddedZooKeeper, "as wanted"


def test_an_older_directory_is_apaches(tmp_path: Path, java: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(coordinators.VARIABLE, "embedded")
    (tmp_path / "zoo.cfg").touch()
    assert type(LocalCoordinator(tmp_path).start()) is EmbeddedZooKeeper
    assert type(LocalCoordinator(tmp_path / "new").start()) is CoordinationProcess
    monkeypatch.setenv(coordinators.VARIABLE, "etcd")
    with pytest.raises(FatalError, match="ODRADEK_COORDINATOR=etcd is not valid; valid: embedded, apache"):
        LocalCoordinator(tmp_path / "other").start()


def test_the_one_that_the_environment_names_is_not_replaced_by_another(
    tmp_path: Path, java: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    java["can"] = False
    monkeypatch.setenv(coordinators.VARIABLE, "apache")
    assert type(LocalCoordinator(tmp_path).start()) is EmbeddedZooKeeper  # whose start says that Java is missing


def test_one_that_runs_is_not_changed(tmp_path: Path, java: dict[str, bool]) -> None:
    coordinator = LocalCoordinator(tmp_path)
    coordinator.start(CoordinatorKind.EMBEDDED)
    java["runs"] = True
    assert type(coordinator.start()) is CoordinationProcess
    with pytest.raises(FatalError, match="is already running and is embedded, not apache"):
        coordinator.refuse_other(CoordinatorKind.APACHE)
