"""Membership of this broker in its cluster: registered, again with each new session, with a controlled shutdown before
it stops.

After a lost connection to ZooKeeper it waits. An expired session has removed the broker's registration: the broker
registers again as soon as there is a session, with a new epoch, which fences requests to the former registration.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.constraints import release_of
from odradek.base.errors import KafkaError
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.api.control_gate import ControlGate
from odradek.broker.controller_link import ControllerLink
from odradek.broker.zk.registration import BrokerRegistrar
from odradek.broker.zk.session import SessionEvent, ZkUnavailable
from odradek.model.metadata_image import MetadataCache
from odradek.model.topology import Broker
from odradek.protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse

log = get_logger(__name__)


class Membership:
    def __init__(
        self,
        broker: Broker,
        registrar: BrokerRegistrar,
        gate: ControlGate,
        on_renewal: Callable[[Broker], None],
        fail: Callable[[str], None],
    ) -> None:
        self._broker = broker
        self._registrar = registrar
        self._gate = gate
        self._on_renewal = on_renewal
        self._fail = fail
        self._events: SimpleQueue[SessionEvent | None] = SimpleQueue()
        self._thread = SupervisedThread(target=self._follow, name="session")

    def enter(self) -> Broker:
        """Register the broker, and keep it registered until `stop`."""
        self._register()
        self._thread.start()
        return self._broker

    def session_changed(self, event: SessionEvent) -> None:
        """Queue the event: the session's thread, which calls this, must not wait."""
        self._events.put(event)

    def stop(self) -> None:
        self._events.put(None)
        self._thread.join()

    def _register(self) -> None:
        self._broker = self._registrar.register(replace(self._broker, epoch=-1))
        self._gate.broker_epoch = self._broker.epoch

    def _follow(self) -> None:
        while (event := self._events.get()) is not None:
            if event is not SessionEvent.SESSION_RENEWED:
                continue
            try:
                self._register()
                self._on_renewal(self._broker)
            except ZkUnavailable:
                self._events.put(event)
            except Exception as error:
                self._fail(str(error))
                return


def take_leave(broker_id: int, gate: ControlGate, config: BrokerConfig, metadata: MetadataCache) -> None:
    """Ask the controller to move this broker's leaders away before the stop, so that no partition lacks a leader."""
    if not config.controlled_shutdown_enable:
        return
    pause = threading.Event()
    link = ControllerLink(broker_id, config, metadata)
    for attempts_left in reversed(range(config.controlled_shutdown_max_retries)):
        if metadata.image.brokers.keys() <= {broker_id}:
            log.info("controlled shutdown skipped, no other broker is alive")
            return
        remaining = _ask_to_leave(link, ControlledShutdownRequest(broker_id=broker_id, broker_epoch=gate.broker_epoch))
        if remaining == 0:
            log.info("controlled shutdown finished")
            return
        if attempts_left:
            pause.wait(config.controlled_shutdown_retry_backoff_ms / 1000)
    log.warning("controlled shutdown failed, proceeding with unclean shutdown")


def asks_controller(inter_broker_version: str) -> bool:
    """Return whether leaders change the ISR through the controller, as since 2.7, or through ZooKeeper."""
    return release_of(inter_broker_version) >= (2, 7)


def _ask_to_leave(link: ControllerLink, request: ControlledShutdownRequest) -> int | None:
    """Return the number of partitions that the broker still leads; None without an answer."""
    try:
        answer: ControlledShutdownResponse = link.send(request)
    except KafkaError as error:
        log.warning("controlled shutdown request failed, retrying", error=str(error))
        return None
    if answer.error_code:
        log.warning("controlled shutdown refused by the controller", error_code=answer.error_code)
        return None
    return len(answer.remaining_partitions)
