"""The door for what controllers say: one request at a time, from the newest controller, to this registration.

LeaderAndIsr, StopReplica and UpdateMetadata come through here, in the order in which they were sent, on a thread of
their own: handler threads may all be waiting for just what such a request will bring. A controller that has been
replaced, or that speaks to the broker as it was before its last registration, changes nothing.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger

log = get_logger(__name__)

UNKNOWN_BROKER_EPOCH = -1


class ControlRequest(Protocol):
    controller_id: int
    controller_epoch: int
    broker_epoch: int


class ControlGate:
    def __init__(self) -> None:
        self.controller_epoch = 0
        """Of the newest controller that was heard of. Changed by the control thread only."""
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        """Of this broker's present registration; set whenever it registers."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="control")

    def stop(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def submit(self, request: ControlRequest, answer: Callable[[ErrorCode], None]) -> None:
        """Calls `answer` in its turn: to obey, when the code is NONE, or to refuse with it."""
        self._thread.submit(lambda: answer(self._admit(request)))

    def _admit(self, request: ControlRequest) -> ErrorCode:
        if request.broker_epoch != UNKNOWN_BROKER_EPOCH and request.broker_epoch < self.broker_epoch:
            code = ErrorCode.STALE_BROKER_EPOCH
        elif request.controller_epoch < self.controller_epoch:
            code = ErrorCode.STALE_CONTROLLER_EPOCH
        else:
            self.controller_epoch = request.controller_epoch
            return ErrorCode.NONE
        log.warning(
            "controller is not obeyed",
            why=code.name,
            controller=request.controller_id,
            controller_epoch=request.controller_epoch,
            broker_epoch=request.broker_epoch,
        )
        return code
