"""Groups through ZooKeeper, in both old designs, on three brokers: shared, handed over, and nothing lost between."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from odradek.apps.lab.line import Line
from odradek.apps.legacy.assigned import AssignedConsumer
from odradek.apps.legacy.consumer import ZooKeeperConsumer
from odradek.apps.legacy.coordinator import GroupCoordinator
from odradek.apps.legacy.core.znodes import ConsumerId, Registration
from odradek.apps.legacy.member import Member, MemberSettings
from odradek.apps.legacy.observer import Tally, What
from odradek.client.record_reader import records_in
from odradek.protocol.messages.list_offsets import EARLIEST
from waiting import eventually

from .own_cluster import PATIENCE_S, OwnCluster, running_cluster

pytestmark = pytest.mark.timeout(300)

PARTITIONS = 6
# Patient: a loaded machine must not cost a member its session.
SETTINGS = MemberSettings(
    zookeeper_session_timeout_ms=30_000,
    zookeeper_connection_timeout_ms=30_000,
    rebalance_backoff_ms=200,
    rebalance_max_retries=50,
    auto_offset_reset=EARLIEST,
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("legacy")


@pytest.fixture(scope="module")
def cluster(directory: Path, zookeeper: str) -> Iterator[OwnCluster]:
    with running_cluster(directory, zookeeper) as running:
        yield running


@pytest.fixture(scope="module")
def connect(cluster: OwnCluster, directory: Path, zookeeper: str) -> str:
    """The ZooKeeper of the cluster, once that runs."""
    return f"{zookeeper}/{directory.name}"


@pytest.fixture
def tree(connect: str) -> Iterator[KazooClient]:
    client = KazooClient(connect)
    client.start(30)
    yield client
    client.stop()
    client.close()


def new_topic(cluster: OwnCluster, name: str) -> str:
    cluster.create_topic(name, *[(n % 3, (n + 1) % 3) for n in range(PARTITIONS)])
    return name


def produce(cluster: OwnCluster, topic: str, values: Sequence[int]) -> None:
    """Dealt out among the partitions, and acknowledged when it returns."""
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(
            topic,
            str(value).encode(),
            partition=value % PARTITIONS,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(PATIENCE_S) == 0
    assert failures == []


def share_evenly(members: Sequence[Member]) -> bool:
    owned = [tp.partition for member in members for tp in member.owned]
    return sorted(owned) == list(range(PARTITIONS)) and {len(member.owned) for member in members} == {
        PARTITIONS // len(members)
    }


def read_until(members: Sequence[Member], seen: "Counter[int]", wanted: int) -> None:
    def more() -> bool:
        for member in members:
            seen.update(int(record.value or b"") for batch in member.poll() for record in records_in(batch))
        return len(seen) >= wanted

    eventually(more, PATIENCE_S)


def hand_over(cluster: OwnCluster, topic: str, start: Callable[[str], Member]) -> None:
    """Two members read a topic; one leaves, and the other goes on where that one had committed."""
    first, second = start("first"), start("second")
    try:
        eventually(lambda: share_evenly([first, second]), PATIENCE_S)
        produce(cluster, topic, range(120))
        seen: Counter[int] = Counter()
        read_until([first, second], seen, 120)
        first.close()
        eventually(lambda: share_evenly([second]), PATIENCE_S)
        produce(cluster, topic, range(120, 240))
        read_until([second], seen, 240)
        assert set(seen) == set(range(240))
    finally:
        second.close()


def test_members_that_decide_for_themselves(cluster: OwnCluster, connect: str, tree: KazooClient) -> None:
    topic, tally = new_topic(cluster, "self-decided"), Tally()

    def start(name: str) -> Member:
        member = ZooKeeperConsumer(connect, "one", [topic], settings=SETTINGS, member_id=name, observer=tally)
        member.start()
        return member

    hand_over(cluster, topic, start)
    for left in ("/consumers/one/ids", f"/consumers/one/owners/{topic}"):
        eventually(lambda path=left: tree.get_children(path) == [], PATIENCE_S)  # type: ignore[misc]
    committed = [tree.get(f"/consumers/one/offsets/{topic}/{n}")[0] for n in range(PARTITIONS)]
    assert committed == [b"40"] * PARTITIONS
    # each was told of the other: the herd, at its smallest
    assert tally.counts[What.NOTIFIED] >= 2


def test_owners_are_named_as_kafkas_consumer_names_them(cluster: OwnCluster, connect: str, tree: KazooClient) -> None:
    topic = new_topic(cluster, "named")
    with ZooKeeperConsumer(connect, "names", {topic: 2}, settings=SETTINGS, member_id="names_host-1") as member:
        eventually(lambda: share_evenly([member]), PATIENCE_S)
        owners = [tree.get(f"/consumers/names/owners/{topic}/{n}") for n in range(PARTITIONS)]
        assert [content for content, _ in owners] == [b"names_host-1-0"] * 3 + [b"names_host-1-1"] * 3
        (session,) = {stat.ephemeralOwner for _, stat in owners}
        assert tree.get("/consumers/names/ids/names_host-1")[1].ephemeralOwner == session != 0


def test_members_that_a_coordinator_decides_for(cluster: OwnCluster, connect: str, tree: KazooClient) -> None:
    topic, tally = new_topic(cluster, "decided-for"), Tally()
    coordinators = [GroupCoordinator(connect, "two", name=name, session_timeout_ms=30_000) for name in ("x", "y")]

    def start(name: str) -> Member:
        member = AssignedConsumer(connect, "two", [topic], settings=SETTINGS, member_id=name, observer=tally)
        member.start()
        return member

    def is_coordinator() -> list[GroupCoordinator]:
        return [coordinator for coordinator in coordinators if coordinator.is_coordinator]

    try:
        for coordinator in coordinators:
            coordinator.start()
        eventually(lambda: len(is_coordinator()) == 1, PATIENCE_S)
        hand_over(cluster, topic, start)
        (retired,) = is_coordinator()
        retired.close()
        coordinators.remove(retired)
        eventually(lambda: len(is_coordinator()) == 1, PATIENCE_S)
        third = start("third")
        eventually(lambda: share_evenly([third]), PATIENCE_S)
        assert {tree.get(f"/consumers/two/owners/{topic}/{n}")[0] for n in range(PARTITIONS)} == {b"third-0"}
        third.close()
    finally:
        for coordinator in coordinators:
            coordinator.close()


@pytest.mark.parametrize("design", [ZooKeeperConsumer, AssignedConsumer])
def test_who_is_cut_off_reads_on_until_it_is_back(
    cluster: OwnCluster, connect: str, zookeeper: str, design: type[Member]
) -> None:
    """The fault of both designs that no lag is needed for: while the line is cut, partitions have two readers."""
    group = f"cut-{design.__name__}"
    topic = new_topic(cluster, group)
    host, _, port = zookeeper.partition(":")
    line = Line((host, int(port)))
    short = replace(SETTINGS, zookeeper_session_timeout_ms=4000)
    coordinator = GroupCoordinator(connect, group, session_timeout_ms=30_000)
    far = design(line.connect + connect.removeprefix(zookeeper), group, [topic], settings=short, member_id="far")
    near = design(connect, group, [topic], settings=SETTINGS, member_id="near")
    try:
        if design is AssignedConsumer:
            coordinator.start()
        far.start()
        near.start()
        eventually(lambda: share_evenly([far, near]), PATIENCE_S)
        line.cut()
        eventually(lambda: share_evenly([near]), PATIENCE_S)
        assert len(far.owned) == PARTITIONS // 2
        line.heal()
        eventually(lambda: share_evenly([far, near]), PATIENCE_S)
    finally:
        near.close()
        far.close()
        coordinator.close()
        line.close()


@pytest.mark.parametrize("committed", [b"999999", b"twelve"])
def test_a_committed_offset_that_the_log_does_not_have(
    cluster: OwnCluster, connect: str, tree: KazooClient, committed: bytes
) -> None:
    group = f"lost-{committed.decode()}"
    topic = new_topic(cluster, group)
    tree.create(f"/consumers/{group}/offsets/{topic}/0", committed, makepath=True)
    produce(cluster, topic, range(30))
    with ZooKeeperConsumer(connect, group, [topic], settings=SETTINGS) as member:
        seen: Counter[int] = Counter()
        read_until([member], seen, 30)
        member.commit()
        assert tree.get(f"/consumers/{group}/offsets/{topic}/0")[0] == b"5"


def test_a_member_that_may_not_claim_gives_up_until_the_group_changes(
    cluster: OwnCluster, connect: str, tree: KazooClient
) -> None:
    topic, tally = new_topic(cluster, "stubborn"), Tally()
    squatted = f"/consumers/stubborn/owners/{topic}/0"
    tree.create(squatted, b"somebody-0", makepath=True)
    hasty = replace(SETTINGS, rebalance_max_retries=2, rebalance_backoff_ms=50)
    with ZooKeeperConsumer(connect, "stubborn", [topic], settings=hasty, member_id="a", observer=tally) as first:
        eventually(lambda: tally.counts[What.GAVE_UP] > 0, PATIENCE_S)
        assert first.owned == frozenset()
        assert tally.counts[What.REFUSED] >= 2
        eventually(lambda: tree.get_children(f"/consumers/stubborn/owners/{topic}") == ["0"], PATIENCE_S)
        tree.delete(squatted)
        # one who wants nothing comes: a change like any other
        tree.create("/consumers/stubborn/ids/b", ConsumerId.encode(Registration(), 1), ephemeral=True)
        eventually(lambda: share_evenly([first]), PATIENCE_S)
