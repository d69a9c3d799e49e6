"""A cluster that one test has to itself: its brokers can be killed, frozen, stopped and brought back one by one."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from kazoo.client import TransactionRequest

from odradek.base.errors import ErrorCode
from odradek.broker.zk.session import ZkSession
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.stores.access import commit, failure
from odradek.broker.zk.znodes.brokers import BrokerRegistration
from odradek.broker.zk.znodes.cluster import Controller
from odradek.client.broker_client import BrokerClient
from odradek.model.topology import LeaderAndIsr, TopicPartition
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from waiting import eventually

from .own_broker import OwnBroker

PATIENCE_S = 60
"""Time after which an event counts as not happening; a loaded machine is slow, not wrong."""


class OwnCluster:
    def __init__(self, directory: Path, zookeeper: str, brokers: int = 3, disks: int = 1, **settings: str) -> None:
        """Dots of a configuration key are written as underscores."""
        chroot = f"{zookeeper}/{directory.name}"
        defaults = {
            "zookeeper_session_timeout_ms": "4000",
            "offsets_topic_replication_factor": str(min(3, brokers)),
            "offsets_topic_num_partitions": "5",
            "replica_lag_time_max_ms": "5000",
            "auto_leader_rebalance_enable": "false",  # leaders move when a test says so
            # a client of an earlier test may still ask for its topic, at a port that is used again
            "auto_create_topics_enable": "false",
        }
        self.brokers = [
            OwnBroker(
                _made(directory / f"broker-{number}"),
                zookeeper,
                **{
                    "zookeeper_connect": chroot,
                    "broker_id": str(number),
                    "log_dirs": ",".join(f"{directory}/broker-{number}/disk-{disk}" for disk in range(disks)),
                    **defaults,
                    **settings,
                },
            )
            for number in range(brokers)
        ]
        self._session = ZkSession(chroot, session_timeout_ms=30_000, connection_timeout_ms=30_000)
        self.store = ZkStore(self._session)
        """The truth, as ZooKeeper has it."""

    def start(self) -> None:
        """All at once, since the first can't serve before there is a controller, which may be any of them."""
        self._session.start()
        with ThreadPoolExecutor(len(self.brokers)) as starters:
            list(starters.map(lambda broker: broker.start(), self.brokers))
        eventually(lambda: len(self.store.brokers.load_brokers()) == len(self.brokers), PATIENCE_S)

    def mend(self) -> None:
        """Every broker runs again, whatever a test that failed has left: it is nothing to the next one."""
        for broker in self.brokers:
            broker.resume()
        for broker in [each for each in self.brokers if not each.is_running]:
            broker.start()

    def close(self) -> None:
        for broker in self.brokers:
            broker.kill()
        self._session.close()

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    def client(self, broker_id: int) -> BrokerClient:
        return self.brokers[broker_id].client()

    # --- what ZooKeeper says

    def controller(self) -> int:
        """The present controller, once there is one."""
        eventually(lambda: self.store.election.current_controller() is not None, PATIENCE_S)
        found = self.store.election.current_controller()
        assert found is not None
        return found

    def state(self, topic: str, partition: int = 0) -> LeaderAndIsr:
        tp = TopicPartition(topic, partition)
        return self.store.partition_states.load_partition_states([tp])[tp]

    def leader(self, topic: str, partition: int = 0) -> int:
        return self.state(topic, partition).leader

    def await_leader_other_than(self, broker_id: int, topic: str, partition: int = 0) -> int:
        eventually(lambda: self.leader(topic, partition) not in (broker_id, -1), PATIENCE_S)
        return self.leader(topic, partition)

    def await_isr(self, topic: str, members: Iterable[int], partition: int = 0) -> None:
        wanted = set(members)
        eventually(lambda: set(self.state(topic, partition).isr) == wanted, PATIENCE_S)

    # --- what tests do

    def create_topic(self, topic: str, *assignment: tuple[int, ...], **config: str) -> None:
        """One partition per tuple of replicas; returns when it has been created, not before its leaders serve."""
        wanted = CreatableTopic(
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
                for number, replicas in enumerate(assignment)
            ],
            configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in config.items()],
        )

        def is_created() -> bool:
            with self.client(self.controller()) as client:
                (answer,) = client.send(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)).topics
            assert answer.error_code in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER), answer
            return answer.error_code == ErrorCode.NONE

        eventually(is_created, PATIENCE_S)  # a controller that was elected just now may not be at work yet

    def kill(self, broker_id: int) -> None:
        self.brokers[broker_id].kill()

    def kill_with_session(self, *broker_ids: int) -> None:
        """Kill brokers and end their sessions: what is ephemeral of them goes at once, as it does when a session
        expires. So the sessions of a test may be longer than a machine stalls: no other broker loses its own by
        chance."""
        for broker_id in broker_ids:
            self.kill(broker_id)
        was_controller = self.store.election.current_controller() in broker_ids

        def end(transaction: TransactionRequest) -> None:
            for broker_id in broker_ids:
                transaction.delete(BrokerRegistration.path(broker_id))
            if was_controller:
                transaction.delete(Controller.path)

        results = self._session.call(commit(end))
        assert failure(results) is None, results

    def restart(self, broker_id: int) -> None:
        self.brokers[broker_id].start()

    def freeze(self, broker_id: int) -> None:
        """It lives, but does nothing any more: to the others it looks cut off, to itself as if no time had passed."""
        self.brokers[broker_id].pause()

    def thaw(self, broker_id: int) -> None:
        self.brokers[broker_id].resume()


@contextmanager
def running_cluster(
    directory: Path, zookeeper: str, brokers: int = 3, disks: int = 1, **settings: str
) -> Iterator[OwnCluster]:
    cluster = OwnCluster(directory, zookeeper, brokers, disks, **settings)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory
