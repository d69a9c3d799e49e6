"""The controller's seat: who holds it, and the epoch that fences whoever held it before."""

from typing import Any

from kazoo.client import KazooClient

from odradek.base.logs import get_logger
from odradek.model.topology import ControllerTerm
from odradek.zk.stores.access import ControllerMoved, ZnodeAccess, failure
from odradek.zk.znodes import Controller, ControllerEpoch

log = get_logger(__name__)


class ControllerSeat(ZnodeAccess):
    def elect_controller(self, broker_id: int, now_ms: int) -> ControllerTerm | None:
        """Creates /controller and raises the epoch in one transaction; None when somebody else was first."""
        self._create_if_missing(ControllerEpoch.path, ControllerEpoch.encode(0))
        content, stat = self._call(lambda zk: zk.get_async(ControllerEpoch.path))
        epoch = ControllerEpoch.decode(content) + 1

        def election(zk: KazooClient) -> Any:
            transaction = zk.transaction()
            transaction.create(Controller.path, Controller.encode(broker_id, now_ms), ephemeral=True)
            transaction.set_data(ControllerEpoch.path, ControllerEpoch.encode(epoch), stat.version)
            return transaction.commit_async()

        results = self._call(election)
        if failure(results) is None or self._won_unheard(epoch):
            return ControllerTerm(epoch, stat.version + 1)
        return None

    def current_controller(self) -> int | None:
        node = self._read(Controller.path)
        return None if node is None else Controller.decode(node[0])

    def resign_controller(self, term: ControllerTerm) -> None:
        """Leaves the seat to the others, unless another one has it already."""
        try:
            self._drop_all([Controller.path], term)
        except ControllerMoved:
            log.debug("the seat was another's already", epoch=term.epoch)

    def _won_unheard(self, epoch: int) -> bool:
        """Whether an election that looks lost was ours after all: its answer went with the connection."""
        seat, counter = self._read_all([Controller.path, ControllerEpoch.path])
        if seat is None or counter is None:
            return False
        owner = seat[1].ephemeralOwner
        return bool(owner == self._session.session_id) and ControllerEpoch.decode(counter[0]) == epoch
