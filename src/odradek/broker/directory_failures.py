"""Failure of a log directory: its replicas answer KAFKA_STORAGE_ERROR, and the controller elects other leaders."""

import threading

from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.log.directories.directory_table import DirectoryFailure
from odradek.broker.replication.replica_manager import ReplicaManager
from odradek.broker.zk.session import ZkUnavailable
from odradek.broker.zk.store import ZkStore

RETRY_S = 1.0

log = get_logger(__name__)


class DirectoryFailures:
    def __init__(self, broker_id: int, roles: ReplicaManager, store: ZkStore) -> None:
        self._broker_id = broker_id
        self._roles = roles
        self._store = store
        self._stopped = threading.Event()

    def failed(self, failure: DirectoryFailure) -> None:
        """Handle a failed directory without waiting, on the thread that found out: another thread reports it to the
        controller."""
        self._roles.take_offline(failure.partitions)
        SupervisedThread(target=self._tell, name="directory-failure", is_essential=False).start()

    def stop(self) -> None:
        self._stopped.set()

    def _tell(self) -> None:
        """Report the failure until that succeeds: without it, replicas that can't lead would stay leaders."""
        while not self._stopped.is_set():
            try:
                self._store.requests.notify_log_dir_failure(self._broker_id)
                return
            except ZkUnavailable as error:
                log.error("failed log directory could not be reported to the controller, retrying", error=str(error))
            self._stopped.wait(RETRY_S)
