"""The settings of local brokers, with the laboratory's links and without."""

import re
from errno import ENOSPC
from pathlib import Path

import pytest

from odradek.base.config.properties import parse_properties
from odradek.base.errors import ConfigError, FatalError
from odradek.local.cluster_processes import LocalCluster
from odradek.local.links.cuts import CutFrom
from odradek.local.local_broker import LocalBroker
from odradek.local.local_settings import SettingChanges

NO_CHANGES = SettingChanges({})


@pytest.fixture
def cluster(tmp_path: Path) -> LocalCluster:
    return LocalCluster(tmp_path)


def _configured(cluster: LocalCluster, *, linked: bool) -> dict[str, str]:
    broker = LocalBroker(cluster.data / "broker-0", 0, cluster.links, cluster.security)
    changes = SettingChanges({"log.retention.hours": "1"})
    broker.configure(broker.wanted_properties("127.0.0.1:2181", None, {}, changes), linked=linked)
    return parse_properties((cluster.data / "broker-0" / "server.properties").read_text())


def test_links_come_with_the_laboratory_and_go_with_it(cluster: LocalCluster) -> None:
    plain = _configured(cluster, linked=False)
    cluster.links.plan("127.0.0.1:2181", [0, 1, 2])
    linked = _configured(cluster, linked=True)
    assert linked["zookeeper.connect"] != "127.0.0.1:2181"
    assert cluster.broker(0).is_linked
    assert cluster.broker(0).is_configured(None, 9092, NO_CHANGES), "its settings, but for the links, are the same"
    assert cluster.broker(0).address == ("127.0.0.1", 9092), "clients find it where it was"
    assert _configured(cluster, linked=True) == linked
    assert _configured(cluster, linked=False) == plain


def test_who_joins_later_gets_ports_and_the_others_keep_theirs(cluster: LocalCluster) -> None:
    cluster.links.plan("127.0.0.1:2181", [0])
    first = _configured(cluster, linked=True)
    cluster.links.plan("127.0.0.1:2181", [0, 1])
    assert _configured(cluster, linked=True) == first


def test_what_is_not_linked_is_not_cut(cluster: LocalCluster) -> None:
    _configured(cluster, linked=False)
    with pytest.raises(FatalError, match="odradek up --lab"):
        cluster.cut(0, list(CutFrom))
    with pytest.raises(FatalError, match="is not isolated"):
        cluster.heal(0)
    cluster.links.plan("127.0.0.1:2181", [0])
    _configured(cluster, linked=True)
    cluster.cut(0, [CutFrom.BROKERS])
    assert cluster.links.cuts == {0: {CutFrom.BROKERS}}
    cluster.heal(0)
    assert cluster.links.cuts == {}


# ---- settings that are given, kept and taken back


def test_a_setting_is_kept_until_it_is_taken_back(cluster: LocalCluster) -> None:
    broker = LocalBroker(cluster.data / "broker-0", 0, cluster.links, cluster.security)
    for changes, kept in (
        (SettingChanges({"log.retention.hours": "1"}), "1"),
        (NO_CHANGES, "1"),
        (SettingChanges({}, frozenset({"log.retention.hours"})), "24"),
    ):
        broker.configure(broker.wanted_properties("zk:2181", None, {"log.retention.hours": "24"}, changes))
        assert broker.kept_properties()["log.retention.hours"] == kept
    assert not broker.is_configured(None, None, SettingChanges({}, frozenset({"log.retention.hours"})))


@pytest.mark.parametrize("before", [None, "broker.id=0\n# by hand\nlog.retention.hours=2\n"])
def test_a_start_that_fails_leaves_the_file_as_it_was(cluster: LocalCluster, before: str | None) -> None:
    broker = LocalBroker(cluster.data / "broker-0", 0, cluster.links, cluster.security)
    if before is not None:
        broker.properties_file.parent.mkdir()
        broker.properties_file.write_text(before)
    broker.configure(broker.wanted_properties("zk:2181", None, {}, SettingChanges({"log.dirs": "/nowhere"})))
    broker.restore()
    assert (broker.properties_file.read_text() if broker.properties_file.exists() else None) == before


def test_a_file_that_could_not_be_written_is_as_it_was(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    _configured(cluster, linked=False)
    broker = LocalBroker(cluster.data / "broker-0", 0, cluster.links, cluster.security)
    before = broker.properties_file.read_text()

    def full(path: Path, text: str) -> int:
        path.touch()
        raise OSError(ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        broker.configure({"broker.id": "0"})
    broker.restore()
    assert broker.properties_file.read_text() == before
    assert [path.name for path in broker.properties_file.parent.iterdir()] == ["server.properties"]


@pytest.mark.parametrize(
    ("settings", "brokers", "words"),
    [
        ({"num.io.threads": "none"}, 1, "Invalid value none for configuration num.io.threads"),
        ({"authorizer.class.name": "com.example.Authorizer"}, 1, "Java classes can't run"),
        (
            {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:admin"},
            1,
            "add User:ANONYMOUS to super.users",
        ),
        ({"broker.id": "7"}, 1, "broker.id can't be set for a local cluster"),
        ({"zookeeper.connect": "zk:2181"}, 1, "give the ensemble with --zookeeper"),
        ({"listeners": "PLAINTEXT://127.0.0.1:9999"}, 3, "can't hold for 3 brokers at once"),
        ({"odradek.metrics.port": "9192"}, 2, "can't hold for 2 brokers at once"),
    ],
)
def test_settings_that_cannot_be_reach_no_file(
    cluster: LocalCluster, settings: dict[str, str], brokers: int, words: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        cluster.start(None, None, settings, brokers)
    assert list(cluster.data.iterdir()) == []


def test_a_fault_that_was_in_the_file_before_is_told_as_such(cluster: LocalCluster) -> None:
    """An earlier version kept such values."""
    file = cluster.data / "broker-0" / "server.properties"
    file.parent.mkdir()
    file.write_text(
        "broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:9092\nzookeeper.connect=zk:2181\nnum.io.threads=none\n"
    )
    with pytest.raises(ConfigError, match=r"server\.properties: Invalid value none .* odradek up --unset KEY"):
        cluster.start(None, None, {})


def test_a_coordination_server_that_stopped_is_named_as_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait_in_vain(broker: LocalBroker) -> None:
        raise FatalError("broker 0 did not start")

    cluster = LocalCluster(tmp_path)
    broker = LocalBroker(tmp_path / "broker-0", 0, cluster.links, cluster.security)
    monkeypatch.setattr(LocalBroker, "await_serving", wait_in_vain)
    with pytest.raises(FatalError, match="broker 0 did not start"):
        cluster._start_all([broker], [], secure=False, own=True)
    (tmp_path / "zookeeper").mkdir()
    (tmp_path / "zookeeper" / "zoo.cfg").touch()
    (tmp_path / "zookeeper" / "zookeeper.log").write_text("serving\nerror: no space\n")
    with pytest.raises(FatalError, match="the coordination server has stopped: no space"):
        cluster._start_all([broker], [], secure=False, own=True)


def test_an_ensemble_that_does_not_answer_is_not_blamed_on_the_own_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait_in_vain(broker: LocalBroker) -> None:
        raise FatalError("broker 0 did not start: no ZooKeeper at zk:2181")

    cluster = LocalCluster(tmp_path)
    (tmp_path / "zookeeper").mkdir()
    (tmp_path / "zookeeper" / "zoo.cfg").touch()
    broker = LocalBroker(tmp_path / "broker-0", 0, cluster.links, cluster.security)
    monkeypatch.setattr(LocalBroker, "await_serving", wait_in_vain)
    with pytest.raises(FatalError, match="no ZooKeeper at zk:2181"):
        cluster._start_all([broker], [], secure=False, own=False)


# ---- clusters that grow


def _up(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, *, brokers: int | None, **given: str) -> list[str]:
    """Write what `up` would start with; returns its remarks."""
    remarks: list[str] = []
    monkeypatch.setattr(LocalCluster, "_start_all", lambda *_, **options: None)
    cluster.start("zk:2181", None, given, brokers, remark=remarks.append)
    return remarks


def test_brokers_that_are_added_later_have_the_settings_of_the_first(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    _up(cluster, monkeypatch, brokers=1, **{"message.max.bytes": "5000"})
    _up(cluster, monkeypatch, brokers=3)
    settings = [broker.kept_properties() for broker in cluster.brokers]
    own = {"broker.id", "listeners", "log.dirs"}
    assert [{key: text for key, text in each.items() if key not in own} for each in settings] == [
        {key: text for key, text in settings[0].items() if key not in own}
    ] * 3
    assert settings[2]["message.max.bytes"] == "5000"
    assert settings[0]["offsets.topic.replication.factor"] == settings[0]["default.replication.factor"] == "3"
    assert settings[0]["min.insync.replicas"] == "2"


def test_fewer_brokers_than_there_are_is_told(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    _up(cluster, monkeypatch, brokers=3)
    assert _up(cluster, monkeypatch, brokers=None) == []
    assert _up(cluster, monkeypatch, brokers=1) == [f"{cluster.data} has 3 brokers, and all of them start"]


def test_an_ensemble_is_remembered(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    _up(cluster, monkeypatch, brokers=1)
    cluster.start(None, None, {})
    assert cluster.broker(0).kept_properties()["zookeeper.connect"] == "zk:2181"
    assert not cluster.zookeeper.exists


def _with_logs(data: Path, log_dirs: Path) -> LocalBroker:
    """A broker that was started once, with settings that were written for these directories."""
    directory = data / "broker-0"
    (directory / "logs").mkdir(parents=True)
    (directory / "logs" / "meta.properties").touch()
    keystore = log_dirs.parents[1] / "security" / "broker-0.pem"
    (directory / "server.properties").write_text(f"log.dirs={log_dirs}\nssl.keystore.location={keystore}\n")
    return LocalCluster(data).broker(0)


@pytest.mark.parametrize("is_copy", [False, True])
def test_paths_follow_a_cluster_that_was_moved_or_copied(tmp_path: Path, is_copy: bool) -> None:
    """Else it starts with empty logs where it was before, or with the logs of the other one."""
    before, now = tmp_path / "before", tmp_path / "now"
    if is_copy:
        _with_logs(before, before / "broker-0" / "logs")
    assert _with_logs(now, before / "broker-0" / "logs").kept_properties() == {
        "log.dirs": str(now / "broker-0" / "logs"),
        "ssl.keystore.location": str(now / "security" / "broker-0.pem"),
    }


def test_log_directories_that_the_user_chose_stay(tmp_path: Path) -> None:
    chosen = tmp_path / "disk" / "broker-0" / "logs"
    chosen.mkdir(parents=True)
    (chosen / "meta.properties").touch()
    assert _with_logs(tmp_path / "data", chosen).kept_properties()["log.dirs"] == str(chosen)
    for others in (tmp_path / "disk-1", tmp_path / "elsewhere" / "broker-1" / "logs"):
        assert _with_logs(tmp_path / others.name, others).kept_properties()["log.dirs"] == str(others)


def test_a_copy_of_a_brokers_directory_is_no_broker(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    _up(cluster, monkeypatch, brokers=2)
    copy = cluster.data / "broker-1.bak"
    copy.mkdir()
    (copy / "server.properties").write_text("broker.id=1\n")
    (cluster.data / "broker-1" / "old.properties").touch()
    assert [broker.id for broker in cluster.brokers] == [0, 1]
