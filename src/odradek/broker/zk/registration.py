"""Registration of a broker: the root nodes, the cluster's id, the broker's own id and its znode.

Used by the broker at start, in this order, and again (`register` only) whenever its session was renewed. Ids that were
generated or found are returned; the log keeps them in meta.properties.
"""

import time
from dataclasses import replace
from typing import Any
from uuid import uuid4

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.errors import FatalError
from odradek.base.logs import get_logger
from odradek.broker.zk.session import ZkSession
from odradek.broker.zk.znodes import (
    PERSISTENT_ROOTS,
    BrokerRegistration,
    BrokerSequence,
    ClusterId,
    CorruptZnode,
    endpoint_text,
)
from odradek.model.topology import Broker
from odradek.model.uuid_text import uuid_to_text

log = get_logger(__name__)

_POLL_SECONDS = 0.1
_COUNTED_MS_MAX = 1_000
"""Longest time between two answers of ZooKeeper; after a longer one it was away."""
# ZooKeeper expires sessions in steps of its tick, so a dead broker's node may outlive its session's timeout a little.
_EXPIRY_MARGIN_MS = 2_000
# And a server gives no session less than two of its ticks, whatever was asked for.
_SESSION_TIMEOUT_MIN_MS = 4_000


def ensure_roots(session: ZkSession) -> None:
    """Create the persistent nodes that every broker needs."""
    session.ensure_paths(PERSISTENT_ROOTS)


def get_or_create_cluster_id(session: ZkSession) -> str:
    session.ensure_paths([ClusterId.path.rpartition("/")[0]])
    proposed = ClusterId.encode(uuid_to_text(uuid4()))
    try:
        session.call(lambda zk: zk.create_async(ClusterId.path, proposed))
    except NodeExistsError:
        log.debug("cluster id already set")
    content, _ = session.call(lambda zk: zk.get_async(ClusterId.path))
    return ClusterId.decode(content)


def generate_broker_id(session: ZkSession, reserved_broker_max_id: int) -> int:
    """Generate an id that no broker has, above the ones that can be configured: each set raises the node's version by
    one."""
    session.ensure_paths([BrokerSequence.path])
    stat = session.call(lambda zk: zk.set_async(BrokerSequence.path, b""))
    return reserved_broker_max_id + int(stat.version)


class BrokerRegistrar:
    """Keeps one broker registered, session after session."""

    def __init__(self, session: ZkSession, clock: Clock = SYSTEM_CLOCK) -> None:
        self._session = session
        self._clock = clock

    def register(self, broker: Broker) -> Broker:
        """Creates the broker's ephemeral node and returns the broker with its epoch, the node's czxid.

        A node of another session may be what a crash of this same broker left behind, so it gets the time that a
        session needs to expire. If it is still there then, its owner lives, and that is fatal. Time in which ZooKeeper
        did not answer doesn't count: no session expires in it.
        """
        left_ms = max(self._session.session_timeout_ms, _SESSION_TIMEOUT_MIN_MS) + _EXPIRY_MARGIN_MS
        before_ms = self._clock.monotonic_ms()
        is_logged = False
        while (epoch := self._try_register(broker)) is None:
            now_ms = self._clock.monotonic_ms()
            left_ms -= min(now_ms - before_ms, _COUNTED_MS_MAX)
            before_ms = now_ms
            if left_ms <= 0:
                raise FatalError(self._conflict(broker.id))
            if not is_logged:
                log.info("broker id already registered, waiting for that session to expire", broker=broker.id)
                is_logged = True
            time.sleep(_POLL_SECONDS)
        addresses = ",".join(endpoint_text(endpoint) for endpoint in broker.endpoints)
        log.info("broker registered", broker=broker.id, endpoints=addresses, epoch=epoch)
        return replace(broker, epoch=epoch)

    def _try_register(self, broker: Broker) -> int | None:
        path, content = BrokerRegistration.path(broker.id), BrokerRegistration.encode(broker, self._clock.now_ms())

        def creation(zk: KazooClient) -> Any:
            # the stat, and with it the epoch, comes back from the second step only
            transaction = zk.transaction()
            transaction.create(path, b"", ephemeral=True)
            transaction.set_data(path, content, 0)
            return transaction.commit_async()

        results = self._session.call(creation)
        if not isinstance(results[0], Exception):
            return int(results[1].czxid)
        if not isinstance(results[0], NodeExistsError):
            raise results[0]
        return self._settle_existing(path)

    def _settle_existing(self, path: str) -> int | None:
        """Return the epoch if the node is this session's own (an answer was lost); remove the node of an own earlier
        session."""
        stat = self._session.call(lambda zk: zk.exists_async(path))
        if stat is None:
            return None
        if stat.ephemeralOwner == self._session.session_id:
            return int(stat.czxid)
        if self._session.is_own(stat.ephemeralOwner):
            try:
                self._session.call(lambda zk: zk.delete_async(path, stat.version))
            except (NoNodeError, BadVersionError):
                log.debug("registration of the earlier session expired")
        return None

    def _conflict(self, broker_id: int) -> str:
        path = BrokerRegistration.path(broker_id)
        try:
            content, stat = self._session.call(lambda zk: zk.get_async(path))
            other = BrokerRegistration.decode(broker_id, content, stat.czxid)
            where = "at " + ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in other.endpoints)
        except (NoNodeError, CorruptZnode):
            where = "by another process"
        return (
            f"a broker with id {broker_id} is already registered {where}: stop that broker, "
            "or give this one another broker.id"
        )
