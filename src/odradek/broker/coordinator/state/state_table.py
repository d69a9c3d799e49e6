"""The entries of a coordinator, in the partitions of its topic that this broker leads.

A leadership of a partition begins with a leader epoch. An older epoch changes nothing, and a replay that ends after its
leadership is discarded. Entries of an ended leadership are unloaded on a separate thread, and no later leadership reads
the log before that is done: afterwards nothing is written for them.

A replay that fails is repeated after a pause, until it succeeds or the leadership ends: clients ask no other broker
meanwhile, and get NOT_COORDINATOR.
"""

import threading
from collections.abc import Callable, Iterable
from functools import partial
from threading import get_ident
from typing import Generic, Protocol, TypeVar

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedExecutor
from odradek.broker.coordinator.state.state_log import StateLog
from odradek.broker.coordinator.state.state_log_writer import StateEntry
from odradek.broker.purgatory.reaper import ExpirationReaper, Timer

log = get_logger(__name__)

RELOAD_AFTER_MS = 5_000
_BEFORE_ALL = -1  # a leader epoch

EntryT = TypeVar("EntryT", bound=StateEntry)
_Entry = TypeVar("_Entry", bound=StateEntry)


class EntrySource(Protocol[EntryT]):
    """Loading and giving up of entries, by the coordinator that has them."""

    def load(self, partition: int) -> Iterable[EntryT]:
        """Replay the partition's log."""
        ...

    def replayed(self, entry: EntryT) -> None:
        """Listen for what happens to an entry in the log from now on; it is not served yet."""
        ...

    def loaded(self, entry: EntryT) -> None:
        """Take up an entry that was loaded."""
        ...

    def thrown_away(self, entry: EntryT) -> None:
        """Listen no more: the leadership ended before the entry was taken up."""
        ...

    def unloaded(self, entry: EntryT) -> None:
        """Give up an entry: another broker's by now."""
        ...


class _Leadership:
    """One leadership of a partition. Its entries are served after its records are replayed."""

    __slots__ = ("loaded", "news")

    def __init__(self, *, loaded: bool) -> None:
        self.loaded = loaded
        self.news: list[Callable[[], None]] | None = None if loaded else []
        """Actions that came during the replay, and may concern records behind it; None from its end on."""


class _Reload(Timer):
    """Time to replay a partition again."""

    __slots__ = ("_begin",)

    def __init__(self, begin: Callable[["_Reload"], None]) -> None:
        super().__init__(RELOAD_AFTER_MS)
        self._begin = begin

    def expire(self) -> None:
        self._begin(self)


class StateTable(Generic[_Entry]):
    def __init__(
        self, kind: str, state_log: StateLog, clock: Clock, reaper: ExpirationReaper, source: EntrySource[_Entry]
    ) -> None:
        """`kind`: a plural for log lines and thread names."""
        self._kind = kind
        self._log = state_log
        self._clock = clock
        self._reaper = reaper
        self._source = source
        self._lock = threading.Lock()  # of leaderships and their entries; never held with an entry's own lock
        self._entries: dict[str, _Entry] = {}
        self._leaderships: dict[int, _Leadership] = {}
        self._reloads: dict[int, _Reload] = {}  # of partitions whose replay failed
        self._epochs: dict[int, int] = {}  # the latest heard of for each partition, of any leader
        self._stopped = False
        self.load_times_ms: list[int] = []  # of the last loads, for metrics
        self._loader = SupervisedExecutor(f"{kind}-loader")
        self._unloader = SupervisedExecutor(f"{kind}-unloader")

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
        self._loader.shutdown(wait=True, cancel_futures=True)
        self._unloader.shutdown(wait=True)

    # ---- leaderships

    def lead(self, partition: int, epoch: int) -> None:
        """Lead the partition in this epoch. If it led the partition before, the entries are in memory already."""
        with self._lock:
            first_time = partition not in self._epochs
            if self._stopped or epoch < self._epochs.get(partition, epoch):
                return
            self._epochs[partition] = epoch
            if partition in self._leaderships:
                return
            self._begin_leadership(partition, epoch, loaded=first_time and self._log.is_new(partition))

    def _begin_leadership(self, partition: int, epoch: int, *, loaded: bool) -> None:
        self._reloads.pop(partition, None)
        leadership = self._leaderships[partition] = _Leadership(loaded=loaded)
        if loaded:
            return
        try:
            self._loader.submit(self._load, partition, epoch, leadership)
        except RuntimeError:  # its thread can't be started
            log.exception(f"{self._kind} can't be loaded, trying again", partition=partition, epoch=epoch)
            del self._leaderships[partition]
            self._load_again_later(partition, epoch)

    def resign(self, partition: int, epoch: int) -> None:
        """Resign from the partition at this epoch, or in it if the partition is not here any more."""
        with self._lock:
            if self._stopped or epoch < self._epochs.get(partition, epoch):
                return
            self._end_leadership(partition)
            self._epochs[partition] = epoch

    def removed(self, partition: int) -> None:
        """Resign, and forget the epochs of a partition that was deleted or moved away: one of the same name has its
        own, from 0 on."""
        with self._lock:
            if not self._stopped:
                self._end_leadership(partition)
                self._epochs[partition] = _BEFORE_ALL

    def epoch_of(self, partition: int) -> int:
        """The leader epoch in which this broker leads the partition, or the next leader's: that of an entry only if the
        entry isn't gone after it was asked for."""
        return self._epochs.get(partition, _BEFORE_ALL)

    def _end_leadership(self, partition: int) -> None:
        self._reloads.pop(partition, None)
        if self._leaderships.pop(partition, None) is None:
            return
        given_up = [entry for entry in list(self._entries.values()) if entry.partition == partition]
        for entry in given_up:
            entry.is_gone = True
            self._entries.pop(entry.key, None)
        self._unloader.submit(self._unload, partition, given_up)

    def _unload(self, partition: int, given_up: list[_Entry]) -> None:
        self._with_each(given_up, self._source.unloaded, "unloaded")
        log.info(f"{self._kind} unloaded", partition=partition, count=len(given_up))

    def _with_each(self, entries: Iterable[_Entry], action: Callable[[_Entry], None], done: str) -> None:
        """Call the source for each entry. An exception is logged, so that the other entries get their timers."""
        for entry in entries:
            try:
                action(entry)
            except Exception:
                log.exception(f"{self._kind} can't be {done}", key=entry.key)

    def _load(self, partition: int, epoch: int, leadership: _Leadership) -> None:
        """Replay the log, and take the entries up when all that was replayed is committed: an answer must not depend on
        a record that the next leader may not have."""
        started_ms = self._clock.monotonic_ms()
        loader = get_ident()
        loaded: list[_Entry] = []

        def committed(error: ErrorCode) -> None:
            take_up = partial(self._take_up, partition, leadership, loaded, started_ms, error)
            if get_ident() == loader:
                take_up()
                return
            with self._lock:
                if not self._stopped:
                    self._loader.submit(take_up)

        try:
            self._unloader.submit(int).result()  # unloads that were requested earlier are complete
            if self._leaderships.get(partition) is not leadership:
                return  # in a storm of leader changes the present leadership would wait for the loads of all before
            loaded += self._source.load(partition)
            self._replayed(leadership, loaded)
            self._log.when_committed(partition, committed)
        except Exception:
            self._with_each(loaded, self._source.thrown_away, "dropped")
            with self._lock:
                if self._leaderships.get(partition) is leadership:
                    log.exception(f"{self._kind} can't be loaded, trying again", partition=partition, epoch=epoch)
                    self._end_leadership(partition)
                    self._load_again_later(partition, epoch)

    def _load_again_later(self, partition: int, epoch: int) -> None:
        def begin(due: _Reload) -> None:
            with self._lock:
                if self._reloads.get(partition) is due and not self._stopped:
                    self._begin_leadership(partition, epoch, loaded=False)

        reload = self._reloads[partition] = _Reload(begin)
        self._reaper.add(reload)

    def after_replay(self, partition: int, news: Callable[[], None]) -> None:
        """Carry out the news of something in the partition's log: now, or as soon as the log is replayed, if that is
        under way. News that the replay has found as well must do no harm."""
        with self._lock:
            leadership = self._leaderships.get(partition)
            if leadership is not None and leadership.news is not None:
                leadership.news.append(news)
                return
        news()

    def _replayed(self, leadership: _Leadership, loaded: list[_Entry]) -> None:
        for entry in loaded:
            self._source.replayed(entry)
        with self._lock:
            missed, leadership.news = leadership.news or (), None
        for news in missed:
            news()

    def _take_up(
        self, partition: int, leadership: _Leadership, loaded: list[_Entry], started_ms: int, error: ErrorCode
    ) -> None:
        with self._lock:
            is_current = self._leaderships.get(partition) is leadership
            if is_current and error is not ErrorCode.NONE:
                log.info(f"{self._kind} not loaded", partition=partition, error=error.name)
                self._end_leadership(partition)
                is_current = False
            if is_current:
                self._entries.update((entry.key, entry) for entry in loaded)
                leadership.loaded = True
        if not is_current:
            self._with_each(loaded, self._source.thrown_away, "dropped")
            return
        self._with_each(loaded, self._source.loaded, "taken up")
        took_ms = self._clock.monotonic_ms() - started_ms
        self.load_times_ms = [*self.load_times_ms[-49:], took_ms]
        if loaded:
            epoch = self._epochs[partition]
            log.info(f"{self._kind} loaded", partition=partition, epoch=epoch, count=len(loaded), took_ms=took_ms)

    # ---- entries

    def find(self, key: str) -> _Entry | None:
        """Return the entry; None if it doesn't exist. KafkaError: another broker coordinates it, or it is not loaded
        yet."""
        if (entry := self._entries.get(key)) is not None:
            return entry
        # Both at one moment: a load that ends in between would make its entries look missing.
        with self._lock:
            leadership = self._leaderships.get(self._log.partition_for(key))
            if leadership is None:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            if not leadership.loaded:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            return self._entries.get(key)

    def find_or_add(self, key: str, make: Callable[[int], _Entry]) -> _Entry:
        """The entry of the key; a new one, made for its partition, if there is none."""
        new = make(self._log.partition_for(key))
        with self._lock:
            leadership = self._leaderships.get(new.partition)
            if leadership is None or not leadership.loaded:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            return self._entries.setdefault(key, new)

    def forget(self, entry: _Entry) -> None:
        """Drop a deleted entry. A new entry of the same key is another one."""
        with self._lock:
            if self._entries.get(entry.key) is entry:
                del self._entries[entry.key]

    def all(self) -> list[_Entry]:
        return list(self._entries.values())

    @property
    def is_loading(self) -> bool:
        return not all(leadership.loaded for leadership in self._leaderships.copy().values())
