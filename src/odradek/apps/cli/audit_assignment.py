"""Assignment of partitions to brokers, for `odradek audit`.

The cluster gives it, if a broker is named; else, for a directory of `odradek up`, its ZooKeeper: the running one, or a
server on a copy of its data, which is deleted afterwards. If neither can be read, only the files are used.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kazoo.exceptions import KazooException

from odradek.apps.cli.output import warn
from odradek.base.errors import FatalError
from odradek.broker.zk.session import ZkSession, ZkUnavailable
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.znodes import ClusterId, CorruptZnode
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient, topic_states
from odradek.local.zookeeper_server import EmbeddedZooKeeper
from odradek.model.topology import TopicPartition

if TYPE_CHECKING:
    from odradek.apps.pipeline.audit.assignment import Assignment

_TIMEOUT_MS = 30_000


def find_assignment(bootstrap_server: str | None, directories: Sequence[str]) -> "Assignment | None":
    """Return the assignment; None if neither a broker nor ZooKeeper answers. FatalError if a broker is named that
    doesn't answer.
    """
    if bootstrap_server is not None:
        return _from_cluster(bootstrap_server)
    for directory in directories:
        zookeeper = EmbeddedZooKeeper(Path(directory) / "zookeeper")
        if zookeeper.exists:
            return _from_zookeeper(zookeeper)
    return None


def _from_cluster(bootstrap_server: str) -> "Assignment":
    from odradek.apps.pipeline.audit.assignment import Assignment

    try:
        with ClusterClient(bootstrap_server) as client:
            answer = client.metadata(None)
    except ConnectionFailed as error:
        raise FatalError(f"{error}; without --bootstrap-server the audit goes by the files alone") from None
    topics = topic_states(answer)
    states = {
        TopicPartition(topic.name, each.partition): each for topic in topics.values() for each in topic.partitions
    }
    return Assignment(
        source=f"the cluster at {bootstrap_server}",
        cluster_id=answer.cluster_id or "",
        replicas={tp: frozenset(state.replicas) for tp, state in states.items()},
        isr={tp: frozenset(state.isr) for tp, state in states.items()},
        topic_ids={topic.name: topic.topic_id for topic in topics.values()},
    )


def _from_zookeeper(zookeeper: EmbeddedZooKeeper) -> "Assignment | None":
    try:
        if zookeeper.pid is not None:
            return _read(zookeeper.connect, f"ZooKeeper at {zookeeper.connect}")
        with _opened_copy(zookeeper) as copy:
            return _read(copy.connect, f"the data of ZooKeeper in {zookeeper.data_dir}")
    except (FatalError, OSError, shutil.Error, ZkUnavailable, KazooException, CorruptZnode) as error:
        warn(f"no assignment in {zookeeper.data_dir}: {str(error) or type(error).__name__}")
        return None


@contextmanager
def _opened_copy(zookeeper: EmbeddedZooKeeper) -> Iterator[EmbeddedZooKeeper]:
    """Start a server on a copy: an audit changes nothing, and a server that starts writes to its data."""
    with tempfile.TemporaryDirectory(prefix="odradek-audit-") as place:
        copy = EmbeddedZooKeeper(Path(place))
        shutil.copytree(zookeeper.data_dir, copy.data_dir)
        try:
            copy.start()
            yield copy
        finally:
            copy.stop()


def _read(connect: str, source: str) -> "Assignment":
    from odradek.apps.pipeline.audit.assignment import Assignment

    session = ZkSession(connect, session_timeout_ms=_TIMEOUT_MS, connection_timeout_ms=_TIMEOUT_MS)
    session.start()
    try:
        store = ZkStore(session)
        content, _ = session.call(lambda zk: zk.get_async(ClusterId.path))
        topics = store.topics.load_topics()
        replicas = {
            TopicPartition(name, number): frozenset(held.replicas)
            for name, topic in topics.items()
            for number, held in topic.partitions.items()
        }
        states = store.partition_states.load_partition_states(list(replicas))
    finally:
        session.close()
    return Assignment(
        source=source,
        cluster_id=ClusterId.decode(content),
        replicas=replicas,
        isr={tp: frozenset(state.isr) for tp, state in states.items()},
        topic_ids={name: topic.topic_id for name, topic in topics.items()},
    )
