"""Groups of this broker: the ones kept in the offsets partitions that it leads.

To lead a partition is a tenure, which begins with a leader epoch. News of an epoch that is over changes nothing, and
a replay that is finished only after its tenure is thrown away. Groups of a tenure that ended are given up on a thread
of their own, and no later tenure reads the log before that is done: after it nothing is written in their name.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.coordinator.groups.core.group import Group
from odradek.broker.coordinator.groups.core.group_requests import Moment
from odradek.broker.coordinator.groups.group_log import GroupLog
from odradek.broker.coordinator.groups.group_log_writer import GroupEntry

log = get_logger(__name__)


class _Tenure:
    """One time of leading a partition. Its groups are ours to answer for once its records are replayed."""

    __slots__ = ("loaded",)

    def __init__(self, *, loaded: bool) -> None:
        self.loaded = loaded


class GroupTable:
    def __init__(
        self,
        group_log: GroupLog,
        clock: Clock,
        begin: Callable[[GroupEntry], None],
        give_up: Callable[[GroupEntry], None],
    ) -> None:
        """`begin` is told of each group that was loaded, `give_up` of each that is another broker's by now."""
        self._log = group_log
        self._clock = clock
        self._begin = begin
        self._give_up = give_up
        self._lock = threading.Lock()  # for tenures, and groups that come and go with them; never with a group's own
        self._groups: dict[str, GroupEntry] = {}
        self._tenures: dict[int, _Tenure] = {}
        self._epochs: dict[int, int] = {}  # the latest heard of for each partition, whoever led in it
        self._stopped = False
        self._loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="group-loader")
        self._unloader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="group-unloader")

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
        self._loader.shutdown(wait=True, cancel_futures=True)
        self._unloader.shutdown(wait=True)

    # ---- tenures

    def lead(self, partition: int, epoch: int) -> None:
        """Lead the partition in this epoch. One that it led before goes on: its groups are in memory."""
        with self._lock:
            first_time = partition not in self._epochs
            if self._stopped or epoch < self._epochs.get(partition, epoch):
                return
            self._epochs[partition] = epoch
            if partition in self._tenures:
                return
            tenure = self._tenures[partition] = _Tenure(loaded=first_time and self._log.is_new(partition))
            if not tenure.loaded:
                self._loader.submit(self._load, partition, epoch, tenure)

    def resign(self, partition: int, epoch: int) -> None:
        """Resign from the partition at this epoch, or in it if the partition is not here any more."""
        with self._lock:
            if self._stopped or epoch < self._epochs.get(partition, epoch):
                return
            self._epochs[partition] = epoch
            self._end_tenure(partition)

    def _end_tenure(self, partition: int) -> None:
        if self._tenures.pop(partition, None) is None:
            return
        given_up = [held for held in list(self._groups.values()) if held.partition == partition]
        for held in given_up:
            self._groups.pop(held.group.id, None)
        self._unloader.submit(self._unload, partition, given_up)

    def _unload(self, partition: int, given_up: list[GroupEntry]) -> None:
        for held in given_up:
            try:
                self._give_up(held)
            except Exception:
                log.exception("group unloading failed", group=held.group.id)
        log.info("groups unloaded", partition=partition, groups=len(given_up))

    def _load(self, partition: int, epoch: int, tenure: _Tenure) -> None:
        started_ms = self._clock.monotonic_ms()
        try:
            self._unloader.submit(int).result()  # whatever was to be given up before now is
            replayed = self._log.replay(partition)
            now = Moment(self._clock.now_ms(), self._clock.monotonic_ms())
            loaded = [GroupEntry(group, offsets, partition) for group, offsets in replayed.groups(now)]
        except Exception:
            with self._lock:
                if self._tenures.get(partition) is tenure:
                    log.exception("group loading failed", partition=partition, epoch=epoch)
                    self._end_tenure(partition)
            return
        with self._lock:
            if self._tenures.get(partition) is not tenure:
                return
            self._groups.update((held.group.id, held) for held in loaded)
            tenure.loaded = True
        for held in loaded:
            self._begin(held)
        if loaded:
            took_ms = self._clock.monotonic_ms() - started_ms
            log.info("groups loaded", partition=partition, epoch=epoch, groups=len(loaded), took_ms=took_ms)

    # ---- groups

    def find(self, group_id: str, *, nameless: bool = False) -> GroupEntry | None:
        """The group, or None if there is no such one. KafkaError: it isn't ours to know.

        A group may have no name as far as only its offsets are concerned: the oldest clients had none to give.
        """
        if not group_id and not nameless:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        if (held := self._groups.get(group_id)) is not None:
            return held
        # Both at one moment: a load that ends between two looks would make its groups seem never to have been.
        with self._lock:
            tenure = self._tenures.get(self._log.partition_for(group_id))
            if tenure is None:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            if not tenure.loaded:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            return self._groups.get(group_id)

    def find_or_create(self, group_id: str) -> GroupEntry:
        now = Moment(self._clock.now_ms(), self._clock.monotonic_ms())
        new = GroupEntry(Group(group_id, now), {}, self._log.partition_for(group_id))
        with self._lock:
            tenure = self._tenures.get(new.partition)
            if tenure is None or not tenure.loaded:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            return self._groups.setdefault(group_id, new)

    def forget(self, held: GroupEntry) -> None:
        """Drop the deleted partition. A new group of the same name is another one."""
        with self._lock:
            if self._groups.get(held.group.id) is held:
                del self._groups[held.group.id]

    def all(self) -> list[GroupEntry]:
        return list(self._groups.values())

    @property
    def is_loading(self) -> bool:
        return not all(tenure.loaded for tenure in self._tenures.copy().values())
