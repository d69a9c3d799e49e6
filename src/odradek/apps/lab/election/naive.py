"""The naive election: the leader of a partition is the creator of its ephemeral node, and all others watch it.

Each replica takes part in an election per partition, as brokers of Odradek do once for the controller. Nothing is
replicated here: this is the election alone.
"""

import threading
from collections.abc import Callable, Sequence

from kazoo.exceptions import NodeExistsError

from odradek.apps.legacy.member import ZOOKEEPER_ERRORS
from odradek.base.logs import get_logger
from odradek.broker.zk.session import Request, ZkSession

log = get_logger(__name__)

_TRY_AGAIN_S = 0.5
_STOP_S_MAX = 30.0


class NaiveBroker:
    """Holds a replica of every partition under `root`."""

    def __init__(
        self,
        zookeeper: str,
        root: str,
        broker_id: int,
        partitions: int,
        session_timeout_ms: int,
        on_lead: Callable[[int, int], None],
    ) -> None:
        """`on_lead(broker, partition)` is called on this broker's thread."""
        self.id = broker_id
        self._root = root
        self._partitions = partitions
        self._on_lead = on_lead
        self._session = ZkSession(
            zookeeper,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=60_000,
            on_znode=self._on_znode,
        )
        self._led: list[int] = []
        self._changed: dict[str, None] = {}
        self._something_new = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"naive broker {broker_id}", daemon=True)

    def start(self, first: Sequence[int]) -> None:
        """Take the leadership of `first`; `follow` handles the other partitions."""
        self._session.start()
        self._session.ensure_paths([self._root])
        self._session.call(_creation(f"{self._root}/broker-{self.id}", self.id))
        self._run_for_election([self._path(partition) for partition in first])

    def follow(self) -> None:
        """Watch every other leader from now on, and try to replace one that is gone."""
        led = set(self._led)
        self._compete(self._without_leader([self._path(p) for p in range(self._partitions) if p not in led]))
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        with self._something_new:
            self._something_new.notify_all()
        if self._thread.ident is not None:
            self._thread.join(_STOP_S_MAX)

    def close(self) -> None:
        self.stop()
        self._session.close()

    def _live(self) -> None:
        while not self._stopping.is_set():
            with self._something_new:
                self._something_new.wait_for(lambda: self._changed or self._stopping.is_set())
                changed, self._changed = list(self._changed), {}
            try:
                if not self._stopping.is_set():
                    self._compete(changed)
            except ZOOKEEPER_ERRORS as error:
                log.info("naive broker lost ZooKeeper", broker=self.id, error=str(error))
                self._stopping.wait(_TRY_AGAIN_S)

    def _compete(self, paths: Sequence[str]) -> None:
        """Try to lead these partitions, and watch the leaders of the others."""
        while paths:
            paths = self._without_leader(self._run_for_election(paths))

    def _without_leader(self, paths: Sequence[str]) -> list[str]:
        """Return the partitions without a leader; the leaders of the others are watched."""
        return [path for path, is_led in self._session.watch_nodes(paths).items() if not is_led]

    def _run_for_election(self, paths: Sequence[str]) -> list[str]:
        """Stand for election; return the partitions that another broker took first."""
        outcomes = self._session.pipeline([_creation(path, self.id) for path in paths])
        lost: list[str] = []
        for path, outcome in zip(paths, outcomes, strict=True):
            if isinstance(outcome, NodeExistsError):
                lost.append(path)
            elif isinstance(outcome, Exception):
                raise outcome
            else:
                partition = int(path.rpartition("-")[2])
                self._led.append(partition)
                self._on_lead(self.id, partition)
        return lost

    def _path(self, partition: int) -> str:
        return f"{self._root}/leader-{partition}"

    def _on_znode(self, path: str) -> None:
        with self._something_new:
            self._changed[path] = None
            self._something_new.notify_all()


def _creation(path: str, broker_id: int) -> Request:
    return lambda zk: zk.create_async(path, str(broker_id).encode(), ephemeral=True)
