"""Serial execution of the controller's requests: only those of the newest controller to this registration of the
broker.

LeaderAndIsr, StopReplica and UpdateMetadata are executed on a separate thread, because all handler threads may be
waiting for the effect of such a request. Requests of a replaced controller, and requests to an earlier registration of
the broker, are ignored. So are late requests: if a controller gets no answer, it sends the request again on a new
connection and continues; when the network recovers, the first copy may still arrive. The correlation id identifies it:
for one registration of a broker, a controller uses one channel and increasing numbers across all its connections, both
Odradek's and Apache Kafka's.
"""

from collections.abc import Callable
from typing import Protocol

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedExecutor
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
        self._thread = SupervisedExecutor("control")

    def stop(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def submit(self, request: ControlRequest, correlation_id: int, answer: Callable[[ErrorCode], None]) -> None:
        """Calls `answer` in its turn, with NONE if the request is valid, otherwise with the error."""
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
