"""The door for what controllers say: one request at a time, from the newest controller, to this registration.

LeaderAndIsr, StopReplica and UpdateMetadata come through here on a thread of their own: handler threads may all be
waiting for just what such a request will bring. A controller that has been replaced, or that speaks to the broker as it
was before its last registration, changes nothing. Neither does what comes too late: a controller whose request isn't
answered sends it again on a new connection, and goes on; when the network heals, the first copy may still be delivered.
It is known by its correlation id. To one registration of a broker a controller speaks through one channel, which
numbers what it sends through all its connections: Odradek's does, and Apache Kafka's.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.model.topology import UNKNOWN_BROKER_EPOCH

log = get_logger(__name__)


class ControlRequest(Protocol):
    controller_id: int
    controller_epoch: int
    broker_epoch: int


class ControlGate:
    def __init__(self) -> None:
        self.controller_epoch = 0
        """Epoch of the newest controller that was heard of. Changed by the control thread only."""
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        """Epoch of this broker's present registration; set whenever it registers."""
        self._latest = (0, UNKNOWN_BROKER_EPOCH, 0)
        """Controller epoch, broker epoch and correlation id of what was obeyed last, of what names a registration."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="control")

    def stop(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def submit(self, request: ControlRequest, correlation_id: int, answer: Callable[[ErrorCode], None]) -> None:
        """Calls `answer` in its turn: to obey, when the code is NONE, or to refuse with it."""
        self._thread.submit(lambda: answer(self._admit(request, correlation_id)))

    def _admit(self, request: ControlRequest, correlation_id: int) -> ErrorCode:
        names_registration = request.broker_epoch != UNKNOWN_BROKER_EPOCH
        sent = request.controller_epoch, request.broker_epoch, correlation_id
        if names_registration and request.broker_epoch < self.broker_epoch:
            code = ErrorCode.STALE_BROKER_EPOCH
        elif request.controller_epoch < self.controller_epoch or (names_registration and sent < self._latest):
            code = ErrorCode.STALE_CONTROLLER_EPOCH
        else:
            self.controller_epoch = request.controller_epoch
            if names_registration:
                self._latest = sent
            return ErrorCode.NONE
        log.warning(
            "request from stale controller epoch ignored",
            why=code.name,
            controller=request.controller_id,
            controller_epoch=request.controller_epoch,
            broker_epoch=request.broker_epoch,
            correlation_id=correlation_id,
        )
        return code
