"""Facts that only ZooKeeper has: the controller's epoch, and the registration time of each broker. Read-only.

The connect string comes from the console's options or from a broker's configuration. The connection ends with the
reading's thread, so that a console without open pages has no session.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from odradek.base.errors import FatalError, KafkaError
from odradek.broker.zk.znodes.brokers import BrokerIds, BrokerRegistration
from odradek.broker.zk.znodes.cluster import Controller, ControllerEpoch
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient
from odradek.client.config_admin import broker_values

_KEY = "zookeeper.connect"
_TIMEOUT_S = 2.0
_SESSION_S = 6.0
_SILENT = logging.getLogger("odradek.apps.console.zookeeper")
_SILENT.setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class CoordinationState:
    connect: str
    controller: int | None
    controller_epoch: int | None
    since_ms: Mapping[int, int] = field(default_factory=dict)
    """Registration time of each live broker."""
    answers: bool = True
    """Flag of a ZooKeeper that answers; without it the other fields are its last answer."""


class ZooKeeperReader:
    """Keeps its session between two readings; `close` ends it."""

    def __init__(self, given: str | None) -> None:
        self._given = given
        self._zookeeper: Any = None

    def read(self, client: ClusterClient, before: CoordinationState | None) -> CoordinationState:
        connect = self._given or (before.connect if before else _ask_connect(client))
        try:
            return _read_all(self._session(connect), connect)
        except (KazooException, KazooTimeoutError):
            self.close()
            return replace(before or CoordinationState(connect, None, None), answers=False)

    def close(self) -> None:
        zookeeper, self._zookeeper = self._zookeeper, None
        if zookeeper is not None:
            with suppress(KazooException):  # its writer thread did not end in time
                zookeeper.stop()
                zookeeper.close()

    def _session(self, connect: str) -> Any:
        if self._zookeeper is None:
            self._zookeeper = KazooClient(hosts=connect, timeout=_SESSION_S, read_only=True, logger=_SILENT)
            self._zookeeper.start(timeout=_TIMEOUT_S)
        if not self._zookeeper.connected:
            raise KazooTimeoutError("not connected")
        return self._zookeeper


def _read_all(zookeeper: Any, connect: str) -> CoordinationState:
    epoch, controller = _read(zookeeper, ControllerEpoch.path), _read(zookeeper, Controller.path)
    ids = sorted(int(name) for name in _answer(zookeeper.get_children_async(BrokerIds.path)))
    return CoordinationState(
        connect,
        Controller.decode(controller) if controller else None,
        ControllerEpoch.decode(epoch) if epoch else None,
        {id_: _since(_read(zookeeper, BrokerRegistration.path(id_))) for id_ in ids},
    )


def _ask_connect(client: ClusterClient) -> str:
    for broker in client.brokers():
        try:
            connect = broker_values(client, broker, [_KEY]).get(_KEY)
        except (KafkaError, ConnectionFailed, UnsupportedByBroker):
            continue
        if connect:
            return connect
    raise FatalError("no broker reports its zookeeper.connect; give --zookeeper")


def _read(zookeeper: Any, path: str) -> bytes | None:
    try:
        content: bytes = _answer(zookeeper.get_async(path))[0]
    except NoNodeError:
        return None
    return content


def _answer(asked: Any) -> Any:
    """Kazoo queues requests while the connection is lost; a late answer counts as none."""
    return asked.get(timeout=_TIMEOUT_S)


def _since(content: bytes | None) -> int:
    return int(json.loads(content or b"{}").get("timestamp", 0))
