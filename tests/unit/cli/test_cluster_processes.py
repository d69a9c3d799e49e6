"""The settings of local brokers, with the laboratory's links and without."""

from pathlib import Path

import pytest

from odradek.base.config.properties import parse_properties
from odradek.base.errors import FatalError
from odradek.cli.cluster_processes import LocalBroker, LocalCluster
from odradek.links.cuts import CutFrom


@pytest.fixture
def cluster(tmp_path: Path) -> LocalCluster:
    return LocalCluster(tmp_path)


def _configured(cluster: LocalCluster, *, linked: bool) -> dict[str, str]:
    broker = LocalBroker(cluster.data / "broker-0", 0, cluster.links)
    broker.configure("127.0.0.1:2181", None, {}, {"log.retention.hours": "1"}, linked=linked)
    return parse_properties((cluster.data / "broker-0" / "server.properties").read_text())


def test_links_come_with_the_laboratory_and_go_with_it(cluster: LocalCluster) -> None:
    plain = _configured(cluster, linked=False)
    cluster.links.plan("127.0.0.1:2181", [0, 1, 2])
    linked = _configured(cluster, linked=True)
    assert linked["zookeeper.connect"] != "127.0.0.1:2181"
    assert cluster.broker(0).is_linked
    assert cluster.broker(0).is_configured(None, 9092, {}), "its settings, but for the links, are the same"
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
    with pytest.raises(FatalError, match="is not cut off"):
        cluster.heal(0)
    cluster.links.plan("127.0.0.1:2181", [0])
    _configured(cluster, linked=True)
    cluster.cut(0, [CutFrom.BROKERS])
    assert cluster.links.cuts == {0: {CutFrom.BROKERS}}
    cluster.heal(0)
    assert cluster.links.cuts == {}
